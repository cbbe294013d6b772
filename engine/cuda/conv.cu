#include "engine/cuda/conv_library.h"
#include "engine/cuda/conv_shape.h"
#include "engine/cuda/gemm.h"

namespace tenon::cuda {
namespace {

constexpr int kFewChannels = 16;  // a group with fewer outputs leaves most of a tile empty

/// One pass: outputs of `to` from the image `from`.
template <class T>
struct ConvPass {
  ConvShape shape;
  bool gradient;  ///< of the input: `to` is x, `from` is y
  ConvImage from, to;
  const T* weight;  ///< [group, tap, channel of from, channel of to]
  const T* bias;
  int64_t bias_stride;
  int32_t row_phases, col_phases;
  int64_t column_tiles, slice;
  typename SumOf<T>::type* parts;  ///< [slice, group, output, channel] where the inner axis is split; else null

  __host__ __device__ int32_t in_channels() const { return from.channels / shape.groups; }
  __host__ __device__ int32_t out_channels() const { return to.channels / shape.groups; }
  __device__ ConvAxis axis(int which, int32_t phase) const {
    const int32_t size = which == 0 ? to.height : to.width;
    return gradient ? axis_of_gradient(shape, which, size, phase) : axis_of_result(shape, which, size);
  }
  /// Where output number `at` of a phase lies, without its channel.
  __device__ int64_t place(const ConvAxis& rows, const ConvAxis& cols, int64_t at) const {
    const auto pixel = static_cast<uint32_t>(at), width = static_cast<uint32_t>(cols.count);
    const uint32_t line = pixel / width, col = pixel % width, row = line % static_cast<uint32_t>(rows.count);
    return to.at(line / static_cast<uint32_t>(rows.count), 0, rows.first + int64_t{row} * rows.step,
                 cols.first + int64_t{col} * cols.step);
  }
  __device__ void finish(int64_t pixel, int32_t channel, typename SumOf<T>::type sum) const {
    if (bias) sum += element::number(bias[channel * bias_stride]);
    static_cast<T*>(to.data)[pixel + channel * to.by_channel] = element::made<T>(sum);
  }
};

/// The image under the kernel: a line is an output of a phase, the inner axis the phase's taps and channels.
template <class T, int Side, int Depth>
struct PixelSource {
  using Sum = typename SumOf<T>::type;
  static constexpr int kEach = Carried<Side, Depth>::kEach;
  const ConvPass<T>& pass;
  const ConvAxis &rows, &cols;
  Carried<Side, Depth> own;
  const T* image[kEach];  ///< null for an output past the last
  int32_t row[kEach], col[kEach];
  int64_t end;
  __device__ PixelSource(const ConvPass<T>& p, const ConvAxis& r, const ConvAxis& c, int32_t g, int64_t first,
                         int64_t outputs, int64_t k_end)
      : pass(p), rows(r), cols(c), own(p.from.by_channel == 1 && p.in_channels() > 1), end(k_end) {
    const T* data = static_cast<const T*>(p.from.data) + int64_t{g} * p.in_channels() * p.from.by_channel;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + own.line(i);
      const auto pixel = static_cast<uint32_t>(at < outputs ? at : 0), width = static_cast<uint32_t>(c.count);
      const uint32_t line = pixel / width, height = static_cast<uint32_t>(r.count);
      image[i] = at < outputs ? data + line / height * p.from.by_image : nullptr;
      row[i] = static_cast<int32_t>(line % height) * r.in_step + r.base;
      col[i] = static_cast<int32_t>(pixel % width) * c.in_step + c.base;
    }
  }
  __device__ bool by_depth() const { return own.by_depth; }
  __device__ void fetch(int64_t k, Sum* held) const {
    int32_t channel = 0, down = 0, across = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = k + own.depth(i);
      if (i == 0 || !own.by_depth) {
        const auto channels = static_cast<uint32_t>(pass.in_channels()), inner = static_cast<uint32_t>(at);
        const uint32_t tap = inner / channels, across_taps = static_cast<uint32_t>(cols.taps);
        channel = static_cast<int32_t>(inner % channels);
        down = static_cast<int32_t>(tap / across_taps) * rows.in_tap;
        across = static_cast<int32_t>(tap % across_taps) * cols.in_tap;
      }
      const int32_t y = row[i] + down, x = col[i] + across;
      const bool inside = image[i] && at < end && y >= 0 && y < pass.from.height && x >= 0 && x < pass.from.width;
      held[i] = inside ? element::number(image[i][pass.from.at(0, channel, y, x)]) : Sum(0);
    }
  }
};

