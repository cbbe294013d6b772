#include "engine/ops/pool.h"

#include "engine/autograd/node.h"
#include "engine/kernels/pool.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/element_cost.h"
#include "engine/ops/onnx_op.h"

namespace tenon {
namespace {

using ops::common_float;
using ops::dense_nhwc;
using ops::float_or_double;

struct PoolAttrs {
  Dims kernel, stride, padding, dilation;
  Dims input;  ///< height and width of x; for the gradient
  template <class F>
  void fields(F&& f) const {
    f("kernel", kernel);
    f("stride", stride);
    f("padding", padding);
    f("dilation", dilation);
    f("input", input, false);
  }
};

bool small_window(const PoolAttrs& a) { return a.kernel.product() <= 255; }

/// Of all windows along an axis, the taps that lie in an image of this size.
int64_t taps_inside(const PoolAttrs& a, int axis, int64_t image, int64_t windows) {
  int64_t taps = 0;
  for (int64_t o = 0; o < windows; ++o)
    for (int64_t k = 0; k < a.kernel[axis]; ++k) {
      const int64_t at = o * a.stride[axis] - a.padding[axis] + k * a.dilation[axis];
      taps += at >= 0 && at < image;
    }
  return taps;
}
DType index_type(const PoolAttrs& a) { return small_window(a) ? DType::u8 : DType::i32; }

kernels::PoolShape pool_shape(const PoolAttrs& a, const Shape& x, const Shape& y) {
  return {x[0],        x[1],        x[2],        x[3],         y[2],         y[3],          a.kernel[0],
          a.kernel[1], a.stride[0], a.stride[1], a.padding[0], a.padding[1], a.dilation[0], a.dilation[1]};
}

/// f(a value of the dtype, an index of the window's index type)
template <class F>
void typed(DType t, const PoolAttrs& a, const F& f) {
  float_or_double(t, [&](auto one) {
    if (small_window(a))
      f(one, uint8_t{});
    else
      f(one, int32_t{});
  });
}

struct MaxPool2d {
  static constexpr OpInfo info{"max_pool2d", "MaxPool", OpKind::pool, 2};
  using Attrs = PoolAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    const Meta& x = in[0].meta();
    const Shape& s = x.shape;
    common_float({&x});
    if (s.n != 4) throw Error("its input has size " + to_string(s) + "; it must be [batch, channels, height, width]");
    out[0] = out[1] = x;
    for (int i = 0; i < 2; ++i) {
      if (a.kernel[i] < 1 || a.stride[i] < 1 || a.dilation[i] < 1 || a.padding[i] < 0)
        throw Error("kernel, stride and dilation are at least 1, padding at least 0");
      if (a.padding[i] * 2 > a.kernel[i])
        throw Error("padding " + std::to_string(a.padding[i]) + " is more than half the kernel " +
                    std::to_string(a.kernel[i]));
      int64_t reach = a.dilation[i] * (a.kernel[i] - 1) + 1;
      if (s[i + 2] + 2 * a.padding[i] < reach)
        throw Error("a window of " + std::to_string(reach) + " does not fit " + (i ? "width " : "height ") +
                    std::to_string(s[i + 2]) + " with padding " + std::to_string(a.padding[i]));
      out[0].shape[i + 2] = (s[i + 2] + 2 * a.padding[i] - reach) / a.stride[i] + 1;
      // With dilation a window's taps can all fall beside a small image: then it has no largest value.
      for (int64_t o = 0; o < out[0].shape[i + 2] && a.dilation[i] > 1; ++o) {
        int64_t start = o * a.stride[i] - a.padding[i];
        int64_t first = start >= 0 ? start : start + (-start + a.dilation[i] - 1) / a.dilation[i] * a.dilation[i];
        if (first >= s[i + 2] || first > start + reach - 1)
          throw Error("with dilation " + std::to_string(a.dilation[i]) + " and padding " +
                          std::to_string(a.padding[i]) + " a window has no element inside " +
                          (i ? "width " : "height ") + std::to_string(s[i + 2]),
                      "use less padding or dilation");
        if (start >= 0) break;  // later windows begin inside
      }
    }
    out[1].shape = out[0].shape;
    out[1].dtype = index_type(a);
  }
  static void place(const Attrs&, const Tensor*, Layout* out) {
    out[0] = Layout::channels_last(out[0].size);
    out[1] = Layout::channels_last(out[1].size);
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_nhwc_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense_nhwc(c.in[0], room);
    typed(x.dtype(), a, [&](auto one, auto index) {
      using T = decltype(one);
      using I = decltype(index);
      kernels::max_pool2d_forward<T, I>(pool_shape(a, x.size(), c.out[0].size()), x.data<T>(), c.out[0].data<T>(),
                                        c.out[1].data<I>());
    });
  }
  static Cost cost(const Attrs& a, const Call& c) {
    const Tensor &x = c.in[0], &y = c.out[0];
    return {static_cast<double>(x.size(0) * x.size(1)) * static_cast<double>(taps_inside(a, 0, x.size(2), y.size(2))) *
            static_cast<double>(taps_inside(a, 1, x.size(3), y.size(3)))};
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b10};
  static void backward(Grad& d);
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("kernel_shape", a.kernel);
    o.set("strides", a.stride);
    o.set("pads", Dims{a.padding[0], a.padding[1], a.padding[0], a.padding[1]});
    o.set("dilations", a.dilation);
  }
  static void samples(Samples& s) {
    s.add("2 x 2", Attrs{{2, 2}, {2, 2}, {0, 0}, {1, 1}, {4, 5}}, {s.values({2, 3, 4, 5})});
    s.add("overlapping, padded", Attrs{{3, 2}, {1, 2}, {1, 0}, {1, 1}, {5, 4}}, {s.values({1, 2, 5, 4})});
    s.add("dilated", Attrs{{2, 2}, {1, 1}, {0, 0}, {2, 3}, {5, 6}}, {s.values({1, 2, 5, 6})});
  }
};

