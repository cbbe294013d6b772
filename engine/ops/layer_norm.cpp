#include "engine/ops/layer_norm.h"

#include "engine/autograd/composite.h"
#include "engine/kernels/layer_norm.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/element_cost.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using ops::data_or_null;
using ops::dense;
using ops::float_or_double;

struct LayerNormAttrs {
  Dims shape;  ///< of the last axes, which are normalised
  double eps;
  bool rms;
  template <class F>
  void fields(F&& f) const {
    f("shape", shape);
    f("eps", eps);
    f("rms", rms);
  }
  Shape statistics(const Shape& s) const {
    Shape r;
    for (int i = 0; i < s.n - shape.n; ++i) r.push_back(s[i]);
    return r;
  }
  Dims reduced() const {
    Dims d;
    for (int i = -shape.n; i < 0; ++i) d.push_back(i);
    return d;
  }
};

/// Inputs x, gy, weight?, mean, rstd; outputs gx, gweight, gbias. With create_graph the composite runs instead.
struct LayerNormBackward {
  static constexpr OpInfo info{"layer_norm_backward", "", OpKind::norm, 3};
  struct Attrs : LayerNormAttrs {
    bool gx, sums;  ///< which results are wanted
    template <class F>
    void fields(F&& f) const {
      f("norm", static_cast<const LayerNormAttrs&>(*this));
      f("gx", gx, false);
      f("sums", sums, false);
    }
  };
  static void infer(const Attrs& a, const Tensor* in, int, Meta* out) {
    out[0] = out[1] = out[2] = in[0].meta();
    if (!a.gx) out[0].shape = {0};
    out[1].shape = out[2].shape = a.sums ? a.shape : Shape{0};
  }
  static int64_t rows(const Attrs& a, const Tensor& x) {
    const int64_t width = a.shape.product();
    return width ? x.numel() / width : 0;
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    const int64_t n = rows(a, c.in[0]), width = a.shape.product();
    kernels::Room room;
    for (int i = 0; i < 5; ++i) dense(c.in[i], room);
    return room.used() + (c.in[0].dtype() == DType::f64 ? kernels::layer_norm_workspace<double>(n, width, a.sums)
                                                        : kernels::layer_norm_workspace<float>(n, width, a.sums));
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room), gy = dense(c.in[1], room), w = dense(c.in[2], room), mean = dense(c.in[3], room),
           rstd = dense(c.in[4], room);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::layer_norm_backward<T>(rows(a, x), a.shape.product(), a.rms, x.data<T>(), gy.data<T>(),
                                      data_or_null<T>(w), mean.data<T>(), rstd.data<T>(),
                                      a.gx ? c.out[0].data<T>() : nullptr, a.sums ? c.out[1].data<T>() : nullptr,
                                      a.sums ? c.out[2].data<T>() : nullptr, room.rest());
    });
  }
  // xhat 2 (1 of rms); gw 1 where there is a weight, the sums of a row 3 and gx 4 (2 and 3 of rms, which has no mean);
  // the sums over rows 3
  static Cost cost(const Attrs& a, const Call& c) {
    const int gx = (c.in[2].defined() ? 1 : 0) + (a.rms ? 5 : 7);
    return ops::element_cost(c.in[0], (a.rms ? 1 : 2) + (a.gx ? gx : 0) + (a.sums ? 3 : 0));
  }
};