/// The weights of a phase's taps: a line is a channel of the outputs.
template <class T, int Side, int Depth>
struct TapSource {
  using Sum = typename SumOf<T>::type;
  const ConvPass<T>& pass;
  const ConvAxis &rows, &cols;
  Carried<Side, Depth> own;
  const T* group;
  int64_t line, end;
  __device__ TapSource(const ConvPass<T>& p, const ConvAxis& r, const ConvAxis& c, int32_t g, int64_t first,
                       int64_t k_end)
      : pass(p), rows(r), cols(c), own(false), line(first + own.line(0)), end(k_end) {
    group = p.weight + int64_t{g} * p.shape.kernel[0] * p.shape.kernel[1] * p.in_channels() * p.out_channels() + line;
  }
  __device__ bool by_depth() const { return false; }
  __device__ void fetch(int64_t k, Sum* held) const {
#pragma unroll
    for (int i = 0; i < Carried<Side, Depth>::kEach; ++i) {
      int64_t at = k + own.depth(i);
      const bool inside = at < end && line < pass.out_channels();
      if (pass.gradient) {
        const auto channels = static_cast<uint32_t>(pass.in_channels()), inner = static_cast<uint32_t>(at);
        const uint32_t tap = inner / channels, across_taps = static_cast<uint32_t>(cols.taps);
        const int64_t y = rows.tap_first + int64_t{tap / across_taps} * rows.tap_step,
                      x = cols.tap_first + int64_t{tap % across_taps} * cols.tap_step;
        at = (y * pass.shape.kernel[1] + x) * channels + inner % channels;
      }
      held[i] = inside ? element::number(group[at * pass.out_channels()]) : Sum(0);
    }
  }
};

template <class T, int Side, int Depth>
__global__ void __launch_bounds__(kTileThreads, 2) conv_tiles(ConvPass<T> p) {
  using Sum = typename SumOf<T>::type;
  const int64_t first = blockIdx.x / p.column_tiles * Side, channel0 = blockIdx.x % p.column_tiles * Side;
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  const int32_t layers = p.row_phases * p.col_phases * p.shape.groups;
  for (int32_t layer = static_cast<int32_t>(blockIdx.z); layer < layers; layer += static_cast<int32_t>(gridDim.z)) {
    const int32_t group = layer % p.shape.groups, phase = layer / p.shape.groups;
    const ConvAxis rows = p.axis(0, phase / p.col_phases), cols = p.axis(1, phase % p.col_phases);
    const int64_t outputs = int64_t{p.shape.images} * rows.count * cols.count;
    if (first >= outputs) continue;  // all threads of the block: their tile is the same
    const int64_t inner = int64_t{rows.taps} * cols.taps * p.in_channels(), begin = blockIdx.y * p.slice,
                  end = begin + p.slice < inner ? begin + p.slice : inner;
    PixelSource<T, Side, Depth> a(p, rows, cols, group, first, outputs, end);
    TapSource<T, Side, Depth> b(p, rows, cols, group, channel0, end);
    Sum sum[Side / 16][Side / 16] = {};
    multiply_tile<Sum, Side, Depth>(a, b, begin, end, sum);
    const int32_t channels = p.out_channels();
    Sum* part = p.parts ? p.parts + (int64_t{blockIdx.y} * layers + layer) * outputs * channels : nullptr;
#pragma unroll
    for (int i = 0; i < Side / 16; ++i) {
      const int64_t output = first + tile_line(y, i);
      if (output >= outputs) continue;
      const int64_t pixel = p.place(rows, cols, output);
#pragma unroll
      for (int j = 0; j < Side / 16; ++j) {
        const auto channel = static_cast<int32_t>(channel0) + tile_line(x, j);
        if (channel >= channels) continue;
        if (part)
          part[output * channels + channel] = sum[i][j];
        else
          p.finish(pixel, group * channels + channel, sum[i][j]);
      }
    }
  }
}

