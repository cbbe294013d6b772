#include "engine/cuda/conv_library.h"
#include "engine/cuda/conv_shape.h"
#include "engine/cuda/gemm.h"

namespace tenon::cuda {
namespace {

constexpr int kWeightTile = 64, kWeightDepth = 16, kFewWeights = 16;

/// The gradient of a kernel's weights: a product over all pixels of y, of y's gradient and of the image under each tap.
template <class T>
struct WeightPass {
  ConvShape shape;
  ConvImage x, gy;
  int64_t pixels, slice;  ///< of y; of a slice of them, see Note [A split inner axis]
  // [slice, ..] with the sums of weight (channel of y, column: tap and channel of x) at by_out and by_column.
  typename SumOf<T>::type* parts;
  int64_t by_out, by_column;

  __host__ __device__ int32_t in_channels() const { return x.channels / shape.groups; }
  __host__ __device__ int32_t out_channels() const { return gy.channels / shape.groups; }
  __host__ __device__ int64_t columns() const { return int64_t{shape.taps()} * in_channels(); }
  __host__ __device__ int64_t weights() const { return columns() * gy.channels; }
};

/// A place in y that moves on.
struct ConvPixel {
  int32_t image, row, col;
  __device__ void start(int64_t at, const ConvImage& y) {
    const auto pixel = static_cast<uint32_t>(at), width = static_cast<uint32_t>(y.width),
               height = static_cast<uint32_t>(y.height);
    col = static_cast<int32_t>(pixel % width);
    row = static_cast<int32_t>(pixel / width % height);
    image = static_cast<int32_t>(pixel / width / height);
  }
  __device__ void move(int32_t by, const ConvImage& y) {
    for (col += by; col >= y.width; col -= y.width)
      if (++row == y.height) row = 0, ++image;
  }
};

/// Both sides of the product: lines are channels of y, or columns of the kernel; the inner axis y's pixels, which are
/// asked for one piece after the other.
template <class T, bool OfImage>
struct GradientSource {
  using Sum = typename SumOf<T>::type;
  static constexpr int kEach = Carried<kWeightTile, kWeightDepth>::kEach;
  const WeightPass<T>& pass;
  Carried<kWeightTile, kWeightDepth> own;
  ConvPixel pixel;       ///< of the first element of the next piece
  const T* line[kEach];  ///< null for one past the last
  int32_t down[kEach], across[kEach];
  int64_t end;
  __device__ GradientSource(const WeightPass<T>& p, int32_t group, int64_t first, int64_t begin, int64_t k_end)
      : pass(p), own(OfImage ? p.x.by_channel != 1 : p.gy.by_channel != 1), end(k_end) {
    const int32_t channels = OfImage ? p.in_channels() : p.out_channels();
    const ConvImage& from = OfImage ? p.x : p.gy;
    const T* data = static_cast<const T*>(from.data) + int64_t{group} * channels * from.by_channel;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + own.line(i);
      down[i] = across[i] = 0;
      line[i] = at < (OfImage ? p.columns() : channels) ? data + at % channels * from.by_channel : nullptr;
      if constexpr (OfImage) {
        const auto tap = static_cast<int32_t>(at / channels);
        down[i] = tap / p.shape.kernel[1] * p.shape.dilation[0] - p.shape.padding[0];
        across[i] = tap % p.shape.kernel[1] * p.shape.dilation[1] - p.shape.padding[1];
      }
    }
    pixel.start(begin + own.depth(0), p.gy);
  }
  __device__ bool by_depth() const { return own.by_depth; }
  __device__ void fetch(int64_t k, Sum* held) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      bool inside = line[i] && k + own.depth(i) < end;
      int32_t y = pixel.row, x = pixel.col;
      if constexpr (OfImage) {
        y = y * pass.shape.stride[0] + down[i], x = x * pass.shape.stride[1] + across[i];
        inside = inside && y >= 0 && y < pass.x.height && x >= 0 && x < pass.x.width;
      }
      held[i] = inside ? element::number(line[i][(OfImage ? pass.x : pass.gy).at(pixel.image, 0, y, x)]) : Sum(0);
      pixel.move(own.depth_step, pass.gy);
    }
    pixel.move(kWeightDepth - kEach * own.depth_step, pass.gy);
  }
};

