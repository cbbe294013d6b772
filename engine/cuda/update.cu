#include <cmath>

#include "engine/cuda/kernel.h"

// The steps of the optimizers that work element by element (Note [An optimizer that works element by element is a
// rule]). A kernel has the rule's loop over one parameter; constants are made of the op's attributes in double and
// rounded once, as there.
namespace tenon::cuda {
namespace {

constexpr int kStepStates = 4, kStepThreads = 256;

/// Where element i of the parameter, counted in row-major order, has its gradient.
struct GradientPlace {
  int32_t ndim;  ///< 0: it lies as the parameter does
  int64_t size[kDims], stride[kDims];
  __device__ int64_t at(int64_t i) const {
    if (ndim == 0) return i;
    int64_t offset = 0;
    for (int axis = ndim - 1; axis >= 0; --axis) {
      offset += i % size[axis] * stride[axis];
      i /= size[axis];
    }
    return offset;
  }
};

/// w and the states lie without gaps; states left out are null.
template <class T>
struct StepOperands {
  int64_t n;
  T* w;
  const T* g;
  T* s[kStepStates];
  GradientPlace place;
};

template <class T, class Rule>
__global__ void step_elements(StepOperands<T> o, Rule rule) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < o.n; i += step)
    rule(o.w[i], o.g[o.place.at(i)], o.s, i);
}

bool step_state_fits(const Operand& s, const Operand& w) {
  return s.dtype == w.dtype && s.contiguous() && s.numel() == w.numel();
}

template <class T>
StepOperands<T> step_operands(const Args& c) {
  const Operand w = c.out(0), g = c.in(1);
  c.want(w.contiguous() && g.dtype == w.dtype && g.ndim == w.ndim && c.inputs() <= 2 + kStepStates);
  StepOperands<T> o{w.numel(), w.at<T>(), g.at<const T>(), {}, {}};
  for (int k = 0; k + 2 < c.inputs(); ++k) {
    const Operand s = c.in(2 + k);
    if (!s.there()) continue;
    c.want(step_state_fits(s, w));
    o.s[k] = s.at<T>();
  }
  if (g.contiguous()) return o;
  o.place.ndim = g.ndim;
  for (int i = 0; i < g.ndim; ++i) o.place.size[i] = g.size[i], o.place.stride[i] = g.stride[i];
  return o;
}

/// Rule<T>: made of Args, applied to one element. `needs`: bit k set for a state that may not be left out.
template <template <class> class Rule>
void run_step(Args& c) {
  with_compute_type(c.out(0).type(), [&](auto one) {
    using T = decltype(one);
    const StepOperands<T> o = step_operands<T>(c);
    for (int k = 0; k < kStepStates; ++k) c.want(o.s[k] || !(Rule<T>::needs >> k & 1u));
    launch(step_elements<T, Rule<T>>, blocks_for(o.n, kStepThreads), kStepThreads, c, o, Rule<T>(c));
  });
}

template <class T>
T number_as(const Args& c, const char* name) {
  return static_cast<T>(c.number(name));
}
template <class T>
T rest_as(const Args& c, const char* name) {
  return static_cast<T>(1 - c.number(name));
}

template <class T>
struct SgdRule {
  static constexpr unsigned needs = 0;
  T lr, decay, momentum, fresh;
  bool ahead;
  explicit SgdRule(const Args& c)
      : lr(number_as<T>(c, "lr")),
        decay(number_as<T>(c, "weight_decay")),
        momentum(number_as<T>(c, "momentum")),
        fresh(number_as<T>(c, "fresh")),
        ahead(c.flag("nesterov")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w;
    if (!s[0]) {
      w -= lr * d;
      return;
    }
    // Looking ahead goes without dampening.
    const T b = momentum * s[0][i] + (ahead || fresh == T(1) ? d : fresh * d);
    s[0][i] = b;
    w -= lr * (ahead ? d + momentum * b : b);
  }
};

