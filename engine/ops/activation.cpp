#include "engine/ops/activation.h"

#include "core/parallel.h"
#include "core/random.h"
#include "engine/op/parametric.h"
#include "engine/ops/activation_formulas.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/loss.h"

namespace tenon {
OP_BY_FORMULA(mish)
OP_BY_FORMULA(tanhshrink)
OP_BY_FORMULA(logsigmoid)
OP_PARAMETRIC_BY_FORMULA(softplus_beta)
OP_PARAMETRIC_BY_FORMULA(threshold)

Tensor relu6(const Tensor& x) { return hardtanh_with(x, 0, 6); }
Tensor hardsigmoid(const Tensor& x, double alpha, double beta) { return hardsigmoid_with(x, alpha, beta); }
Tensor elu(const Tensor& x, double alpha) { return elu_with(x, alpha, 0); }
Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw Error("celu: alpha cannot be 0");
  return celu_with(x, alpha, 0);
}
Tensor leaky_relu(const Tensor& x, double negative_slope) { return leaky_relu_with(x, negative_slope, 0); }
Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  if (!(min_val <= max_val)) throw Error("hardtanh: min_val is above max_val");
  return hardtanh_with(x, min_val, max_val);
}
Tensor softplus(const Tensor& x, double beta, double threshold) {
  if (beta == 1 && threshold >= 20) return softplus(x);  // beyond 20 the two differ by less than f32 holds
  return softplus_beta_with(x, beta, threshold);
}
Tensor softshrink(const Tensor& x, double lambd) {
  if (!(lambd >= 0)) throw Error("softshrink: lambd is below 0");
  return softshrink_with(x, lambd, 0);
}
Tensor hardshrink(const Tensor& x, double lambd) { return hardshrink_with(x, lambd, 0); }
Tensor threshold(const Tensor& x, double limit, double value) { return threshold_with(x, limit, value); }

Tensor prelu(const Tensor& x, const Tensor& weight) {
  if (weight.ndim() > 1)
    throw Error("prelu: a weight of size " + to_string(weight.size()) +
                "; it must be one number, or one for every channel");
  Tensor w = weight;
  if (weight.numel() > 1) {
    if (x.ndim() < 2 || x.size(1) != weight.numel())
      throw Error(
          "prelu: " + std::to_string(weight.numel()) + " weights do not fit an input of size " + to_string(x.size()),
          "give one weight, or one a channel (axis 1)");
    Shape s = Dims::filled(x.ndim(), 1);
    s[1] = weight.numel();
    w = view(weight, s);
  }
  return where(gt(x, 0), x, mul(x, w));
}

Tensor glu(const Tensor& x, int axis) {
  int a = wrap_axis(axis, x.ndim());
  int64_t n = x.size(a);
  if (n % 2)
    throw Error("glu: axis " + std::to_string(axis) + " of an input of size " + to_string(x.size()) +
                " cannot be halved");
  return mul(narrow(x, a, 0, n / 2), sigmoid(narrow(x, a, n / 2, n / 2)));
}

Tensor softmin(const Tensor& x, int axis) { return softmax(neg(x), axis); }

namespace {

/// Inputs x and the key. The slope of each element: 1 where x is positive, else random. Not differentiable: the noise
/// is held fixed.
struct RreluSlope {
  static constexpr OpInfo info{"rrelu_slope", "", OpKind::random};
  struct Attrs {
    double lower, upper;
    uint64_t stream, first;
    template <class F>
    void fields(F&& f) const {
      f("lower", lower);
      f("upper", upper);
      f("stream", stream);
      f("first", first);
    }
  };
  static Meta infer(const Attrs&, const Meta& x, const Meta& key) {
    check_key(key);
    ops::common_float({&x});
    return x;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = ops::dense(c.in[0], room);
    const DrawnFrom key(c.in[1], a.stream, a.first);
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      const T* from = x.data<T>();
      T* to = c.out[0].data<T>();
      parallel_for(x.numel(), 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to[i] =
              from[i] > T(0)
                  ? T(1)
                  : static_cast<T>(a.lower + (a.upper - a.lower) * static_cast<double>(key.random.uniform(
                                                                       key.counter * 4 + static_cast<uint64_t>(i))));
      });
    });
  }
  static void samples(Samples& s) { s.add("matrix", Attrs{0.1, 0.3, 2, 0}, {s.values({3, 5}), random_key(1, 0)}); }
};
const Register<RreluSlope> rrelu_slope_op;

}  // namespace

Tensor rrelu(const Tensor& x, double lower, double upper, const Draws& draws) {
  if (!(lower <= upper)) throw Error("rrelu: the lower slope is above the upper one");
  return mul(x, apply<RreluSlope>({lower, upper, draws.stream, draws.first}, x, draws.key));
}

}  // namespace tenon
