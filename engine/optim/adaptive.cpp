// RMSprop, Adagrad, Adadelta: gradients divided by their own past size.
#include <cmath>

#include "engine/optim/elementwise.h"

namespace tenon::optim {
namespace {

template <class T>
void rmsprop(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict square, T* __restrict mean,
             T* __restrict buf, T lr, T alpha, T fresh, T eps, T decay, T momentum) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    square[i] = alpha * square[i] + fresh * d * d;
    T v = square[i];
    if (mean) {
      mean[i] = mean[i] + fresh * (d - mean[i]);
      v = v - mean[i] * mean[i];
    }
    T by = d / (std::sqrt(v) + eps);
    if (buf) by = buf[i] = momentum * buf[i] + by;
    w[i] -= lr * by;
  }
}
template <class T>
void adagrad(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict total, T size, T eps, T decay) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    total[i] += d * d;
    w[i] -= size * (d / (std::sqrt(total[i]) + eps));
  }
}
template <class T>
void adadelta(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict square, T* __restrict moved, T lr, T rho,
              T fresh, T eps, T decay) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    square[i] = rho * square[i] + fresh * d * d;
    T by = std::sqrt(moved[i] + eps) / std::sqrt(square[i] + eps) * d;
    moved[i] = rho * moved[i] + fresh * by * by;
    w[i] -= lr * by;
  }
}

/// v = alpha v + (1 - alpha) g^2, centered: less the square of the mean; p -= lr g / (sqrt(v) + eps), along a momentum
/// where it is set. Hinton's lecture 6e (2012); Graves (2013) for the centered form. PyTorch: RMSprop.
struct RmsProp {
  static constexpr const char* op = "rmsprop_step";
  static constexpr double flops = 12;
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  double lr = 0, weight_decay = 0;
  void begin(double rate, double decay, double) { lr = rate, weight_decay = decay; }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    rmsprop(n, w, g, s[0], s[1], s[2], T(lr), T(alpha), T(1 - alpha), T(eps), T(weight_decay), T(momentum));
  }
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("alpha", alpha);
    f("eps", eps);
    f("momentum", momentum);
    f("weight_decay", weight_decay);
  }
};

/// s += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps). Duchi, Hazan and Singer (2011). PyTorch: Adagrad.
struct Adagrad {
  static constexpr const char* op = "adagrad_step";
  static constexpr double flops = 8;
  double lr_decay = 0, eps = 1e-10;
  double lr = 0, weight_decay = 0;
  void begin(double rate, double decay, double t) { lr = rate / (1 + (t - 1) * lr_decay), weight_decay = decay; }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    adagrad(n, w, g, s[0], T(lr), T(eps), T(weight_decay));
  }
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("lr_decay", lr_decay, false);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
};

/// v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; p -= lr d. Zeiler (2012).
/// PyTorch: Adadelta.
struct Adadelta {
  static constexpr const char* op = "adadelta_step";
  static constexpr double flops = 16;
  double rho = 0.9, eps = 1e-6;
  double lr = 0, weight_decay = 0;
  void begin(double rate, double decay, double) { lr = rate, weight_decay = decay; }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    adadelta(n, w, g, s[0], s[1], T(lr), T(rho), T(1 - rho), T(eps), T(weight_decay));
  }
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("rho", rho);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
};

const Register<ElementwiseOp<RmsProp>> rmsprop_op;
const Register<ElementwiseOp<Adagrad>> adagrad_op;
const Register<ElementwiseOp<Adadelta>> adadelta_op;

std::unique_ptr<Optimizer> make_rmsprop(std::vector<nn::Named> parameters, const AttrValues& v) {
  RmsProp rule{v.number("alpha"), v.number("eps"), v.number("momentum")};
  std::vector<std::string> states = {"square_avg", v.flag("centered") ? "grad_avg" : "",
                                     rule.momentum > 0 ? "momentum_buffer" : ""};
  return std::make_unique<Elementwise<RmsProp>>(std::move(parameters), v, rule, states);
}
std::unique_ptr<Optimizer> make_adagrad(std::vector<nn::Named> parameters, const AttrValues& v) {
  return std::make_unique<Elementwise<Adagrad>>(std::move(parameters), v,
                                                Adagrad{v.number("lr_decay"), v.number("eps")},
                                                std::vector<std::string>{"sum"}, v.number("initial_accumulator_value"));
}
std::unique_ptr<Optimizer> make_adadelta(std::vector<nn::Named> parameters, const AttrValues& v) {
  return std::make_unique<Elementwise<Adadelta>>(std::move(parameters), v, Adadelta{v.number("rho"), v.number("eps")},
                                                 std::vector<std::string>{"square_avg", "acc_delta"});
}

constexpr const char* kDecay = "pull of the weights towards 0, added to the gradient";
const bool registered_adaptive[] = {
    register_optimizer({"rmsprop",
                        "gradients divided by their usual size",
                        {lr_attr(1e-2),
                         unit_attr("alpha", 0.99, "memory of the square"),
                         eps_attr(1e-8),
                         {"momentum", 0.0, 0, 1, "share of the last step that is taken again"},
                         {"centered", false, 0, 0, "divide by the spread about the mean instead of the size"},
                         weight_decay_attr(0, kDecay),
                         maximize_attr()},
                        make_rmsprop}),
    register_optimizer({"adagrad",
                        "gradients divided by all they were so far: for features that are rare",
                        {lr_attr(1e-2),
                         {"lr_decay", 0.0, 0, 1e6, "how fast the rate falls with the steps"},
                         eps_attr(1e-10),
                         {"initial_accumulator_value", 0.0, 0, 1e30, "what the sum of squares begins with"},
                         weight_decay_attr(0, kDecay),
                         maximize_attr()},
                        make_adagrad}),
    register_optimizer({"adadelta",
                        "steps as large as earlier steps were, against gradients as large as they were",
                        {lr_attr(1.0), unit_attr("rho", 0.9, "memory of both squares"), eps_attr(1e-6),
                         weight_decay_attr(0, kDecay), maximize_attr()},
                        make_adadelta}),
};

}  // namespace
}  // namespace tenon::optim