/// The slices of a split inner axis, in their order. There is one phase.
template <class T>
__global__ void conv_add_parts(ConvPass<T> p, int64_t slices) {
  const ConvAxis rows = p.axis(0, 0), cols = p.axis(1, 0);
  const int64_t outputs = int64_t{p.shape.images} * rows.count * cols.count, channels = p.out_channels(),
                all = outputs * channels * p.shape.groups, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    typename SumOf<T>::type sum = p.parts[at];
    for (int64_t s = 1; s < slices; ++s) sum += p.parts[s * all + at];
    const int64_t line = at / channels;
    p.finish(p.place(rows, cols, line % outputs), static_cast<int32_t>(line / outputs * channels + at % channels), sum);
  }
}

/// One thread an output, for groups of few channels.
template <class T>
__global__ void conv_each(ConvPass<T> p, bool channels_last) {
  using Sum = typename SumOf<T>::type;
  const ConvShape& s = p.shape;
  const ConvImage &in = p.from, &to = p.to;
  const int32_t in_channels = p.in_channels(), out_channels = p.out_channels();
  const int64_t pixels = int64_t{s.images} * to.height * to.width, all = pixels * to.channels,
                step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    int64_t image = at;
    const auto next = [&image](int32_t size) {
      const auto i = static_cast<int32_t>(image % size);
      image /= size;
      return i;
    };
    int32_t channel = channels_last ? next(to.channels) : 0;
    const int32_t col = next(to.width), row = next(to.height);
    if (!channels_last) channel = next(to.channels);
    const int32_t group = channel / out_channels;
    const T* data = static_cast<const T*>(in.data) + in.at(image, int64_t{group} * in_channels, 0, 0);
    const T* weight =
        p.weight + int64_t{group} * s.kernel[0] * s.kernel[1] * in_channels * out_channels + channel % out_channels;
    Sum sum = 0;
    for (int32_t ky = 0; ky < s.kernel[0]; ++ky) {
      int32_t y =
          p.gradient ? row + s.padding[0] - ky * s.dilation[0] : row * s.stride[0] - s.padding[0] + ky * s.dilation[0];
      if (p.gradient && (y < 0 || y % s.stride[0])) continue;
      if (p.gradient) y /= s.stride[0];
      if (y < 0 || y >= in.height) continue;
      for (int32_t kx = 0; kx < s.kernel[1]; ++kx) {
        int32_t x = p.gradient ? col + s.padding[1] - kx * s.dilation[1]
                               : col * s.stride[1] - s.padding[1] + kx * s.dilation[1];
        if (p.gradient && (x < 0 || x % s.stride[1])) continue;
        if (p.gradient) x /= s.stride[1];
        if (x < 0 || x >= in.width) continue;
        const T* from = data + y * in.by_row + x * in.by_col;
        const T* w = weight + (int64_t{ky} * s.kernel[1] + kx) * in_channels * out_channels;
        for (int32_t c = 0; c < in_channels; ++c)
          sum = multiply_add(element::number(from[c * in.by_channel]), element::number(w[int64_t{c} * out_channels]),
                             sum);
      }
    }
    p.finish(to.at(image, 0, row, col), channel, sum);
  }
}

