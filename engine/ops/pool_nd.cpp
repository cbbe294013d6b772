#include "engine/ops/pool_nd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/backend.h"
#include "core/parallel.h"
#include "core/random.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/gather.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pad.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/pool.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

// Everything is a volume [n, c, d, h, w] here, with the channels innermost in memory.
struct WindowsAttrs {
  Dims kernel, stride, padding, dilation, in, out;  ///< three numbers each
  bool adaptive = false, include_pad = true;
  int64_t divisor = 0;
  template <class F>
  void fields(F&& f) const {
    f("kernel", kernel);
    f("stride", stride);
    f("padding", padding);
    f("dilation", dilation);
    f("out", out);
    f("adaptive", adaptive);
    f("count_include_pad", include_pad);
    f("divisor", divisor);
    f("in", in, false);
  }
};

/// The elements of one window along one axis, and how many it counts for.
struct Span {
  int64_t begin, end, step, counted;
};
Span span_of(const WindowsAttrs& a, int axis, int64_t o) {
  int64_t n = a.in[axis];
  if (a.adaptive) {
    int64_t begin = o * n / a.out[axis], end = ((o + 1) * n + a.out[axis] - 1) / a.out[axis];
    return {begin, end, 1, end - begin};
  }
  int64_t start = o * a.stride[axis] - a.padding[axis], step = a.dilation[axis],
          stop = start + (a.kernel[axis] - 1) * step + 1;
  int64_t begin = start >= 0 ? start : start + (-start + step - 1) / step * step, end = std::min(stop, n);
  int64_t counted =
      a.include_pad ? std::min(start + a.kernel[axis], n + a.padding[axis]) - start : std::max<int64_t>(0, end - begin);
  return {begin, end, step, counted};
}

Layout channels_innermost(const Shape& s) {
  Layout l = Layout::contiguous(s);
  l.stride[1] = 1;
  int64_t step = s[1];
  for (int axis : {4, 3, 2, 0}) {
    l.stride[axis] = step;
    step *= s[axis];
  }
  return l;
}
Tensor channel_rows(const Tensor& x, kernels::Room& room) {
  Layout l = channels_innermost(x.size());
  bool there = true;
  for (int i = 0; i < 5; ++i) there &= x.size(i) == 1 || x.stride()[i] == l.stride[i];
  return there ? x : ops::copied(x, l, room);
}
size_t channel_rows_bytes(const Call& c) {
  kernels::Room room;
  channel_rows(c.in[0], room);
  return room.used();
}

void check_windows(const WindowsAttrs& a, const Meta& x, const Dims& has) {
  ops::common_float({&x});
  if (x.shape.n != 5)
    throw Error("its input has size " + to_string(x.shape) + "; it must be [batch, channels, 1 to 3 axes]");
  for (int i = 0; i < 3; ++i)
    if (x.shape[i + 2] != has[i])
      throw Error("an input of size " + to_string(x.shape) + " does not fit windows over " + to_string(has));
  for (int i = 0; i < 3; ++i)
    if (a.adaptive ? a.out[i] < 1 || a.in[i] < 1
                   : a.kernel[i] < 1 || a.stride[i] < 1 || a.dilation[i] < 1 || a.padding[i] < 0 ||
                         a.padding[i] * 2 > a.kernel[i] || a.out[i] < 1)
      throw Error(
          a.adaptive
              ? "the sizes must be at least 1"
              : "kernel, stride and dilation are at least 1, padding at most half the kernel, and a window must fit " +
                    to_string(a.in));
}

/// Calls f(row of the output, row of the input, first tap, counted elements) for every tap of every window of the
/// images [begin, end).
template <class F>
void each_tap(const WindowsAttrs& a, int64_t begin, int64_t end, const F& f) {
  int64_t volume = a.in.product(), row = begin * a.out.product();
  for (int64_t n = begin; n < end; ++n)
    for (int64_t od = 0; od < a.out[0]; ++od) {
      Span d = span_of(a, 0, od);
      for (int64_t oh = 0; oh < a.out[1]; ++oh) {
        Span h = span_of(a, 1, oh);
        for (int64_t ow = 0; ow < a.out[2]; ++ow, ++row) {
          Span w = span_of(a, 2, ow);
          int64_t counted = d.counted * h.counted * w.counted;
          bool first = true;
          for (int64_t z = d.begin; z < d.end; z += d.step)
            for (int64_t y = h.begin; y < h.end; y += h.step)
              for (int64_t x = w.begin; x < w.end; x += w.step) {
                f(row, n * volume + (z * a.in[1] + y) * a.in[2] + x, first, counted);
                first = false;
              }
          if (first) f(row, int64_t{-1}, true, counted);
        }
      }
    }
}

