// Adamax, NAdam and RAdam: Adam with another denominator, another momentum, another beginning.
#include <cmath>

#include "engine/optim/elementwise.h"

namespace tenon::optim {
namespace {

template <class T>
void adamax(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T* __restrict top, T b1, T b2, T c1,
            T eps, T size, T decay) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    mean[i] = b1 * mean[i] + c1 * d;
    T a = b2 * top[i], b = std::abs(d) + eps;
    top[i] = a < b ? b : a;
    w[i] -= size * (mean[i] / top[i]);
  }
}
template <class T>
void nadam(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T* __restrict square, T b1, T b2,
           T c1, T c2, T bias, T eps, T now, T next, T decay) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    mean[i] = b1 * mean[i] + c1 * d;
    square[i] = b2 * square[i] + c2 * d * d;
    T root = std::sqrt(square[i] / bias) + eps;
    w[i] -= now * (d / root) + next * (mean[i] / root);
  }
}
template <class T>
void radam(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T* __restrict square, T b1, T b2,
           T c1, T c2, T eps, T size, T adaptive, T decay) {
  const bool plain = adaptive == 0;
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    mean[i] = b1 * mean[i] + c1 * d;
    square[i] = b2 * square[i] + c2 * d * d;
    T by = plain ? T(1) : adaptive / (std::sqrt(square[i]) + eps);
    w[i] -= size * mean[i] * by;
  }
}

struct Moments {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double lr = 0, weight_decay = 0;
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("beta1", beta1);
    f("beta2", beta2);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
};

/// m as Adam's; u = max(beta2 u, |g| + eps); p -= lr / (1 - beta1^t) m / u. Kingma and Ba (2014), section 7.1. PyTorch:
/// Adamax.
struct Adamax : Moments {
  static constexpr const char* op = "adamax_step";
  static constexpr double flops = 10;
  double size = 0;
  void begin(double rate, double decay, double t) {
    lr = rate, weight_decay = decay;
    size = lr / (1 - std::pow(beta1, t));
  }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    adamax(n, w, g, s[0], s[1], T(beta1), T(beta2), T(1 - beta1), T(eps), T(size), T(weight_decay));
  }
  template <class F>
  void fields(F&& f) const {
    f("moments", static_cast<const Moments&>(*this));
    f("size", size, false);
  }
};

/// Nesterov's look-ahead in Adam with mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2). Dozat (2016). PyTorch: NAdam.
struct NAdam : Moments {
  static constexpr const char* op = "nadam_step";
  static constexpr double flops = 18;
  double momentum_decay = 4e-3;
  double bias2 = 1, now = 0, next = 0;
  double mu(double t) const { return beta1 * (1 - 0.5 * std::pow(0.96, t * momentum_decay)); }
  void begin(double rate, double decay, double t) {
    lr = rate, weight_decay = decay;
    bias2 = 1 - std::pow(beta2, t);
    // The product of all mu up to t, from the start: a step is a function of its number, whatever ran before in this
    // process.
    double product = 1;
    for (double k = 1; k <= t && product > 1e-300; ++k) product *= mu(k);
    if (!(product > 1e-300)) product = 0;
    now = lr * (1 - mu(t)) / (1 - product);
    next = lr * mu(t + 1) / (1 - product * mu(t + 1));
  }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    nadam(n, w, g, s[0], s[1], T(beta1), T(beta2), T(1 - beta1), T(1 - beta2), T(bias2), T(eps), T(now), T(next),
          T(weight_decay));
  }
  template <class F>
  void fields(F&& f) const {
    f("moments", static_cast<const Moments&>(*this));
    f("momentum_decay", momentum_decay, false);
    f("bias2", bias2, false);
    f("now", now, false);
    f("next", next, false);
  }
};

/// Adam whose division is left out while its variance is not known yet. Liu et al. (2019). PyTorch: RAdam.
struct RAdam : Moments {
  static constexpr const char* op = "radam_step";
  static constexpr double flops = 14;
  double size = 0, adaptive = 0;
  void begin(double rate, double decay, double t) {
    lr = rate, weight_decay = decay;
    double power = std::pow(beta2, t), bias2 = 1 - power, most = 2 / (1 - beta2) - 1,
           rho = most - 2 * t * power / bias2;
    size = lr / (1 - std::pow(beta1, t));
    adaptive =
        rho > 5 ? std::sqrt(bias2) * std::sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) : 0;
  }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    radam(n, w, g, s[0], s[1], T(beta1), T(beta2), T(1 - beta1), T(1 - beta2), T(eps), T(size), T(adaptive),
          T(weight_decay));
  }
  template <class F>
  void fields(F&& f) const {
    f("moments", static_cast<const Moments&>(*this));
    f("size", size, false);
    f("adaptive", adaptive, false);
  }
};

const Register<ElementwiseOp<Adamax>> adamax_op;
const Register<ElementwiseOp<NAdam>> nadam_op;
const Register<ElementwiseOp<RAdam>> radam_op;

std::vector<AttrDef> moment_attrs(double lr) {
  return {lr_attr(lr),
          unit_attr("beta1", 0.9, "memory of the mean"),
          unit_attr("beta2", 0.999, "memory of the square or the maximum"),
          eps_attr(1e-8),
          weight_decay_attr(0, "pull of the weights towards 0, added to the gradient"),
          maximize_attr()};
}
std::vector<AttrDef> nadam_attrs() {
  auto list = moment_attrs(2e-3);
  list.push_back({"momentum_decay", 4e-3, 0, 1e6, "how fast the momentum rises"});
  return list;
}
template <class Rule>
Rule with_moments(const AttrValues& v) {
  Rule r;
  r.beta1 = v.number("beta1"), r.beta2 = v.number("beta2"), r.eps = v.number("eps");
  return r;
}
template <class Rule>
std::unique_ptr<Optimizer> make_with_moments(std::vector<nn::Named> parameters, const AttrValues& v) {
  Rule rule = with_moments<Rule>(v);
  if constexpr (requires { rule.momentum_decay; }) rule.momentum_decay = v.number("momentum_decay");
  std::vector<std::string> states = {"exp_avg", std::is_same_v<Rule, Adamax> ? "exp_inf" : "exp_avg_sq"};
  return std::make_unique<Elementwise<Rule>>(std::move(parameters), v, rule, states);
}

const bool registered_adam_kin[] = {
    register_optimizer(
        {"adamax", "adam that divides by the largest recent gradient", moment_attrs(2e-3), make_with_moments<Adamax>}),
    register_optimizer({"nadam", "adam that looks ahead along its momentum", nadam_attrs(), make_with_moments<NAdam>}),
    register_optimizer({"radam", "adam that divides only once it knows how much gradients vary", moment_attrs(1e-3),
                        make_with_moments<RAdam>}),
};

}  // namespace
}  // namespace tenon::optim
