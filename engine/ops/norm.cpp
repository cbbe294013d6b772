#include "engine/ops/norm.h"

#include <vector>

#include "engine/autograd/node.h"
#include "engine/kernels/norm.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/element_cost.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using ops::common_float;
using ops::data_or_null;
using ops::dense;
using ops::dense_nhwc;
using ops::element_cost;
using ops::float_or_double;

Tensor dense_rows(const Tensor& x, kernels::Room& room) { return x.ndim() == 4 ? dense_nhwc(x, room) : dense(x, room); }
void place_like(const Tensor& x, Layout& out) {
  if (x.ndim() == 4) out = Layout::channels_last(x.size());
}

/// A vector over the channels, shaped so that it broadcasts over x.
Tensor over_channels(const Tensor& v, int ndim) { return ndim == 4 ? reshape(v, {1, v.numel(), 1, 1}) : v; }
Dims other_axes(int ndim) { return ndim == 4 ? Dims{0, 2, 3} : Dims{0}; }

void check_channels(const Meta& x, std::initializer_list<const Meta*> vectors) {
  if (x.shape.n != 2 && x.shape.n != 4)
    throw Error("its input has size " + to_string(x.shape) +
                "; it must be [batch, channels] or [batch, channels, height, width]");
  for (const Meta* v : vectors)
    if (v) {
      common_float({&x, v});
      if (!(v->shape == Shape{x.shape[1]}))
        throw Error("a vector of size " + to_string(v->shape) + " does not fit the " + std::to_string(x.shape[1]) +
                    " channels of an input of size " + to_string(x.shape));
    }
  common_float({&x});
}

struct EpsAttrs {
  double eps;
  template <class F>
  void fields(F&& f) const {
    f("eps", eps);
  }
};

int64_t channels_of(const Tensor& x) { return x.size(1); }
int64_t rows_in(const Tensor& x) { return channels_of(x) ? x.numel() / channels_of(x) : 0; }
size_t batch_norm_room(const Tensor& x) {
  return x.dtype() == DType::f64 ? kernels::batch_norm_workspace<double>(rows_in(x), channels_of(x))
                                 : kernels::batch_norm_workspace<float>(rows_in(x), channels_of(x));
}

/// Inputs x, gy, mean, invstd, gamma?; outputs gx, ggamma, gbeta. Never differentiated itself: with create_graph the
/// composite runs instead.
struct BatchNormBackward {
  static constexpr OpInfo info{"batch_norm_backward", "", OpKind::norm, 3};
  struct Attrs {
    bool batch;  ///< mean and invstd were taken from x
    template <class F>
    void fields(F&& f) const {
      f("batch_statistics", batch);
    }
  };
  static void infer(const Attrs&, const Tensor* in, int, Meta* out) {
    out[0] = out[1] = out[2] = in[0].meta();
    out[1].shape = out[2].shape = {in[0].size(1)};
  }
  static void place(const Attrs&, const Tensor* in, Layout* out) { place_like(in[0], out[0]); }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    dense_rows(c.in[0], room), dense_rows(c.in[1], room);
    for (int i = 2; i < 5; ++i) dense(c.in[i], room);
    return room.used() + batch_norm_room(c.in[0]);
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense_rows(c.in[0], room), gy = dense_rows(c.in[1], room), mean = dense(c.in[2], room),
           invstd = dense(c.in[3], room), gamma = dense(c.in[4], room);
    const int64_t channels = channels_of(x), rows = rows_in(x);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::batch_norm_backward<T>(rows, channels, c.as<Attrs>().batch, x.data<T>(), gy.data<T>(), mean.data<T>(),
                                      invstd.data<T>(), data_or_null<T>(gamma), c.out[0].data<T>(), c.out[1].data<T>(),
                                      c.out[2].data<T>(), room.rest());
    });
  }
  // xhat 2, the two sums 3, gx 4, or 1 with statistics that do not depend on x
  static Cost cost(const Attrs& a, const Call& c) { return element_cost(c.in[0], a.batch ? 9 : 6); }
};

void fused_backward(Grad& d, bool batch, const Tensor& gy, const Tensor& mean, const Tensor& invstd) {
  const Tensor in[] = {d.x(0), gy, mean, invstd, d.x(1)};
  Tensor out[3];
  apply_many<BatchNormBackward>({batch}, in, 5, out);
  for (int i = 0; i < 3; ++i)
    if (d.needs(i)) d.in(i) = out[i];
}

