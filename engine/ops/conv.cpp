#include "engine/ops/conv.h"

#include "engine/autograd/node.h"
#include "engine/kernels/conv.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/half_products.h"
#include "engine/ops/onnx_op.h"

// Note [Three convolutions]
// The gradients of a convolution are two more ops, "conv2d_input" and "conv2d_weight", and each of the three is linear
// in either of its operands, so the gradients of all three are expressed by the three again. That is double backward to
// any order.
namespace tenon {
namespace {

using ops::computed_in;
using ops::dense_as;
using ops::dense_nhwc_as;
using ops::product_type;

struct ConvAttrs {
  Dims stride, padding, dilation;
  int64_t groups;
  Dims other;       ///< conv2d_input: height and width of x; conv2d_weight: of the kernel; else empty
  bool bias;        ///< conv2d_weight: the second output is wanted
  Dims extra = {};  ///< conv2d_input as a transposed convolution: output_padding; else empty
  template <class F>
  void fields(F&& f) const {
    f("stride", stride);
    f("padding", padding);
    f("dilation", dilation);
    f("groups", groups);
    f("size", other, other.n > 0);
    f("bias", bias, false);
    f("output_padding", extra, extra.n > 0);
  }
  ConvAttrs with(Dims size, bool b = false) const { return {stride, padding, dilation, groups, size, b, {}}; }
};

int64_t out_size(const ConvAttrs& a, int64_t in, int64_t kernel, int i) {
  return (in + 2 * a.padding[i] - a.dilation[i] * (kernel - 1) - 1) / a.stride[i] + 1;
}

/// `t`: that it is computed in.
kernels::ConvShape conv_shape(const ConvAttrs& a, const Shape& x, const Shape& w, const Shape& y, bool bias, DType t) {
  return {x[0],         x[1],          x[2],          x[3],        w[0],        y[2],
          y[3],         w[2],          w[3],          a.stride[0], a.stride[1], a.padding[0],
          a.padding[1], a.dilation[0], a.dilation[1], a.groups,    bias,        t == DType::bf16};
}

/// Calls f with a value of the type that a convolution is computed in; of bf16 with its bits.
template <class F>
auto of_type(DType t, const F& f) {
  return t == DType::bf16 ? f(uint16_t{}) : t == DType::f32 ? f(float{}) : f(double{});
}
size_t conv_room(const kernels::ConvShape& s, DType t, kernels::ConvPass pass, const kernels::WeightKeeper& keep = {}) {
  return of_type(t, [&](auto one) { return kernels::conv2d_workspace<decltype(one)>(s, pass, keep); });
}
/// Of weights that are read as they are.
kernels::WeightKeeper keeper(const Tensor& w, DType t) {
  return w.dtype() == t && t != DType::f64 ? kernels::WeightKeeper(w) : kernels::WeightKeeper();
}

double conv_flops(const Shape& w, const Shape& y) {
  return 2.0 * static_cast<double>(y.product()) * static_cast<double>(w[1] * w[2] * w[3]);
}

void place_nhwc(Layout* out) { out[0] = Layout::channels_last(out[0].size); }

Tensor input_gradient(const ConvAttrs& a, const Tensor& gy, const Tensor& w, int64_t h, int64_t width);
void weight_gradient(const ConvAttrs& a, const Tensor& x, const Tensor& gy, int64_t kh, int64_t kw, bool bias,
                     Tensor* out);
Tensor forward(const ConvAttrs& a, const Tensor& x, const Tensor& w, const Tensor& b);

struct Conv2d {
  static constexpr OpInfo info{.name = "conv2d", .onnx = "Conv", .kind = OpKind::conv, .own_halves = true};
  using Attrs = ConvAttrs;
  static Meta infer(const Attrs& a, const Meta& x, const Meta& w, const Meta& b) {
    bool bias = !absent(b);
    Meta m = x;
    m.dtype = bias ? product_type({&x, &w, &b}) : product_type({&x, &w});
    const Shape &s = x.shape, &k = w.shape;
    if (s.n != 4) throw Error("its input has size " + to_string(s) + "; it must be [batch, channels, height, width]");
    if (k.n != 4)
      throw Error("its weight has size " + to_string(k) +
                  "; it must be [out channels, in channels / groups, height, width]");
    if (a.groups < 1 || s[1] % a.groups || k[0] % a.groups)
      throw Error(std::to_string(a.groups) + " groups do not divide " + std::to_string(s[1]) + " input and " +
                  std::to_string(k[0]) + " output channels");
    if (s[1] != k[1] * a.groups)
      throw Error("an input of size " + to_string(s) + " has " + std::to_string(s[1]) + " channels; a weight of size " +
                  to_string(k) + " takes " + std::to_string(k[1] * a.groups));
    if (bias && !(b.shape == Shape{k[0]}))
      throw Error("a bias of size " + to_string(b.shape) + " does not fit " + std::to_string(k[0]) +
                  " output channels");
    m.shape = {s[0], k[0], 0, 0};
    for (int i = 0; i < 2; ++i) {
      if (a.stride[i] < 1 || a.dilation[i] < 1 || a.padding[i] < 0)
        throw Error("stride and dilation are at least 1, padding at least 0");
      if (s[i + 2] + 2 * a.padding[i] < a.dilation[i] * (k[i + 2] - 1) + 1)
        throw Error("a window of " + std::to_string(a.dilation[i] * (k[i + 2] - 1) + 1) + " does not fit " +
                        (i ? "width " : "height ") + std::to_string(s[i + 2]) + " with padding " +
                        std::to_string(a.padding[i]),
                    "use more padding or a smaller kernel");
      m.shape[i + 2] = out_size(a, s[i + 2], k[i + 2], i);
    }
    return m;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { place_nhwc(out); }
  static kernels::ConvShape shape(const Call& c) {
    return conv_shape(c.as<Attrs>(), c.in[0].size(), c.in[1].size(), c.out[0].size(), c.in[2].defined(),
                      computed_in(c.out[0].dtype()));
  }
  static size_t workspace(const Attrs&, const Call& c) {
    const DType t = computed_in(c.out[0].dtype());
    kernels::Room room;
    dense_nhwc_as(c.in[0], t, room), dense_as(c.in[1], t, room), dense_as(c.in[2], t, room);
    ops::wide_result(c.out[0], room);
    return room.used() + conv_room(shape(c), t, kernels::ConvPass::forward, keeper(c.in[1], t));
  }
  static void cpu(const Call& c) {
    const DType t = computed_in(c.out[0].dtype());
    kernels::Room room(c.workspace);
    const Tensor x = dense_nhwc_as(c.in[0], t, room), w = dense_as(c.in[1], t, room), b = dense_as(c.in[2], t, room),
                 wide = ops::wide_result(c.out[0], room), &y = wide ? wide : c.out[0];
    const kernels::ConvShape s = shape(c);
    of_type(t, [&](auto one) {
      using T = decltype(one);
      kernels::conv2d_forward<T>(s, x.data<T>(), w.data<T>(), b ? b.data<T>() : nullptr, y.data<T>(), room.rest(),
                                 keeper(c.in[1], t));
    });
    if (wide) ops::write_output(c.out[0], wide);
  }
  static constexpr Saves saves{.inputs = 0b011};
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    const Shape &x = d.meta(0).shape, &w = d.meta(1).shape;
    if (d.needs(0)) d.in(0) = input_gradient(a, d.out(), d.x(1), x[2], x[3]);
    bool bias = d.inputs() > 2 && d.needs(2);
    if (!d.needs(1) && !bias) return;
    Tensor g[2];
    weight_gradient(a, d.x(0), d.out(), w[2], w[3], bias, g);
    if (d.needs(1)) d.in(1) = g[0];
    if (bias) d.in(2) = g[1];
  }
  static Cost cost(const Attrs&, const Call& c) { return {conv_flops(c.in[1].size(), c.out[0].size())}; }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("strides", a.stride);
    o.set("pads", Dims{a.padding[0], a.padding[1], a.padding[0], a.padding[1]});
    o.set("dilations", a.dilation);
    o.set("group", a.groups);
  }
  static void samples(Samples& s) {
    s.add("3 x 3", Attrs{{1, 1}, {1, 1}, {1, 1}, 1}, {s.values({2, 3, 5, 4}), s.values({4, 3, 3, 3}), s.values({4})});
    s.add("strided, dilated, no bias", Attrs{{2, 1}, {1, 2}, {1, 2}, 1},
          {s.values({2, 2, 5, 6}), s.values({3, 2, 2, 3}), Tensor()});
    s.add("two groups", Attrs{{1, 1}, {0, 0}, {1, 1}, 2},
          {s.values({1, 4, 4, 4}), s.values({6, 2, 3, 3}), s.values({6})});
  }
};

struct Conv2dInput {
  static constexpr OpInfo info{
      .name = "conv2d_input", .onnx = "ConvTranspose", .kind = OpKind::conv, .own_halves = true};
  using Attrs = ConvAttrs;
  static Meta infer(const Attrs& a, const Meta& gy, const Meta& w) {
    Meta m = gy;
    m.dtype = product_type({&gy, &w});
    if (gy.shape.n != 4 || w.shape.n != 4 || gy.shape[1] != w.shape[0] || a.groups < 1 || gy.shape[1] % a.groups)
      throw Error("an input of size " + to_string(gy.shape) + " and a weight of size " + to_string(w.shape) +
                  " do not fit: [batch, channels, height, width] and [channels, out channels / groups, height, width]");
    for (int i = 0; i < 2; ++i)
      if (a.stride[i] < 1 || a.dilation[i] < 1 || a.padding[i] < 0 || a.other[i] < 1 ||
          out_size(a, a.other[i], w.shape[i + 2], i) != gy.shape[i + 2])
        throw Error("an output of " + to_string(a.other) + " does not come from an input of size " +
                        to_string(gy.shape) + " and a weight of size " + to_string(w.shape),
                    "check stride, padding and output_padding");
    m.shape = {gy.shape[0], w.shape[1] * a.groups, a.other[0], a.other[1]};
    return m;
  }
  static void place(const Attrs&, const Tensor*, Layout* out) { place_nhwc(out); }
  static kernels::ConvShape shape(const Call& c) {
    return conv_shape(c.as<Attrs>(), c.out[0].size(), c.in[1].size(), c.in[0].size(), false,
                      computed_in(c.out[0].dtype()));
  }
  static size_t workspace(const Attrs&, const Call& c) {
    const DType t = computed_in(c.out[0].dtype());
    kernels::Room room;
    dense_nhwc_as(c.in[0], t, room), dense_as(c.in[1], t, room);
    ops::wide_result(c.out[0], room);
    return room.used() + conv_room(shape(c), t, kernels::ConvPass::backward_data, keeper(c.in[1], t));
  }
  static void cpu(const Call& c) {
    const DType t = computed_in(c.out[0].dtype());
    kernels::Room room(c.workspace);
    const Tensor gy = dense_nhwc_as(c.in[0], t, room), w = dense_as(c.in[1], t, room),
                 wide = ops::wide_result(c.out[0], room), &gx = wide ? wide : c.out[0];
    const kernels::ConvShape s = shape(c);
    of_type(t, [&](auto one) {
      using T = decltype(one);
      kernels::conv2d_backward_data<T>(s, gy.data<T>(), w.data<T>(), gx.data<T>(), room.rest(), keeper(c.in[1], t));
    });
    if (wide) ops::write_output(c.out[0], wide);
  }
  static constexpr Saves saves{.inputs = 0b11};
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    ConvAttrs plain = a.with({});
    if (d.needs(0)) d.in(0) = forward(plain, d.out(), d.x(1), {});
    if (!d.needs(1)) return;
    Tensor g[2];
    weight_gradient(plain, d.out(), d.x(0), d.meta(1).shape[2], d.meta(1).shape[3], false, g);
    d.in(1) = g[0];
  }
  static Cost cost(const Attrs&, const Call& c) { return {conv_flops(c.in[1].size(), c.in[0].size())}; }
  static void onnx(const Attrs& a, OnnxOp& o) {
    if (a.extra.n != 2) o.unsupported = "the gradient of a convolution";
    o.set("strides", a.stride);
    o.set("pads", Dims{a.padding[0], a.padding[1], a.padding[0], a.padding[1]});
    o.set("dilations", a.dilation);
    o.set("group", a.groups);
    o.set("output_padding", a.extra);
  }
  static void samples(Samples& s) {
    s.add("transposed", Attrs{{2, 2}, {1, 0}, {1, 1}, 2, {5, 8}, false, {0, 1}},
          {s.values({2, 4, 3, 3}), s.values({4, 3, 3, 3})});
    s.add("3 x 3", Attrs{{1, 1}, {1, 1}, {1, 1}, 1, {5, 4}}, {s.values({2, 4, 5, 4}), s.values({4, 3, 3, 3})});
    s.add("strided", Attrs{{2, 2}, {1, 1}, {1, 1}, 1, {6, 5}}, {s.values({2, 4, 3, 3}), s.values({4, 2, 3, 3})});
  }
};