/// Inputs gy and index.
struct MaxPool2dBackward {
  static constexpr OpInfo info{"max_pool2d_backward", "", OpKind::pool};
  using Attrs = PoolAttrs;
  static Meta infer(const Attrs& a, const Meta& gy, const Meta&) {
    Meta m = gy;
    m.shape[2] = a.input[0];
    m.shape[3] = a.input[1];
    return m;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { out[0] = Layout::channels_last(out[0].size); }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_nhwc_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor gy = dense_nhwc(c.in[0], room), index = dense_nhwc(c.in[1], room);
    typed(gy.dtype(), a, [&](auto one, auto i) {
      using T = decltype(one);
      using I = decltype(i);
      kernels::max_pool2d_backward<T, I>(pool_shape(a, c.out[0].size(), gy.size()), gy.data<T>(), index.data<I>(),
                                         c.out[0].data<T>());
    });
  }
  static Cost cost(const Attrs&, const Call& c) { return ops::element_cost(c.in[0], 1); }
  static constexpr Saves saves{.inputs = 0b10};
  static void backward(Grad& d);
  static void samples(Samples& s) {
    s.add("2 x 2", Attrs{{2, 2}, {2, 2}, {0, 0}, {1, 1}, {4, 5}},
          {s.values({2, 3, 2, 2}), cast(s.indices({2, 3, 2, 2}, 4), DType::u8)});
  }
};

/// Inputs v (of x's size) and index: the value of v where each window's maximum was. The adjoint of the backward op.
struct MaxPool2dGather {
  static constexpr OpInfo info{"max_pool2d_gather", "", OpKind::pool};
  using Attrs = PoolAttrs;
  static Meta infer(const Attrs&, const Meta& v, const Meta& index) {
    Meta m = v;
    m.shape = index.shape;
    return m;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { out[0] = Layout::channels_last(out[0].size); }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_nhwc_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor v = dense_nhwc(c.in[0], room), index = dense_nhwc(c.in[1], room);
    typed(v.dtype(), a, [&](auto one, auto i) {
      using T = decltype(one);
      using I = decltype(i);
      kernels::max_pool2d_gather<T, I>(pool_shape(a, v.size(), c.out[0].size()), v.data<T>(), index.data<I>(),
                                       c.out[0].data<T>());
    });
  }
  static constexpr Saves saves{.inputs = 0b10};
  static void backward(Grad& d) { d.in(0) = apply<MaxPool2dBackward>(d.as<Attrs>(), d.out(), d.x(1)); }
  static void samples(Samples& s) {
    s.add("2 x 2", Attrs{{2, 2}, {2, 2}, {0, 0}, {1, 1}, {4, 5}},
          {s.values({2, 3, 4, 5}), cast(s.indices({2, 3, 2, 2}, 4), DType::u8)});
  }
};

void MaxPool2d::backward(Grad& d) { d.in(0) = apply<MaxPool2dBackward>(d.as<Attrs>(), d.out(), d.y(1)); }
void MaxPool2dBackward::backward(Grad& d) { d.in(0) = apply<MaxPool2dGather>(d.as<Attrs>(), d.out(), d.x(1)); }

const Register<MaxPool2d> max_pool2d_op;
const Register<MaxPool2dBackward> max_pool2d_backward_op;
const Register<MaxPool2dGather> max_pool2d_gather_op;

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& o) {
  const Tensor in[] = {channels_last(x)};
  Tensor out[2];
  Dims size = x.ndim() == 4 ? Dims{x.size(2), x.size(3)} : Dims{};
  apply_many<MaxPool2d>({o.kernel, o.stride, o.padding, o.dilation, size}, in, 1, out);
  return out[0];
}

}  // namespace tenon