/// Taps of all windows of the images that `images` holds, in all channels.
double taps_of_windows(const WindowsAttrs& a, const Tensor& images) {
  double taps = static_cast<double>(images.size(0)) * static_cast<double>(images.size(1));
  for (int axis = 0; axis < 3; ++axis) {
    int64_t along = 0;
    for (int64_t o = 0; o < a.out[axis]; ++o) {
      const Span s = span_of(a, axis, o);
      along += std::max<int64_t>(0, (s.end - s.begin + s.step - 1) / s.step);
    }
    taps *= static_cast<double>(along);
  }
  return taps;
}

/// Windows as ONNX's pooling operators describe them.
void window_onnx(const WindowsAttrs& a, OnnxOp& o) {
  Dims pads = a.padding, window = a.kernel;
  bool ceil = false;
  for (int i = 0; i < 3; ++i) {
    pads.push_back(a.adaptive ? 0 : a.padding[i]);
    if (!a.adaptive) {
      ceil |= (a.in[i] + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1) / a.stride[i] + 1 < a.out[i];
      continue;
    }
    if (a.in[i] % a.out[i]) o.unsupported = "windows of several sizes";
    window[i] = a.in[i] / a.out[i];
  }
  if (!o.unsupported.empty()) return;
  o.set("kernel_shape", window);
  o.set("strides", a.adaptive ? window : a.stride);
  o.set("pads", pads);
  o.set("ceil_mode", static_cast<int64_t>(ceil));
}

struct AvgPool {
  static constexpr OpInfo info{"avg_pool", "AveragePool", OpKind::pool};
  using Attrs = WindowsAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    check_windows(a, x, a.in);
    Meta m = x;
    for (int i = 0; i < 3; ++i) m.shape[i + 2] = a.out[i];
    return m;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { out[0] = channels_innermost(out[0].size); }
  static size_t workspace(const Attrs&, const Call& c) { return channel_rows_bytes(c); }
  static Cost cost(const Attrs& a, const Call& c) { return {2 * taps_of_windows(a, c.in[0])}; }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    kernels::Room room(c.workspace);
    Tensor x = channel_rows(c.in[0], room);
    int64_t channels = x.size(1);
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      parallel_for(x.size(0), 1, [&](int64_t begin, int64_t end) {
        each_tap(a, begin, end, [&](int64_t o, int64_t i, bool first, int64_t counted) {
          T* __restrict to = c.out[0].data<T>() + o * channels;
          if (first) std::fill_n(to, channels, T(0));
          if (i < 0) return;
          const T* __restrict from = x.data<T>() + i * channels;
          T share = T(1) / static_cast<T>(a.divisor ? a.divisor : std::max<int64_t>(1, counted));
          for (int64_t j = 0; j < channels; ++j) to[j] += from[j] * share;
        });
      });
    });
  }
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d);
  static void onnx(const Attrs& a, OnnxOp& o) {
    window_onnx(a, o);
    if (a.divisor) o.unsupported = "averages with a divisor of their own";
    o.set("count_include_pad", static_cast<int64_t>(a.include_pad && !a.adaptive));
  }
  static void samples(Samples& s) {
    s.add("overlapping, padded", Attrs{{1, 3, 2}, {1, 2, 1}, {0, 1, 0}, {1, 1, 1}, {1, 5, 4}, {1, 3, 3}},
          {s.values({2, 3, 1, 5, 4})});
    s.add("without padding's share",
          Attrs{{2, 2, 2}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, {2, 2, 3}, {3, 3, 2}, false, false},
          {s.values({1, 2, 2, 2, 3})});
    s.add("adaptive", Attrs{{}, {}, {}, {}, {1, 5, 3}, {1, 3, 2}, true}, {s.values({2, 2, 1, 5, 3})});
  }
};