/// The gradients in public ops: xhat = (x - mean) * invstd, ggamma = sum(gy xhat), gbeta = sum(gy).
void composite_backward(Grad& d, bool batch, const Tensor& mean, const Tensor& invstd) {
  Tensor x = d.x(0), gamma = d.x(1), gy = d.out(0);
  int n = x.ndim();
  Dims axes = other_axes(n);
  Tensor xhat = mul(sub(x, over_channels(mean, n)), over_channels(invstd, n));
  Tensor gbeta = sum(gy, axes), ggamma = sum(mul(gy, xhat), axes);
  if (d.needs(0)) {
    Tensor g = gy;
    if (batch) {
      double rows = static_cast<double>(x.numel() / x.size(1));
      g = sub(sub(g, over_channels(div(gbeta, rows), n)), mul(xhat, over_channels(div(ggamma, rows), n)));
    }
    d.in(0) = mul(g, over_channels(gamma ? mul(gamma, invstd) : invstd, n));
  }
  if (d.needs(1)) d.in(1) = ggamma;
  if (d.needs(2)) d.in(2) = gbeta;
}

/// Inputs x, gamma?, beta?; outputs y, mean, var, invstd.
struct BatchNorm {
  static constexpr OpInfo info{"batch_norm", "", OpKind::norm, 4};
  using Attrs = EpsAttrs;
  static void infer(const Attrs&, const Tensor* in, int n, Meta* out) {
    check_channels(in[0].meta(), {n > 1 && in[1] ? &in[1].meta() : nullptr, n > 2 && in[2] ? &in[2].meta() : nullptr});
    const Meta& x = in[0].meta();
    if (x.shape[1] > 0 && x.shape.product() / x.shape[1] < 2)
      throw Error("an input of size " + to_string(x.shape) + " has one value a channel, whose variance says nothing",
                  "train with batches of at least 2; data.drop_last leaves a short last one out");
    for (int i = 0; i < 4; ++i) out[i] = x;
    out[1].shape = out[2].shape = out[3].shape = {x.shape[1]};
  }
  static void place(const Attrs&, const Tensor* in, Layout* out) { place_like(in[0], out[0]); }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    dense_rows(c.in[0], room), dense(c.in[1], room), dense(c.in[2], room);
    return room.used() + batch_norm_room(c.in[0]);
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense_rows(c.in[0], room), gamma = dense(c.in[1], room), beta = dense(c.in[2], room);
    const int64_t channels = channels_of(x), rows = rows_in(x);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      T *mean = c.out[1].data<T>(), *var = c.out[2].data<T>();
      kernels::column_moments<T>(rows, channels, x.data<T>(), mean, var, room.rest());
      kernels::batch_norm_apply<T>(rows, channels, x.data<T>(), mean, var, static_cast<T>(c.as<Attrs>().eps),
                                   data_or_null<T>(gamma), data_or_null<T>(beta), c.out[0].data<T>(),
                                   c.out[3].data<T>(), room.rest());
    });
  }
  static constexpr Saves saves{.inputs = 0b011, .outputs = 0b1010};
  static void backward(Grad& d) {
    bool statistics = d.out(1) || d.out(2) || d.out(3);
    if (!grad_enabled() && !statistics) return fused_backward(d, true, d.out(0), d.y(1), d.y(3));
    // The statistics again from x, with their history.
    Tensor x = d.x(0);
    int n = x.ndim();
    Dims axes = other_axes(n);
    Tensor m = mean(x, axes), centred = sub(x, over_channels(m, n));
    Tensor invstd = rsqrt(add(mean(square(centred), axes), d.as<Attrs>().eps));
    if (d.out(0)) composite_backward(d, true, m, invstd);
    if (!statistics || !d.needs(0)) return;
    double rows = static_cast<double>(x.numel() / x.size(1));
    auto plus = [](Tensor& sum, const Tensor& t) { sum = sum ? add(sum, t) : t; };
    if (d.out(1)) plus(d.in(0), expand(over_channels(div(d.out(1), rows), n), x.size()));
    Tensor g_var = d.out(2);
    if (d.out(3)) plus(g_var, mul(mul(d.out(3), pow(invstd, 3)), -0.5));
    if (g_var) plus(d.in(0), mul(centred, over_channels(mul(g_var, 2 / rows), n)));
  }
  static void onnx(const Attrs&, OnnxOp& o) {
    o.unsupported = "batch normalisation in training mode: export the model in evaluation mode";
  }
  static void samples(Samples& s) {
    s.add("4 axes", Attrs{1e-5}, {s.values({3, 4, 2, 3}), s.values({4}, in(0.5, 1.5)), s.values({4})},
          {true, true, true});
    s.add("2 axes, plain", Attrs{1e-5}, {s.values({6, 3}), Tensor(), Tensor()}, {true, false, false});
  }
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 7); }  // mean 1, variance 3, y 3
};