template <class T>
struct AdamRule {
  static constexpr unsigned needs = 0b11;
  T b1, b2, c1, c2, size, root, eps, keep, decay;
  explicit AdamRule(const Args& c)
      : b1(number_as<T>(c, "beta1")),
        b2(number_as<T>(c, "beta2")),
        c1(rest_as<T>(c, "beta1")),
        c2(rest_as<T>(c, "beta2")),
        size(static_cast<T>(c.number("lr") / c.number("bias1"))),
        root(static_cast<T>(std::sqrt(c.number("bias2")))),
        eps(number_as<T>(c, "eps")),
        keep(static_cast<T>(c.flag("decoupled") ? 1 - c.number("lr") * c.number("weight_decay") : 1)),
        decay(static_cast<T>(c.flag("decoupled") ? 0 : c.number("weight_decay"))) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w, mean = b1 * s[0][i] + c1 * d, square = b2 * s[1][i] + c2 * d * d;
    s[0][i] = mean;
    s[1][i] = square;
    T by = square;
    if (s[2]) {
      const T top = s[2][i];
      by = top < square ? square : top;
      s[2][i] = by;
    }
    w = w * keep - size * (mean / (std::sqrt(by) / root + eps));
  }
};

template <class T>
struct AdamaxRule {
  static constexpr unsigned needs = 0b11;
  T b1, b2, c1, eps, size, decay;
  explicit AdamaxRule(const Args& c)
      : b1(number_as<T>(c, "beta1")),
        b2(number_as<T>(c, "beta2")),
        c1(rest_as<T>(c, "beta1")),
        eps(number_as<T>(c, "eps")),
        size(number_as<T>(c, "size")),
        decay(number_as<T>(c, "weight_decay")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w, mean = b1 * s[0][i] + c1 * d, a = b2 * s[1][i], b = std::abs(d) + eps;
    const T top = a < b ? b : a;
    s[0][i] = mean;
    s[1][i] = top;
    w -= size * (mean / top);
  }
};

template <class T>
struct NadamRule {
  static constexpr unsigned needs = 0b11;
  T b1, b2, c1, c2, bias, eps, now, next, decay;
  explicit NadamRule(const Args& c)
      : b1(number_as<T>(c, "beta1")),
        b2(number_as<T>(c, "beta2")),
        c1(rest_as<T>(c, "beta1")),
        c2(rest_as<T>(c, "beta2")),
        bias(number_as<T>(c, "bias2")),
        eps(number_as<T>(c, "eps")),
        now(number_as<T>(c, "now")),
        next(number_as<T>(c, "next")),
        decay(number_as<T>(c, "weight_decay")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w, mean = b1 * s[0][i] + c1 * d, square = b2 * s[1][i] + c2 * d * d;
    const T root = std::sqrt(square / bias) + eps;
    s[0][i] = mean;
    s[1][i] = square;
    w -= now * (d / root) + next * (mean / root);
  }
};

template <class T>
struct RadamRule {
  static constexpr unsigned needs = 0b11;
  T b1, b2, c1, c2, eps, size, adaptive, decay;
  explicit RadamRule(const Args& c)
      : b1(number_as<T>(c, "beta1")),
        b2(number_as<T>(c, "beta2")),
        c1(rest_as<T>(c, "beta1")),
        c2(rest_as<T>(c, "beta2")),
        eps(number_as<T>(c, "eps")),
        size(number_as<T>(c, "size")),
        adaptive(number_as<T>(c, "adaptive")),
        decay(number_as<T>(c, "weight_decay")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w, mean = b1 * s[0][i] + c1 * d, square = b2 * s[1][i] + c2 * d * d;
    s[0][i] = mean;
    s[1][i] = square;
    w -= size * mean * (adaptive == T(0) ? T(1) : adaptive / (std::sqrt(square) + eps));
  }
};