/// weight [out channels, in channels / groups, ky, kx] by any strides as [group, tap, channel of `from`, channel of
/// `to`], so that the tiles' reads of it lie side by side.
template <class T>
__global__ void conv_pack_weight(const T* weight, int64_t by_out, int64_t by_in, int64_t by_row, int64_t by_col,
                                 ConvPass<T> p, T* packed) {
  const int64_t in = p.in_channels(), out = p.out_channels(), width = p.shape.kernel[1],
                taps = p.shape.kernel[0] * width, all = p.shape.groups * taps * in * out,
                step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    const int64_t o = at % out, c = at / out % in, tap = at / out / in % taps, group = at / out / in / taps;
    // The weight's first axis counts the channels of y, over all groups; its second those of x within a group.
    const int64_t outer = group * (p.gradient ? in : out) + (p.gradient ? c : o), inner = p.gradient ? o : c;
    packed[at] = weight[outer * by_out + inner * by_in + tap / width * by_row + tap % width * by_col];
  }
}

template <class T, int Side, int Depth>
void conv_by_tiles(const Args& c, ConvPass<T>& p, int64_t outputs) {
  const int64_t rows = ceil_div(outputs, Side), layers = int64_t{p.row_phases} * p.col_phases * p.shape.groups;
  p.column_tiles = ceil_div(p.out_channels(), Side);
  const int64_t inner = int64_t{p.shape.taps()} * p.in_channels();
  p.slice = inner;
  unsigned slices = 1;
  if (p.row_phases * p.col_phases == 1) {
    const InnerSplit split(rows * p.column_tiles * layers, inner, Depth);
    p.slice = split.length;
    slices = static_cast<unsigned>(split.slices);
  }
  const int64_t all = outputs * p.to.channels;
  if (slices > 1) p.parts = c.scratch<typename SumOf<T>::type>(slices * all);
  const dim3 grid(static_cast<unsigned>(rows * p.column_tiles), slices, tile_layers(layers));
  launch(conv_tiles<T, Side, Depth>, grid, kTileThreads, c, p);
  if (p.parts) launch(conv_add_parts<T>, blocks_for(all, 256), 256, c, p, int64_t{slices});
}

template <class T>
void conv_pass(const Args& c, ConvPass<T> p, const Operand& w) {
  T* packed = c.scratch<T>(w.numel());
  launch(conv_pack_weight<T>, blocks_for(w.numel(), 256), 256, c, w.at<const T>(), w.stride[0], w.stride[1],
         w.stride[2], w.stride[3], p, packed);
  p.weight = packed;
  const int64_t pixels = int64_t{p.shape.images} * p.to.height * p.to.width;
  if (p.shape.groups > 1 && p.out_channels() < kFewChannels)
    return launch(conv_each<T>, blocks_for(pixels * p.to.channels, 256), 256, c, p, p.to.by_channel == 1);
  if (p.gradient) {
    p.row_phases = p.shape.stride[0] < p.to.height ? p.shape.stride[0] : p.to.height;
    p.col_phases = p.shape.stride[1] < p.to.width ? p.shape.stride[1] : p.to.width;
  }
  // Of the largest phase, the first.
  const int64_t outputs = p.shape.images * ceil_div(p.to.height, p.row_phases) * ceil_div(p.to.width, p.col_phases),
                large = ceil_div(outputs, 128) * ceil_div(p.out_channels(), 128) * p.shape.groups * p.row_phases *
                        p.col_phases;
  if constexpr (sizeof(T) < 8)
    if (large >= 132 && p.out_channels() > 64) return conv_by_tiles<T, 128, 8>(c, p, outputs);
  conv_by_tiles<T, 64, 16>(c, p, outputs);
}

/// A kernel of one tap that moves by one pixel is a product of matrices.
bool conv_as_matmul(const Args& c, const ConvShape& s, const Operand& from, const Operand& w, const Operand& to,
                    bool gradient) {
  GemmPlan p;
  if (!s.one_by_one() || !pixels_as_rows(from, p.a.row) || !pixels_as_rows(to, p.c.row)) return false;
  p.type = to.type();
  p.m = int64_t{s.images} * to.size[2] * to.size[3], p.n = to.size[1], p.k = from.size[1];
  p.a.data = from.data, p.a.col = from.stride[1];
  p.b.data = w.data, p.b.row = w.stride[gradient ? 0 : 1], p.b.col = w.stride[gradient ? 1 : 0];
  p.c.data = to.data, p.c.col = to.stride[1];
  const Operand bias = gradient ? Operand{{nullptr, -1, 0, {}, {}}} : c.in(2);
  if (bias.there()) p.bias = bias.data, p.bias_stride = bias.stride[0];
  gemm(c, p);
  return true;
}