template <class T>
__global__ void __launch_bounds__(kTileThreads, 2) conv_weight_tiles(WeightPass<T> p, int64_t column_tiles) {
  using Sum = typename SumOf<T>::type;
  const int64_t row0 = blockIdx.x / column_tiles * kWeightTile, col0 = blockIdx.x % column_tiles * kWeightTile;
  const int64_t begin = blockIdx.y * p.slice, end = begin + p.slice < p.pixels ? begin + p.slice : p.pixels;
  const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
  Sum* part = p.parts + blockIdx.y * p.weights();
  for (auto group = static_cast<int32_t>(blockIdx.z); group < p.shape.groups;
       group += static_cast<int32_t>(gridDim.z)) {
    GradientSource<T, false> a(p, group, row0, begin, end);
    GradientSource<T, true> b(p, group, col0, begin, end);
    Sum sum[kWeightTile / 16][kWeightTile / 16] = {};
    multiply_tile<Sum, kWeightTile, kWeightDepth>(a, b, begin, end, sum);
#pragma unroll
    for (int i = 0; i < kWeightTile / 16; ++i)
#pragma unroll
      for (int j = 0; j < kWeightTile / 16; ++j) {
        const int64_t row = row0 + tile_line(y, i), col = col0 + tile_line(x, j);
        if (row < p.out_channels() && col < p.columns())
          part[(int64_t{group} * p.out_channels() + row) * p.by_out + col * p.by_column] = sum[i][j];
      }
  }
}

/// One thread a weight and slice, for groups of few channels. Neighbours are channels of y.
template <class T>
__global__ void conv_weight_each(WeightPass<T> p, int64_t slices) {
  using Sum = typename SumOf<T>::type;
  const int64_t all = p.weights() * slices, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    const int64_t weight = at % p.weights(), slice = at / p.weights();
    const auto channel = static_cast<int32_t>(weight % p.gy.channels);
    const int64_t column = weight / p.gy.channels;
    const auto tap = static_cast<int32_t>(column / p.in_channels());
    const int32_t down = tap / p.shape.kernel[1] * p.shape.dilation[0] - p.shape.padding[0],
                  across = tap % p.shape.kernel[1] * p.shape.dilation[1] - p.shape.padding[1];
    const int64_t from = channel / p.out_channels() * int64_t{p.in_channels()} + column % p.in_channels();
    const T *x = static_cast<const T*>(p.x.data) + from * p.x.by_channel,
            *gy = static_cast<const T*>(p.gy.data) + channel * p.gy.by_channel;
    const int64_t begin = slice * p.slice, end = begin + p.slice < p.pixels ? begin + p.slice : p.pixels;
    ConvPixel pixel;
    pixel.start(begin, p.gy);
    Sum sum = 0;
    for (int64_t i = begin; i < end; ++i, pixel.move(1, p.gy)) {
      const int32_t row = pixel.row * p.shape.stride[0] + down, col = pixel.col * p.shape.stride[1] + across;
      if (row < 0 || row >= p.x.height || col < 0 || col >= p.x.width) continue;
      sum = multiply_add(element::number(gy[p.gy.at(pixel.image, 0, pixel.row, pixel.col)]),
                         element::number(x[p.x.at(pixel.image, 0, row, col)]), sum);
    }
    p.parts[slice * p.weights() + channel * p.by_out + column * p.by_column] = sum;
  }
}

/// Adds up the slices in their order: gw [out channels, in channels / groups, ky, kx].
template <class T>
__global__ void conv_weight_finish(WeightPass<T> p, int64_t slices, ConvImage gw, int64_t by_out) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, columns = p.columns();
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < p.weights(); at += step) {
    const int64_t channel = at / columns, column = at % columns, tap = column / p.in_channels();
    const auto* part = p.parts + channel * p.by_out + column * p.by_column;
    auto sum = *part;
    for (int64_t s = 1; s < slices; ++s) sum += part[s * p.weights()];
    const int64_t place = gw.at(0, column % p.in_channels(), tap / p.shape.kernel[1], tap % p.shape.kernel[1]);
    static_cast<T*>(gw.data)[channel * by_out + place] = element::made<T>(sum);
  }
}

/// The bias's gradient: eight rows of a block of pixels a slice, 32 channels side by side.
template <class T>
__global__ void conv_bias_parts(ConvImage gy, int64_t pixels, int64_t slice, typename SumOf<T>::type* parts) {
  using Sum = typename SumOf<T>::type;
  TENON_SHARED(Sum, sums, 256);
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  const int64_t channel = int64_t{blockIdx.x} * 32 + lane, begin = blockIdx.y * slice,
                end = begin + slice < pixels ? begin + slice : pixels;
  Sum sum = 0;
  if (channel < gy.channels && begin + row < end) {
    ConvPixel pixel;
    pixel.start(begin + row, gy);
    for (int64_t i = begin + row; i < end; i += 8, pixel.move(8, gy))
      sum += element::number(static_cast<const T*>(gy.data)[gy.at(pixel.image, channel, pixel.row, pixel.col)]);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 4; half > 0; half /= 2) {
    if (row < half) sums[threadIdx.x] += sums[threadIdx.x + half * 32];
    __syncthreads();
  }
  if (row == 0 && channel < gy.channels) parts[blockIdx.y * int64_t{gy.channels} + channel] = sums[lane];
}
template <class T>
__global__ void conv_bias_finish(const typename SumOf<T>::type* parts, int64_t slices, int64_t channels, T* gb,
                                 int64_t stride) {
  const int64_t channel = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= channels) return;
  auto sum = parts[channel];
  for (int64_t s = 1; s < slices; ++s) sum += parts[s * channels + channel];
  gb[channel * stride] = element::made<T>(sum);
}