/// The adjoint.
struct AvgPoolBackward {
  static constexpr OpInfo info{"avg_pool_backward", "", OpKind::pool};
  using Attrs = WindowsAttrs;
  static Meta infer(const Attrs& a, const Meta& g) {
    check_windows(a, g, a.out);
    Meta m = g;
    for (int i = 0; i < 3; ++i) m.shape[i + 2] = a.in[i];
    return m;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { out[0] = channels_innermost(out[0].size); }
  static size_t workspace(const Attrs&, const Call& c) { return channel_rows_bytes(c); }
  static Cost cost(const Attrs& a, const Call& c) { return {2 * taps_of_windows(a, c.in[0])}; }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    kernels::Room room(c.workspace);
    Tensor g = channel_rows(c.in[0], room);
    int64_t channels = g.size(1), image = a.in.product() * channels;
    ops::float_or_double(g.dtype(), [&](auto one) {
      using T = decltype(one);
      parallel_for(g.size(0), 1, [&](int64_t begin, int64_t end) {
        std::fill(c.out[0].data<T>() + begin * image, c.out[0].data<T>() + end * image, T(0));
        each_tap(a, begin, end, [&](int64_t o, int64_t i, bool, int64_t counted) {
          if (i < 0) return;
          const T* __restrict from = g.data<T>() + o * channels;
          T* __restrict to = c.out[0].data<T>() + i * channels;
          T share = T(1) / static_cast<T>(a.divisor ? a.divisor : std::max<int64_t>(1, counted));
          for (int64_t j = 0; j < channels; ++j) to[j] += from[j] * share;
        });
      });
    });
  }
  static void backward(Grad& d) { d.in(0) = apply<AvgPool>(d.as<Attrs>(), d.out()); }
  static void samples(Samples& s) {
    s.add("overlapping", Attrs{{1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {1, 3, 3}, {1, 2, 2}},
          {s.values({2, 2, 1, 2, 2})});
  }
};
void AvgPool::backward(Grad& d) { d.in(0) = apply<AvgPoolBackward>(d.as<Attrs>(), d.out()); }

/// Outputs the maxima and where in the volume they were.
struct MaxPool {
  static constexpr OpInfo info{"max_pool", "MaxPool", OpKind::pool, 2};
  using Attrs = WindowsAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    check_windows(a, in[0].meta(), a.in);
    out[0] = in[0].meta();
    for (int i = 0; i < 3; ++i) {
      out[0].shape[i + 2] = a.out[i];
      for (int64_t o = 0; o < a.out[i]; ++o)
        if (Span s = span_of(a, i, o); s.begin >= s.end)
          throw Error("with dilation " + to_string(a.dilation) + " and padding " + to_string(a.padding) +
                          " a window has no element inside " + to_string(a.in),
                      "use less padding or dilation");
    }
    out[1] = out[0];
    out[1].dtype = DType::i64;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { out[0] = out[1] = channels_innermost(out[0].size); }
  static size_t workspace(const Attrs&, const Call& c) { return channel_rows_bytes(c); }
  static Cost cost(const Attrs& a, const Call& c) { return {taps_of_windows(a, c.in[0])}; }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    kernels::Room room(c.workspace);
    Tensor x = channel_rows(c.in[0], room);
    int64_t channels = x.size(1), volume = a.in.product();
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      parallel_for(x.size(0), 1, [&](int64_t begin, int64_t end) {
        each_tap(a, begin, end, [&](int64_t o, int64_t i, bool first, int64_t) {
          T* to = c.out[0].data<T>() + o * channels;
          int64_t* at = c.out[1].data<int64_t>() + o * channels;
          const T* from = x.data<T>() + i * channels;
          for (int64_t j = 0; j < channels; ++j)
            if (first || from[j] > to[j] || (from[j] != from[j] && to[j] == to[j])) {
              to[j] = from[j];
              at[j] = i % volume;
            }
        });
      });
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b10};
  static void backward(Grad& d) {
    const Shape& x = d.meta(0).shape;
    int64_t volume = x[2] * x[3] * x[4], windows = d.out(0).size(2) * d.out(0).size(3) * d.out(0).size(4);
    Tensor g = reshape(d.out(0), {x[0], x[1], windows}), at = reshape(d.y(1), {x[0], x[1], windows});
    d.in(0) = reshape(scatter_add(zeros({x[0], x[1], volume}, g.dtype(), g.device()), 2, at, g), x);
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    window_onnx(a, o);
    if (!a.adaptive) o.set("dilations", a.dilation);
  }
  static void samples(Samples& s) {
    s.add("overlapping, padded", Attrs{{1, 3, 2}, {1, 2, 1}, {0, 1, 0}, {1, 1, 1}, {1, 5, 4}, {1, 3, 3}},
          {s.values({2, 3, 1, 5, 4})});
    s.add("adaptive volume", Attrs{{}, {}, {}, {}, {3, 3, 2}, {2, 2, 2}, true}, {s.values({1, 2, 3, 3, 2})});
  }
};