struct Conv2dWeight {
  static constexpr OpInfo info{.name = "conv2d_weight", .kind = OpKind::conv, .outputs = 2, .own_halves = true};
  using Attrs = ConvAttrs;
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    const Meta &x = in[0].meta(), &gy = in[1].meta();
    out[0] = out[1] = x;
    out[0].dtype = out[1].dtype = product_type({&x, &gy});
    out[0].shape = {gy.shape[1], x.shape[1] / a.groups, a.other[0], a.other[1]};
    out[1].shape = {a.bias ? gy.shape[1] : 0};
  }
  static kernels::ConvShape shape(const Call& c) {
    return conv_shape(c.as<Attrs>(), c.in[0].size(), c.out[0].size(), c.in[1].size(), c.as<Attrs>().bias,
                      computed_in(c.out[0].dtype()));
  }
  static size_t workspace(const Attrs&, const Call& c) {
    const DType t = computed_in(c.out[0].dtype());
    kernels::Room room;
    dense_nhwc_as(c.in[0], t, room), dense_nhwc_as(c.in[1], t, room);
    ops::wide_result(c.out[0], room), ops::wide_result(c.out[1], room);
    return room.used() + conv_room(shape(c), t, kernels::ConvPass::backward_weights);
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    const DType t = computed_in(c.out[0].dtype());
    kernels::Room room(c.workspace);
    const Tensor x = dense_nhwc_as(c.in[0], t, room), gy = dense_nhwc_as(c.in[1], t, room),
                 wide_w = ops::wide_result(c.out[0], room), wide_b = ops::wide_result(c.out[1], room),
                 &gw = wide_w ? wide_w : c.out[0], &gb = wide_b ? wide_b : c.out[1];
    const kernels::ConvShape s = shape(c);
    of_type(t, [&](auto one) {
      using T = decltype(one);
      kernels::conv2d_backward_weights<T>(s, x.data<T>(), gy.data<T>(), gw.data<T>(), a.bias ? gb.data<T>() : nullptr,
                                          room.rest());
    });
    if (wide_w) ops::write_output(c.out[0], wide_w);
    if (wide_b && a.bias) ops::write_output(c.out[1], wide_b);
  }
  static constexpr Saves saves{.inputs = 0b11};
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    ConvAttrs plain = a.with({});
    Tensor gw = d.out(0), gb = a.bias ? d.out(1) : Tensor();
    const Shape& x = d.meta(0).shape;
    if (!gw) {
      if (!gb) return;
      gw = full({d.out_meta(0).shape[0], d.out_meta(0).shape[1], a.other[0], a.other[1]}, 0, gb.dtype(), gb.device());
    }
    if (d.needs(0)) d.in(0) = input_gradient(plain, d.x(1), gw, x[2], x[3]);
    if (d.needs(1)) d.in(1) = forward(plain, d.x(0), gw, gb);
  }
  static Cost cost(const Attrs&, const Call& c) { return {conv_flops(c.out[0].size(), c.in[1].size())}; }
  static void samples(Samples& s) {
    s.add("3 x 3", Attrs{{1, 1}, {1, 1}, {1, 1}, 1, {3, 3}, true}, {s.values({2, 3, 5, 4}), s.values({2, 4, 5, 4})});
    s.add("strided", Attrs{{2, 2}, {1, 1}, {1, 1}, 1, {3, 3}, false}, {s.values({2, 2, 6, 5}), s.values({2, 4, 3, 3})});
  }
};