template <class T>
void conv_bias_gradient(const Args& c, const ConvImage& gy, int64_t pixels, const Operand& gb) {
  const InnerSplit split(ceil_div(gy.channels, 32), pixels, 8);
  auto* parts = c.scratch<typename SumOf<T>::type>(split.slices * gy.channels);
  launch(conv_bias_parts<T>, dim3(blocks_for(gy.channels, 32), static_cast<unsigned>(split.slices)), 256, c, gy, pixels,
         split.length, parts);
  launch(conv_bias_finish<T>, blocks_for(gy.channels, 256), 256, c, parts, split.slices, gy.channels, gb.at<T>(),
         gb.stride[0]);
}

template <class T>
void conv_weight_gradient(const Args& c, WeightPass<T> p, const Operand& gw) {
  using Sum = typename SumOf<T>::type;
  const int64_t rows = ceil_div(p.out_channels(), kWeightTile), columns = ceil_div(p.columns(), kWeightTile);
  int64_t slices;
  if (p.shape.groups > 1 && p.out_channels() < kFewWeights) {
    constexpr int64_t kThreads = 1 << 18, kShortest = 64;
    slices = ceil_div(kThreads, p.weights());
    if (slices > p.pixels / kShortest) slices = p.pixels / kShortest;
    if (slices < 1) slices = 1;
    p.slice = ceil_div(p.pixels, slices);
    if (p.slice > 0) slices = ceil_div(p.pixels, p.slice);
    p.by_out = 1, p.by_column = p.gy.channels;
    p.parts = c.scratch<Sum>(slices * p.weights());
    launch(conv_weight_each<T>, blocks_for(p.weights() * slices, 256), 256, c, p, slices);
  } else {
    const InnerSplit split(rows * columns * p.shape.groups, p.pixels, kWeightDepth);
    slices = split.slices;
    p.slice = split.length;
    p.by_out = p.columns(), p.by_column = 1;
    p.parts = c.scratch<Sum>(slices * p.weights());
    const dim3 grid(static_cast<unsigned>(rows * columns), static_cast<unsigned>(slices), tile_layers(p.shape.groups));
    launch(conv_weight_tiles<T>, grid, kTileThreads, c, p, columns);
  }
  ConvImage to = conv_image(gw);
  to.by_image = 0;
  launch(conv_weight_finish<T>, blocks_for(p.weights(), 256), 256, c, p, slices, to, gw.stride[0]);
}

/// A kernel of one tap that moves by one pixel is a product of matrices.
bool conv_weight_as_matmul(const Args& c, const ConvShape& s, const Operand& x, const Operand& gy, const Operand& gw) {
  GemmPlan p;
  if (!s.one_by_one() || !pixels_as_rows(gy, p.a.col) || !pixels_as_rows(x, p.b.row)) return false;
  p.type = gw.type();
  p.m = gy.size[1], p.n = x.size[1], p.k = int64_t{s.images} * gy.size[2] * gy.size[3];
  p.a.data = gy.data, p.a.row = gy.stride[1];
  p.b.data = x.data, p.b.col = x.stride[1];
  p.c.data = gw.data, p.c.row = gw.stride[0], p.c.col = gw.stride[1];
  gemm(c, p);
  return true;
}

void run_conv2d_weight(Args& c) {
  const Operand x = c.in(0), gy = c.in(1), gw = c.out(0), gb = c.out(1);
  const bool bias = c.flag("bias");
  c.want(x.dtype == gw.dtype && gy.dtype == gw.dtype && gb.dtype == gw.dtype);
  const ConvShape s = conv_shape(c, x, gy, c.attr("size").list);
  const int64_t pixels = int64_t{s.images} * gy.size[2] * gy.size[3];
  with_product_type(gw.type(), [&](auto one) {
    using T = decltype(one);
    const WeightPass<T> p{s, conv_image(x), conv_image(gy), pixels, 0, nullptr, 0, 0};
    const Operand no_bias{{nullptr, -1, 0, {}, {}}};
    if (gw.numel() > 0 && !conv_weight_as_matmul(c, s, x, gy, gw) &&
        !conv_by_cudnn(c, ConvDirection::of_weight, s, x, gw, gy, no_bias))
      conv_weight_gradient(c, p, gw);
    if (bias && gb.numel() > 0) conv_bias_gradient<T>(c, p.gy, pixels, gb);
  });
}

const KernelOf conv2d_weight_entry{"conv2d_weight", run_conv2d_weight};

}  // namespace
}  // namespace tenon::cuda
