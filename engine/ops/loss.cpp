#include "engine/ops/loss.h"

#include <algorithm>
#include <string>

#include "engine/autograd/node.h"
#include "engine/kernels/loss.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/element_cost.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

// The gradients of losses are fused kernels; with create_graph the same formulas run as public ops, which are
// differentiable again.
namespace tenon {
namespace {

using ops::common_float;
using ops::dense;
using ops::element_cost;
using ops::float_or_double;

struct LogAttrs {
  bool log;
  template <class F>
  void fields(F&& f) const {
    f("log", log);
  }
};

/// Inputs y, gy.
struct SoftmaxBackward {
  static constexpr OpInfo info{"softmax_backward", "", OpKind::reduce};
  using Attrs = LogAttrs;
  static Meta infer(const Attrs&, const Meta& y, const Meta&) { return y; }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor y = dense(c.in[0], room), gy = dense(c.in[1], room);
    int64_t n = y.size(-1);
    float_or_double(y.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::softmax_backward<T>(n ? y.numel() / n : 0, n, c.as<Attrs>().log, y.data<T>(), gy.data<T>(),
                                   c.out[0].data<T>());
    });
  }
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 4); }
};

/// Along the last axis.
struct Softmax {
  static constexpr OpInfo info{"softmax", "Softmax", OpKind::reduce};
  using Attrs = LogAttrs;
  static Meta infer(const Attrs&, const Meta& x) {
    common_float({&x});
    if (x.shape.n < 1) throw Error("its input has no axes");
    return x;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room);
    int64_t n = x.size(-1);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      kernels::softmax_forward<T>(n ? x.numel() / n : 0, n, c.as<Attrs>().log, x.data<T>(), c.out[0].data<T>());
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 1};
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    Tensor y = d.y(), gy = d.out();
    if (!grad_enabled())
      d.in(0) = apply<SoftmaxBackward>(a, y, gy);
    else if (a.log)
      d.in(0) = sub(gy, mul(exp(y), sum(gy, {-1}, true)));
    else
      d.in(0) = mul(y, sub(gy, sum(mul(gy, y), {-1}, true)));
  }
  static void onnx(const Attrs& a, OnnxOp& o) {
    if (a.log) o.type = "LogSoftmax";
    o.set("axis", int64_t{-1});
  }
  static void samples(Samples& s) {
    s.add("softmax", Attrs{false}, {s.values({3, 5}, in(-2, 2))});
    s.add("log softmax", Attrs{true}, {s.values({2, 3, 4}, in(-2, 2))});
  }
  // largest, difference, exp, sum, quotient (log: difference)
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 5); }
};

struct OneHot {
  static constexpr OpInfo info{"one_hot", "", OpKind::index};
  struct Attrs {
    int64_t classes;
    DType dtype;
    template <class F>
    void fields(F&& f) const {
      f("classes", classes);
      f("dtype", dtype);
    }
  };
  static Meta infer(const Attrs& a, const Meta& index) {
    if (index.dtype != DType::i64) throw Error(std::string("indices are i64, not ") + name(index.dtype));
    Meta m = index;
    m.dtype = a.dtype;
    m.shape.push_back(a.classes);
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor index = dense(c.in[0], room);
    int64_t n = c.as<Attrs>().classes;
    fill(c.out[0], 0);
    float_or_double(c.out[0].dtype(), [&](auto one) {
      using T = decltype(one);
      for (int64_t i = 0; i < index.numel(); ++i) {
        int64_t k = index.data<int64_t>()[i];
        if (k >= 0 && k < n) c.out[0].data<T>()[i * n + k] = T(1);
      }
    });
  }
  static void samples(Samples& s) { s.add("4 classes", Attrs{4, DType::f64}, {s.indices({3}, 4)}); }
};

/// Inputs logits, target, lse, g (the gradient of the loss).
struct CrossEntropyBackward {
  static constexpr OpInfo info{"cross_entropy_backward", "", OpKind::reduce};
  static Meta infer(const NoAttrs&, const Meta& x, const Meta&, const Meta&, const Meta&) { return x; }
  static size_t workspace(const NoAttrs&, const Call& c) { return ops::dense_bytes(c, {0, 1, 2}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room), target = dense(c.in[1], room), lse = dense(c.in[2], room);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      T scale = *c.in[3].data<T>() / static_cast<T>(x.size(0));
      kernels::cross_entropy_backward<T>(x.size(0), x.size(1), x.data<T>(), target.data<int64_t>(), lse.data<T>(),
                                         scale, c.out[0].data<T>());
    });
  }
  static Cost cost(const NoAttrs&, const Call& c) { return element_cost(c.in[0], 3); }
};