const Register<AvgPool> avg_pool_op;
const Register<AvgPoolBackward> avg_pool_backward_op;
const Register<MaxPool> max_pool_op;
// Where no window reaches over the end, a divisor of its own is a factor.
Tensor AvgPool::decompose(const Attrs& given, const std::vector<Tensor>& in) {
  WindowsAttrs a = given;
  double factor = a.divisor ? static_cast<double>(a.kernel.product()) / static_cast<double>(a.divisor) : 1;
  for (int i = 0; i < 3 && a.divisor; ++i)
    if ((a.out[i] - 1) * a.stride[i] + a.kernel[i] > a.in[i] + 2 * a.padding[i]) return apply<AvgPool>(a, in[0]);
  if (a.divisor) a.include_pad = true;
  a.divisor = 0;
  Tensor y = apply<AvgPool>(a, in[0]);
  return factor == 1 ? y : mul(y, factor);
}

int pool_axes(const char* what, const Tensor& x) {
  if (x.ndim() < 3 || x.ndim() > 5)
    throw Error(std::string(what) + ": its input has size " + to_string(x.size()) +
                "; it must be [batch, channels, 1 to 3 axes]");
  return x.ndim() - 2;
}
/// With axes of size 1 in front of the spatial ones. An image that is not channels-last becomes so first, once for all
/// that follow.
Tensor volume_of(const Tensor& x) {
  if (x.ndim() == 5) return x;
  if (x.ndim() == 4) return unsqueeze(channels_last(x), 2);
  return unsqueeze(unsqueeze(x, 2), 2);
}
Tensor without_axes(Tensor y, int axes) {
  for (int i = axes; i < 3; ++i) y = squeeze(y, 2);
  return y;
}
Dims three(const Dims& d, int axes, int64_t missing) {
  if (d.n != 1 && d.n != axes)
    throw Error("pooling: a list of " + std::to_string(d.n) + " numbers for " + std::to_string(axes) + " axes");
  Dims r = Dims::filled(3, missing);
  for (int i = 0; i < axes; ++i) r[3 - axes + i] = d[d.n == 1 ? 0 : i];
  return r;
}

WindowsAttrs windows_of(const Tensor& x, const PoolOptions& o, int axes) {
  WindowsAttrs a{three(o.kernel, axes, 1),   three(o.stride, axes, 1),          three(o.padding, axes, 0),
                 three(o.dilation, axes, 1), {x.size(2), x.size(3), x.size(4)}, {1, 1, 1}};
  a.include_pad = o.count_include_pad;
  a.divisor = o.divisor_override;
  for (int i = 0; i < 3; ++i) {
    if (a.stride[i] == 0) a.stride[i] = a.kernel[i];
    if (a.stride[i] < 1 || a.kernel[i] < 1 || a.dilation[i] < 1)
      throw Error("pooling: kernel, stride and dilation are at least 1");
    int64_t room = a.in[i] + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1;
    if (room < 0)
      throw Error("pooling: a window of " + std::to_string(a.dilation[i] * (a.kernel[i] - 1) + 1) +
                  " does not fit an axis of " + std::to_string(a.in[i]) + " with padding " +
                  std::to_string(a.padding[i]));
    a.out[i] = (room + (o.ceil_mode ? a.stride[i] - 1 : 0)) / a.stride[i] + 1;
    if (o.ceil_mode && (a.out[i] - 1) * a.stride[i] >= a.in[i] + a.padding[i]) --a.out[i];
  }
  return a;
}
WindowsAttrs adaptive_of(const Tensor& x, const Dims& output, int axes) {
  WindowsAttrs a;
  a.in = {x.size(2), x.size(3), x.size(4)};
  a.out = three(output, axes, 1);
  for (int i = 0; i < 3; ++i)
    if (a.out[i] == -1) a.out[i] = a.in[i];
  a.kernel = a.stride = a.padding = a.dilation = Dims::filled(3, 0);
  a.adaptive = true;
  return a;
}
MaxPoolResult maxima(const WindowsAttrs& a, const Tensor& v, int axes) {
  Tensor out[2];
  apply_many<MaxPool>(a, &v, 1, out);
  return {without_axes(out[0], axes), without_axes(out[1], axes)};
}

}  // namespace

Tensor avg_pool(const Tensor& x, const PoolOptions& o) {
  int axes = pool_axes("avg_pool", x);
  Tensor v = volume_of(x);
  return without_axes(apply<AvgPool>(windows_of(v, o, axes), v), axes);
}

MaxPoolResult max_pool(const Tensor& x, const PoolOptions& o) {
  int axes = pool_axes("max_pool", x);
  Tensor v = volume_of(x);
  return maxima(windows_of(v, o, axes), v, axes);
}