const Register<Conv2d> conv2d_op;
const Register<Conv2dInput> conv2d_input_op;
const Register<Conv2dWeight> conv2d_weight_op;

Tensor input_gradient(const ConvAttrs& a, const Tensor& gy, const Tensor& w, int64_t h, int64_t width) {
  return apply<Conv2dInput>(a.with({h, width}), gy, w);
}
void weight_gradient(const ConvAttrs& a, const Tensor& x, const Tensor& gy, int64_t kh, int64_t kw, bool bias,
                     Tensor* out) {
  const Tensor in[] = {x, gy};
  apply_many<Conv2dWeight>(a.with({kh, kw}, bias), in, 2, out);
}
Tensor forward(const ConvAttrs& a, const Tensor& x, const Tensor& w, const Tensor& b) {
  return apply<Conv2d>(a, x, w, b);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o) {
  return forward({o.stride, o.padding, o.dilation, o.groups, {}, false, {}}, channels_last(x), weight, bias);
}

Tensor conv2d_transposed(const Tensor& x, const Tensor& weight, int64_t height, int64_t width, const Conv2dOptions& o) {
  Dims extra, size{height, width};
  for (int i = 0; i < 2 && x.ndim() == 4 && weight.ndim() == 4; ++i)
    extra.push_back(size[i] - ((x.size(i + 2) - 1) * o.stride[i] - 2 * o.padding[i] +
                               o.dilation[i] * (weight.size(i + 2) - 1) + 1));
  return apply<Conv2dInput>({o.stride, o.padding, o.dilation, o.groups, size, false, extra}, channels_last(x), weight);
}

}  // namespace tenon