template <class T>
struct RmspropRule {
  static constexpr unsigned needs = 0b1;
  T lr, alpha, fresh, eps, decay, momentum;
  explicit RmspropRule(const Args& c)
      : lr(number_as<T>(c, "lr")),
        alpha(number_as<T>(c, "alpha")),
        fresh(rest_as<T>(c, "alpha")),
        eps(number_as<T>(c, "eps")),
        decay(number_as<T>(c, "weight_decay")),
        momentum(number_as<T>(c, "momentum")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w;
    T v = alpha * s[0][i] + fresh * d * d;
    s[0][i] = v;
    if (s[1]) {
      const T mean = s[1][i] + fresh * (d - s[1][i]);
      s[1][i] = mean;
      v = v - mean * mean;
    }
    T by = d / (std::sqrt(v) + eps);
    if (s[2]) s[2][i] = by = momentum * s[2][i] + by;
    w -= lr * by;
  }
};

template <class T>
struct AdagradRule {
  static constexpr unsigned needs = 0b1;
  T size, eps, decay;
  explicit AdagradRule(const Args& c)
      : size(number_as<T>(c, "lr")), eps(number_as<T>(c, "eps")), decay(number_as<T>(c, "weight_decay")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w, total = s[0][i] + d * d;
    s[0][i] = total;
    w -= size * (d / (std::sqrt(total) + eps));
  }
};

template <class T>
struct AdadeltaRule {
  static constexpr unsigned needs = 0b11;
  T lr, rho, fresh, eps, decay;
  explicit AdadeltaRule(const Args& c)
      : lr(number_as<T>(c, "lr")),
        rho(number_as<T>(c, "rho")),
        fresh(rest_as<T>(c, "rho")),
        eps(number_as<T>(c, "eps")),
        decay(number_as<T>(c, "weight_decay")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T d = g + decay * w, square = rho * s[0][i] + fresh * d * d, moved = s[1][i];
    const T by = std::sqrt(moved + eps) / std::sqrt(square + eps) * d;
    s[0][i] = square;
    s[1][i] = rho * moved + fresh * by * by;
    w -= lr * by;
  }
};

template <class T>
struct LionRule {
  static constexpr unsigned needs = 0b1;
  T lr, keep, b1, c1, b2, c2;
  explicit LionRule(const Args& c)
      : lr(number_as<T>(c, "lr")),
        keep(static_cast<T>(1 - c.number("lr") * c.number("weight_decay"))),
        b1(number_as<T>(c, "beta1")),
        c1(rest_as<T>(c, "beta1")),
        b2(number_as<T>(c, "beta2")),
        c2(rest_as<T>(c, "beta2")) {}
  __device__ void operator()(T& w, T g, T* const* s, int64_t i) const {
    const T mean = s[0][i], u = b1 * mean + c1 * g;
    const T sign = u > T(0) ? T(1) : u < T(0) ? T(-1) : u;  // 0 stays, NaN stays
    w = w * keep - lr * sign;
    s[0][i] = b2 * mean + c2 * g;
  }
};

/// Not a step: the average of weights goes a share of the way to them, which are its second input.
template <class T>
struct TowardsRule {
  static constexpr unsigned needs = 0;
  T share;
  explicit TowardsRule(const Args& c) : share(number_as<T>(c, "share")) {}
  __device__ void operator()(T& to, T from, T* const*, int64_t) const { to += share * (from - to); }
};

const KernelOf sgd_entry{"sgd_step", run_step<SgdRule>};
const KernelOf adam_entry{"adam_step", run_step<AdamRule>};
const KernelOf adamax_entry{"adamax_step", run_step<AdamaxRule>};
const KernelOf nadam_entry{"nadam_step", run_step<NadamRule>};
const KernelOf radam_entry{"radam_step", run_step<RadamRule>};
const KernelOf rmsprop_entry{"rmsprop_step", run_step<RmspropRule>};
const KernelOf adagrad_entry{"adagrad_step", run_step<AdagradRule>};
const KernelOf adadelta_entry{"adadelta_step", run_step<AdadeltaRule>};
const KernelOf lion_entry{"lion_step", run_step<LionRule>};
const KernelOf towards_entry{"move_towards", run_step<TowardsRule>};

}  // namespace
}  // namespace tenon::cuda