Tensor max_unpool(const Tensor& y, const Tensor& index, const Dims& output) {
  int axes = pool_axes("max_unpool", y);
  if (!(index.size() == y.size()) || output.n != axes)
    throw Error("max_unpool: values of size " + to_string(y.size()) + ", places of size " + to_string(index.size()) +
                " and an output of " + to_string(output) + " do not fit");
  int64_t n = y.size(0), c = y.size(1), windows = n * c > 0 ? y.numel() / (n * c) : 0;
  Shape size{n, c};
  for (int64_t s : output) size.push_back(s);
  Tensor room = zeros({n, c, output.product()}, y.dtype(), y.device());
  return reshape(scatter(room, 2, reshape(index, {n, c, windows}), reshape(y, {n, c, windows})), size);
}

Tensor adaptive_avg_pool(const Tensor& x, const Dims& output) {
  int axes = pool_axes("adaptive_avg_pool", x);
  bool one = true;
  Dims spatial;
  for (int i = 0; i < axes; ++i) {
    one &= output[output.n == 1 ? 0 : i] == 1;
    spatial.push_back(i + 2);
  }
  if (one) return mean(x, spatial, true);
  Tensor v = volume_of(x);
  return without_axes(apply<AvgPool>(adaptive_of(v, output, axes), v), axes);
}

MaxPoolResult adaptive_max_pool(const Tensor& x, const Dims& output) {
  int axes = pool_axes("adaptive_max_pool", x);
  Tensor v = volume_of(x);
  return maxima(adaptive_of(v, output, axes), v, axes);
}

Tensor lp_pool(const Tensor& x, double p, const PoolOptions& o) {
  if (p == 0) throw Error("lp_pool: the power cannot be 0");
  PoolOptions sums = o;
  sums.divisor_override = 1;
  Tensor s = avg_pool(pow(x, p), sums);
  return pow(mul(sign(s), relu(abs(s))), 1 / p);
}

Tensor fractional_max_pool2d(const Tensor& x, const Dims& kernel, const Dims& output, uint64_t seed, uint64_t stream,
                             uint64_t offset) {
  if (x.ndim() != 4 || kernel.n != 2 || output.n != 2)
    throw Error("fractional_max_pool2d: its input has size " + to_string(x.size()) +
                "; it must be [batch, channels, height, width]");
  int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3), taps = kernel.product(),
          windows = output.product();
  for (int i = 0; i < 2; ++i)
    if (kernel[i] < 1 || output[i] < 1 || output[i] + kernel[i] - 1 > x.size(i + 2))
      throw Error("fractional_max_pool2d: " + to_string(output) + " windows of " + to_string(kernel) +
                  " do not fit an image of size " + to_string(x.size()));
  if (x.is_meta()) return empty({n, c, output[0], output[1]}, x.dtype(), x.device());
  Philox random{seed, stream};
  auto start = [&](int axis, int64_t o, double u) {
    int64_t in = x.size(axis + 2);
    if (o == output[axis] - 1) return in - kernel[axis];
    double alpha = static_cast<double>(in - kernel[axis]) / static_cast<double>(output[axis] - 1);
    return static_cast<int64_t>((static_cast<double>(o) + u) * alpha) - static_cast<int64_t>(u * alpha);
  };
  Tensor at = empty({n, c, windows * taps}, DType::i64);
  int64_t* to = at.data<int64_t>();
  for (int64_t plane = 0; plane < n * c; ++plane) {
    auto draw = static_cast<uint64_t>(plane) * 2;
    double u0 = random.uniform(offset * 4 + draw), u1 = random.uniform(offset * 4 + draw + 1);
    for (int64_t oy = 0; oy < output[0]; ++oy)
      for (int64_t ox = 0; ox < output[1]; ++ox)
        for (int64_t k = 0; k < taps; ++k)
          *to++ = (start(0, oy, u0) + k / kernel[1]) * w + start(1, ox, u1) + k % kernel[1];
  }
  Tensor taken = gather(reshape(x, {n, c, h * w}), 2, to_device(at, x.device()));
  return amax(reshape(taken, {n, c, output[0], output[1], taps}), {4});
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  if (size < 1 || x.ndim() < 3)
    throw Error("local_response_norm: " + std::to_string(size) + " channels of an input of size " +
                to_string(x.size()) + "; it must be [batch, channels, ...]");
  int64_t n = x.size(0), c = x.size(1), rest = n * c > 0 ? x.numel() / (n * c) : 0;
  Tensor squares = pad(reshape(square(x), {n, c, rest}), {0, 0, size / 2, (size - 1) / 2}),
         total = narrow(squares, 1, 0, c);
  for (int64_t i = 1; i < size; ++i) total = add(total, narrow(squares, 1, i, c));
  return div(x, pow(add(mul(reshape(total, x.size()), alpha / static_cast<double>(size)), k), beta));
}

}  // namespace tenon