void conv_run(Args& c, bool gradient) {
  const Operand from = c.in(0), w = c.in(1), to = c.out(0),
                bias = gradient ? Operand{{nullptr, -1, 0, {}, {}}} : c.in(2);
  c.want(from.dtype == to.dtype && w.dtype == to.dtype && (!bias.there() || bias.dtype == to.dtype));
  const ConvShape s = conv_shape(c, gradient ? to : from, gradient ? from : to, w.size + 2);
  if (to.numel() == 0 || conv_as_matmul(c, s, from, w, to, gradient)) return;
  const ConvDirection direction = gradient ? ConvDirection::of_input : ConvDirection::result;
  if (conv_by_cudnn(c, direction, s, gradient ? to : from, w, gradient ? from : to, bias)) return;
  with_product_type(to.type(), [&](auto one) {
    using T = decltype(one);
    ConvPass<T> p{s, gradient, conv_image(from), conv_image(to), nullptr, nullptr, 0, 1, 1, 0, 0, nullptr};
    if (bias.there()) p.bias = bias.at<const T>(), p.bias_stride = bias.stride[0];
    conv_pass(c, p, w);
  });
}

void run_conv2d(Args& c) { conv_run(c, false); }
void run_conv2d_input(Args& c) { conv_run(c, true); }

const KernelOf conv2d_entry{"conv2d", run_conv2d};
const KernelOf conv2d_input_entry{"conv2d_input", run_conv2d_input};

}  // namespace

ConvImage conv_image(const Operand& x) {
  return {x.data,
          static_cast<int32_t>(x.size[1]),
          static_cast<int32_t>(x.size[2]),
          static_cast<int32_t>(x.size[3]),
          x.stride[0],
          x.stride[1],
          x.stride[2],
          x.stride[3]};
}

ConvShape conv_shape(const Args& c, const Operand& x, const Operand& y, const int64_t* kernel) {
  const int64_t *stride = c.attr("stride").list, *padding = c.attr("padding").list, *dilation = c.attr("dilation").list,
                groups = c.whole("groups");
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto small = [](int64_t a) { return a >= 0 && a < kMost; };
  bool fits = small(x.size[0]) && small(groups) && small(kernel[0]) && small(kernel[1]) && small(kernel[0] * kernel[1]);
  for (const Operand* t : {&x, &y}) {
    fits = fits && small(t->size[1]) && small(t->size[2]) && small(t->size[3]) && small(t->size[2] * t->size[3]) &&
           small(t->size[0] * t->size[2] * t->size[3]);
    fits = fits && small(kernel[0] * kernel[1] * t->size[1]);
  }
  ConvShape s{static_cast<int32_t>(x.size[0]), static_cast<int32_t>(groups), {}, {}, {}, {}};
  for (int i = 0; i < 2; ++i) {
    fits = fits && small(stride[i]) && small(padding[i]) && small(dilation[i]) && small(dilation[i] * kernel[i]) &&
           small(stride[i] * y.size[i + 2]) && (i == 0 || small(stride[0] * stride[1] * groups));
    s.kernel[i] = static_cast<int32_t>(kernel[i]);
    s.stride[i] = static_cast<int32_t>(stride[i]);
    s.padding[i] = static_cast<int32_t>(padding[i]);
    s.dilation[i] = static_cast<int32_t>(dilation[i]);
  }
  c.want(fits);
  return s;
}

bool pixels_as_rows(const Operand& x, int64_t& by_pixel) {
  int64_t step = 0, count = 1;
  for (const int i : {3, 2, 0}) {
    if (x.size[i] == 1) continue;
    if (count == 1)
      step = x.stride[i];
    else if (x.stride[i] != step * count)
      return false;
    count *= x.size[i];
  }
  by_pixel = step;
  return true;
}

}  // namespace tenon::cuda