/// Inputs x, gamma?, beta?, mean, var; outputs y, invstd.
struct BatchNormInference {
  static constexpr OpInfo info{"batch_norm_inference", "BatchNormalization", OpKind::norm, 2};
  using Attrs = EpsAttrs;
  static void infer(const Attrs&, const Tensor* in, int, Meta* out) {
    const Meta& x = in[0].meta();
    check_channels(x, {in[1] ? &in[1].meta() : nullptr, in[2] ? &in[2].meta() : nullptr, &in[3].meta(), &in[4].meta()});
    out[0] = out[1] = x;
    out[1].shape = {x.shape[1]};
  }
  static void place(const Attrs&, const Tensor* in, Layout* out) { place_like(in[0], out[0]); }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    dense_rows(c.in[0], room);
    for (int i = 1; i < 5; ++i) dense(c.in[i], room);
    return room.used() + batch_norm_room(c.in[0]);
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense_rows(c.in[0], room), gamma = dense(c.in[1], room), beta = dense(c.in[2], room),
           mean = dense(c.in[3], room), var = dense(c.in[4], room);
    const int64_t channels = channels_of(x), rows = rows_in(x);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::batch_norm_apply<T>(rows, channels, x.data<T>(), mean.data<T>(), var.data<T>(),
                                   static_cast<T>(c.as<Attrs>().eps), data_or_null<T>(gamma), data_or_null<T>(beta),
                                   c.out[0].data<T>(), c.out[1].data<T>(), room.rest());
    });
  }
  static constexpr Saves saves{.inputs = 0b01011, .outputs = 0b10};
  static void backward(Grad& d) {
    if (!d.out(0)) return;
    if (d.needs(3) || d.needs(4))
      throw Error("no gradient flows to the given statistics of batch_norm_inference", "detach() them");
    if (grad_enabled())
      composite_backward(d, false, d.x(3), d.y(1));
    else
      fused_backward(d, false, d.out(0), d.x(3), d.y(1));
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    o.set("epsilon", static_cast<float>(a.eps));
    o.fills = {{1, 1.0, 3}, {2, 0.0, 3}};
  }
  static void samples(Samples& s) {
    s.add("4 axes", Attrs{1e-5},
          {s.values({2, 3, 2, 2}), s.values({3}), s.values({3}), s.values({3}), s.values({3}, in(0.5, 2))},
          {true, true, true, false, false});
  }
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 3); }  // (x - mean) scale + beta
};

/// In place on input 0.
struct UpdateRunning {
  static constexpr OpInfo info{"update_running", "", OpKind::norm};
  struct Attrs {
    double momentum, factor;
    template <class F>
    void fields(F&& f) const {
      f("momentum", momentum);
      f("factor", factor);
    }
  };
  static Meta infer(const Attrs&, const Meta& running, const Meta& batch) {
    common_float({&running, &batch});
    if (!(running.shape == batch.shape))
      throw Error("running statistics of size " + to_string(running.shape) + " and the batch's of size " +
                  to_string(batch.shape) + " differ");
    return running;
  }
  static void cpu(const Call& c) {
    const auto& a = c.as<Attrs>();
    Tensor batch = dense(c.in[1]), old = dense(c.in[0]);
    float_or_double(batch.dtype(), [&](auto one) {
      using T = decltype(one);
      T momentum = static_cast<T>(a.momentum), factor = static_cast<T>(a.factor);
      std::vector<T> next(static_cast<size_t>(batch.numel()));
      for (size_t i = 0; i < next.size(); ++i)
        next[i] = old.data<T>()[i] + momentum * (batch.data<T>()[i] * factor - old.data<T>()[i]);
      const Tensor& out = c.out[0];
      for (size_t i = 0; i < next.size(); ++i) out.data<T>()[static_cast<int64_t>(i) * out.stride()[0]] = next[i];
    });
  }
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 4); }
};

const Register<BatchNormBackward> batch_norm_backward_op;
const Register<BatchNorm> batch_norm_op;
const Register<BatchNormInference> batch_norm_inference_op;
const Register<UpdateRunning> update_running_op;

}  // namespace

BatchNormResult batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  const Tensor in[] = {channels_last(x), gamma, beta};
  Tensor out[4];
  apply_many<BatchNorm>({eps}, in, 3, out);
  return {out[0], out[1], out[2]};
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                            const Tensor& var, double eps) {
  const Tensor in[] = {channels_last(x), gamma, beta, mean, var};
  Tensor out[2];
  apply_many<BatchNormInference>({eps}, in, 5, out);
  return out[0];
}

void update_running(Tensor& running, const Tensor& batch, double momentum, double factor) {
  UpdateRunning::Attrs attrs{momentum, factor};
  Tensor in[] = {running, batch};
  dispatch_in_place(Register<UpdateRunning>::def(), &attrs, in, 2);
}

}  // namespace tenon