/// Inputs x, weight?, bias?; outputs y and the rows' mean and 1 / standard deviation.
struct LayerNorm {
  static constexpr OpInfo info{"layer_norm", "LayerNormalization", OpKind::norm, 3};
  using Attrs = LayerNormAttrs;
  static void infer(const Attrs& a, const Tensor* in, int n, Meta* out) {
    const Meta& x = in[0].meta();
    ops::common_float({&x});
    bool ends = a.shape.n > 0 && a.shape.n <= x.shape.n;
    for (int i = 0; ends && i < a.shape.n; ++i) ends = x.shape[x.shape.n - a.shape.n + i] == a.shape[i];
    if (!ends)
      throw Error("an input of size " + to_string(x.shape) + " does not end in the normalised sizes " +
                  to_string(a.shape));
    for (int k = 1; k < n; ++k) {
      if (!in[k]) continue;
      ops::common_float({&x, &in[k].meta()});
      if (!(in[k].size() == a.shape))
        throw Error(std::string(k == 1 ? "a weight" : "a bias") + " of size " + to_string(in[k].size()) +
                    " does not have the normalised sizes " + to_string(a.shape));
    }
    out[0] = out[1] = out[2] = x;
    out[1].shape = out[2].shape = a.statistics(x.shape);
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    for (int i = 0; i < c.inputs; ++i) dense(c.in[i], room);
    return room.used();
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room), w = dense(c.in[1], room), b = c.inputs > 2 ? dense(c.in[2], room) : Tensor();
    int64_t width = a.shape.product(), rows = width ? x.numel() / width : 0;
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      if (a.rms) std::fill_n(c.out[1].data<T>(), rows, T(0));
      kernels::layer_norm_forward<T>(rows, width, a.rms, static_cast<T>(a.eps), x.data<T>(), data_or_null<T>(w),
                                     data_or_null<T>(b), c.out[0].data<T>(), c.out[1].data<T>(), c.out[2].data<T>());
    });
  }
  // mean 1, variance 3, xhat 2 (of rms: squares 2, xhat 1), weight and bias 1 each
  static Cost cost(const Attrs& a, const Call& c) {
    const int affine = (c.inputs > 1 && c.in[1] ? 1 : 0) + (c.inputs > 2 && c.in[2] ? 1 : 0);
    return ops::element_cost(c.in[0], (a.rms ? 3 : 6) + affine);
  }
  static constexpr Saves saves{.inputs = 0b111, .outputs = 0b110};
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    if (!grad_enabled() && !d.out(1) && !d.out(2)) {
      const Tensor in[] = {d.x(0), d.out(0), d.x(1), d.y(1), d.y(2)};
      Tensor out[3];
      bool sums = (d.inputs() > 1 && d.needs(1)) || (d.inputs() > 2 && d.needs(2));
      apply_many<LayerNormBackward>({a, d.needs(0), sums}, in, 5, out);
      for (int i = 0; i < 3 && i < d.inputs(); ++i)
        if (d.needs(i)) d.in(i) = out[i];
      return;
    }
    composite_gradient(d, {d.x(0), d.x(1), d.x(2)}, [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      Tensor x = in[0], mu;
      if (!a.rms) {
        mu = mean(x, a.reduced(), true);
        x = sub(x, mu);
      }
      Tensor rstd = rsqrt(add(mean(square(x), a.reduced(), true), a.eps)), y = mul(x, rstd);
      if (in[1]) y = mul(y, in[1]);
      if (in[2]) y = add(y, in[2]);
      Shape s = a.statistics(in[0].size());
      return {y, mu ? reshape(mu, s) : Tensor(), reshape(rstd, s)};
    });
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    if (a.rms) o.unsupported = "opset 17 has no root mean square normalisation";
    o.fills = {{1, 1.0, -1, a.shape}};
    o.set("axis", int64_t{-a.shape.n});
    o.set("epsilon", static_cast<float>(a.eps));
  }
  static void samples(Samples& s) {
    s.add("last axis", Attrs{{5}, 1e-5, false}, {s.values({4, 5}), s.values({5}, in(0.5, 1.5)), s.values({5})});
    s.add("two axes, no bias", Attrs{{3, 4}, 1e-3, false}, {s.values({2, 3, 4}), s.values({3, 4}), Tensor()});
    s.add("plain", Attrs{{20}, 1e-5, false}, {s.values({3, 20}), Tensor(), Tensor()});
    s.add("root mean square", Attrs{{5}, 1e-5, true}, {s.values({3, 5}), s.values({5}, in(0.5, 1.5)), Tensor()});
  }
};

const Register<LayerNorm> layer_norm_op;
const Register<LayerNormBackward> layer_norm_backward_op;
Tensor LayerNorm::decompose(const Attrs& a, const std::vector<Tensor>& in) {
  Tensor x = a.rms ? in[0] : sub(in[0], mean(in[0], a.reduced(), true));
  Tensor y = div(x, sqrt(add(mean(mul(x, x), a.reduced(), true), a.eps)));
  if (in.size() > 1 && in[1]) y = mul(y, in[1]);
  return in.size() > 2 && in[2] ? add(y, in[2]) : y;
}

Tensor normalised(const Tensor& x, const Shape& shape, const Tensor& weight, const Tensor& bias, double eps, bool rms) {
  const Tensor in[] = {x, weight, bias};
  Tensor out[3];
  apply_many<LayerNorm>({shape, eps, rms}, in, 3, out);
  return out[0];
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight, const Tensor& bias, double eps) {
  return normalised(x, shape, weight, bias, eps, false);
}
Tensor rms_norm(const Tensor& x, const Shape& shape, const Tensor& weight, double eps) {
  return normalised(x, shape, weight, {}, eps, true);
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  if (x.ndim() < 2)
    throw Error("group_norm: its input has size " + to_string(x.size()) + "; it must be [batch, channels, ...]");
  int64_t n = x.size(0), c = x.size(1);
  if (groups < 1 || c % groups)
    throw Error("group_norm: " + std::to_string(groups) + " groups do not divide " + std::to_string(c) + " channels");
  int64_t width = n > 0 ? x.numel() / (n * groups) : 0;
  if (width == 1)
    throw Error("group_norm: an input of size " + to_string(x.size()) +
                " has one value a group, whose variance says nothing");
  Tensor y = reshape(layer_norm(reshape(x, {n, groups, width}), {width}, {}, {}, eps), x.size());
  Shape channels = Dims::filled(x.ndim(), 1);
  channels[1] = c;
  if (weight) y = mul(y, view(weight, channels));
  if (bias) y = add(y, view(bias, channels));
  return y;
}

}  // namespace tenon
