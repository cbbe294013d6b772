#include <cmath>

#include "engine/optim/elementwise.h"

namespace tenon::optim {
namespace {

template <class T>
struct Constants {
  T b1, b2, c1, c2, size, root, eps, keep, decay;
};
template <class T>
void adam_update(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T* __restrict square,
                 Constants<T> k) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + k.decay * w[i];
    mean[i] = k.b1 * mean[i] + k.c1 * d;
    square[i] = k.b2 * square[i] + k.c2 * d * d;
    w[i] = w[i] * k.keep - k.size * (mean[i] / (std::sqrt(square[i]) / k.root + k.eps));
  }
}
template <class T>
void with_maximum(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T* __restrict square,
                  T* __restrict top, Constants<T> k) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + k.decay * w[i];
    mean[i] = k.b1 * mean[i] + k.c1 * d;
    square[i] = k.b2 * square[i] + k.c2 * d * d;
    top[i] = top[i] < square[i] ? square[i] : top[i];
    w[i] = w[i] * k.keep - k.size * (mean[i] / (std::sqrt(top[i]) / k.root + k.eps));
  }
}

/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps).
/// Kingma and Ba (2014); Reddi et al. (2018) for amsgrad, whose v is the largest so far; Loshchilov and Hutter (2017)
/// for the decay apart from the gradient. PyTorch: Adam, AdamW.
struct Adam {
  static constexpr const char* op = "adam_step";
  static constexpr double flops = 14;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decoupled = false;
  double lr = 0, weight_decay = 0, bias1 = 1, bias2 = 1;

  void begin(double rate, double decay, double t) {
    lr = rate;
    weight_decay = decay;
    bias1 = 1 - std::pow(beta1, t);
    bias2 = 1 - std::pow(beta2, t);
  }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    Constants<T> k;
    k.b1 = static_cast<T>(beta1);
    k.b2 = static_cast<T>(beta2);
    k.c1 = static_cast<T>(1 - beta1);
    k.c2 = static_cast<T>(1 - beta2);
    k.size = static_cast<T>(lr / bias1);
    k.root = static_cast<T>(std::sqrt(bias2));
    k.eps = static_cast<T>(eps);
    k.keep = static_cast<T>(decoupled ? 1 - lr * weight_decay : 1);
    k.decay = static_cast<T>(decoupled ? 0 : weight_decay);
    if (s[2])
      with_maximum(n, w, g, s[0], s[1], s[2], k);
    else
      adam_update(n, w, g, s[0], s[1], k);
  }
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("beta1", beta1);
    f("beta2", beta2);
    f("eps", eps);
    f("weight_decay", weight_decay);
    f("decoupled", decoupled);
    f("bias1", bias1, false);
    f("bias2", bias2, false);
  }
};
const Register<ElementwiseOp<Adam>> adam_op;

template <bool Decoupled>
std::unique_ptr<Optimizer> make_adam(std::vector<nn::Named> parameters, const AttrValues& v) {
  return std::make_unique<Elementwise<Adam>>(
      std::move(parameters), v, Adam{v.number("beta1"), v.number("beta2"), v.number("eps"), Decoupled},
      std::vector<std::string>{"exp_avg", "exp_avg_sq", v.flag("amsgrad") ? "max_exp_avg_sq" : ""});
}

std::vector<AttrDef> adam_attrs(double decay, const char* help) {
  return {lr_attr(1e-3),
          unit_attr("beta1", 0.9, "memory of the mean"),
          unit_attr("beta2", 0.999, "memory of the square"),
          eps_attr(1e-8, "added to the root of the square"),
          weight_decay_attr(decay, help),
          {"amsgrad", false, 0, 0, "divide by the largest square so far"},
          maximize_attr()};
}

const bool registered_adam[] = {
    register_optimizer({"adam", "each weight's step divided by the usual size of its gradient",
                        adam_attrs(0, "pull of the weights towards 0, added to the gradient"), make_adam<false>}),
    register_optimizer({"adamw", "adam, with a decay of the weights that does not pass through the gradient",
                        adam_attrs(0.01, "pull of the weights towards 0, applied apart from the gradient"),
                        make_adam<true>}),
};

}  // namespace
}  // namespace tenon::optim