/// Inputs logits, target; outputs the loss and the log-sum-exp of every row.
struct CrossEntropy {
  static constexpr OpInfo info{"cross_entropy", "", OpKind::reduce, 2};
  using Attrs = NoAttrs;
  static void infer(const NoAttrs&, const Tensor* in, int, Meta* out) {
    const Meta &x = in[0].meta(), &t = in[1].meta();
    common_float({&x});
    if (x.shape.n != 2) throw Error("its logits have size " + to_string(x.shape) + "; they must be [rows, classes]");
    if (t.dtype != DType::i64)
      throw Error(std::string("its targets are ") + name(t.dtype) + "; they must be i64 class numbers");
    if (!(t.shape == Shape{x.shape[0]}))
      throw Error("logits of size " + to_string(x.shape) + " need targets of size [" + std::to_string(x.shape[0]) +
                  "], not " + to_string(t.shape));
    if (x.shape.product() == 0) throw Error("logits of size " + to_string(x.shape) + " have no mean");
    out[0] = out[1] = x;
    out[0].shape = {};
    out[1].shape = {x.shape[0]};
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room), target = dense(c.in[1], room);
    int64_t rows = x.size(0), classes = x.size(1);
    for (int64_t i = 0; i < rows; ++i) {
      int64_t t = target.data<int64_t>()[i];
      if (t < 0 || t >= classes)
        throw Error("target " + std::to_string(t) + " of row " + std::to_string(i) + " is no class of 0.." +
                        std::to_string(classes - 1),
                    "the last layer needs one output a class");
    }
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      *c.out[0].data<T>() = static_cast<T>(
          kernels::cross_entropy_forward<T>(rows, classes, x.data<T>(), target.data<int64_t>(), c.out[1].data<T>()));
    });
  }
  static constexpr Saves saves{.inputs = 0b11, .outputs = 0b10};
  static void backward(Grad& d) {
    if (!d.needs(0)) return;
    Tensor x = d.x(0), target = d.x(1);
    if (!grad_enabled() && !d.out(1)) {
      d.in(0) = apply<CrossEntropyBackward>({}, x, target, d.y(1), d.out(0));
      return;
    }
    Tensor p = softmax(x), g;
    if (d.out(0)) g = mul(sub(p, one_hot(target, x.size(1), x.dtype())), div(d.out(0), static_cast<double>(x.size(0))));
    if (d.out(1)) {
      Tensor of_lse = mul(p, unsqueeze(d.out(1), 1));
      g = g ? add(g, of_lse) : of_lse;
    }
    d.in(0) = g;
  }
  static void samples(Samples& s) {
    s.add("5 rows of 4 classes", NoAttrs{}, {s.values({5, 4}, in(-2, 2)), s.indices({5}, 4)}, {true, false});
  }
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 4); }  // largest, difference, exp, sum
};

/// Inputs x, y, g (the gradient of the loss): 2 (x - y) g / n.
struct MseBackward {
  static constexpr OpInfo info{"mse_loss_backward", "", OpKind::reduce};
  static Meta infer(const NoAttrs&, const Meta& x, const Meta&, const Meta&) { return x; }
  static size_t workspace(const NoAttrs&, const Call& c) { return ops::dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room), y = dense(c.in[1], room);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      T scale = static_cast<T>(2.0 / static_cast<double>(x.numel())) * *c.in[2].data<T>();
      kernels::mse_backward<T>(x.numel(), x.data<T>(), y.data<T>(), scale, c.out[0].data<T>());
    });
  }
  static Cost cost(const NoAttrs&, const Call& c) { return element_cost(c.in[0], 2); }
};

struct MseLoss {
  static constexpr OpInfo info{"mse_loss", "", OpKind::reduce};
  using Attrs = NoAttrs;
  static Meta infer(const NoAttrs&, const Meta& x, const Meta& y) {
    Meta m = x;
    m.dtype = common_float({&x, &y});
    if (!(x.shape == y.shape))
      throw Error("sizes " + to_string(x.shape) + " and " + to_string(y.shape) + " differ",
                  "view() one of them as the other");
    if (x.shape.product() == 0) throw Error("a size of " + to_string(x.shape) + " has no mean");
    m.shape = {};
    return m;
  }
  static size_t workspace(const NoAttrs&, const Call& c) {
    kernels::Room room;
    for (int i = 0; i < 2; ++i) dense(c.in[i], room);
    room.take<double>(kernels::mse_pieces(c.in[0].numel()));
    return room.used();
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const Tensor x = dense(c.in[0], room), y = dense(c.in[1], room);
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      *c.out[0].data<T>() = static_cast<T>(
          kernels::mse_forward<T>(x.numel(), x.data<T>(), y.data<T>(), static_cast<double*>(room.rest())));
    });
  }
  static constexpr Saves saves{.inputs = 0b11};
  static void backward(Grad& d) {
    Tensor x = d.x(0), y = d.x(1), g;
    if (grad_enabled())
      g = mul(sub(x, y), mul(d.out(), 2.0 / static_cast<double>(x.numel())));
    else
      g = apply<MseBackward>({}, x, y, d.out());
    if (d.needs(1)) d.in(1) = neg(g);
    if (d.needs(0)) d.in(0) = g;
  }
  static void samples(Samples& s) { s.add("2 axes", NoAttrs{}, {s.values({3, 4}), s.values({3, 4})}); }
  static Cost cost(const Attrs&, const Call& c) { return element_cost(c.in[0], 3); }
};

const Register<Softmax> softmax_op;
const Register<SoftmaxBackward> softmax_backward_op;
const Register<OneHot> one_hot_op;
const Register<CrossEntropy> cross_entropy_op;
const Register<CrossEntropyBackward> cross_entropy_backward_op;
const Register<MseLoss> mse_loss_op;
const Register<MseBackward> mse_loss_backward_op;

Tensor softmax_along(const Tensor& x, int axis, bool log) {
  int last = x.ndim() - 1, a = wrap_axis(axis, x.ndim());
  if (a == last) return apply<Softmax>({log}, x);
  return transpose(apply<Softmax>({log}, transpose(x, a, last)), a, last);
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) { return softmax_along(x, axis, false); }
Tensor log_softmax(const Tensor& x, int axis) { return softmax_along(x, axis, true); }

Tensor cross_entropy(const Tensor& logits, const Tensor& target) {
  const Tensor in[] = {logits, target};
  Tensor out[2];
  apply_many<CrossEntropy>({}, in, 2, out);
  return out[0];
}

Tensor mse_loss(const Tensor& x, const Tensor& y) { return apply<MseLoss>({}, x, y); }

Tensor one_hot(const Tensor& index, int64_t classes, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Error(std::string("one_hot gives f32 or f64, not ") + name(dtype));
  return apply<OneHot>({classes, dtype}, index);
}

}  // namespace tenon
