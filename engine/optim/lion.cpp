#include "engine/optim/elementwise.h"

namespace tenon::optim {
namespace {

template <class T>
void lion(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict mean, T lr, T keep, T b1, T c1, T b2, T c2) {
  for (int64_t i = 0; i < n; ++i) {
    T u = b1 * mean[i] + c1 * g[i];
    T sign = u > 0 ? T(1) : u < 0 ? T(-1) : u;  // 0 stays, NaN stays
    w[i] = w[i] * keep - lr * sign;
    mean[i] = b2 * mean[i] + c2 * g[i];
  }
}

/// p *= 1 - lr wd; p -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g. Chen et al., Symbolic discovery
/// of optimization algorithms (2023), algorithm 2.
struct Lion {
  static constexpr const char* op = "lion_step";
  static constexpr double flops = 9;
  double beta1 = 0.9, beta2 = 0.99;
  double lr = 0, weight_decay = 0;
  void begin(double rate, double decay, double) { lr = rate, weight_decay = decay; }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    lion(n, w, g, s[0], T(lr), T(1 - lr * weight_decay), T(beta1), T(1 - beta1), T(beta2), T(1 - beta2));
  }
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("beta1", beta1);
    f("beta2", beta2);
    f("weight_decay", weight_decay);
  }
};
const Register<ElementwiseOp<Lion>> lion_op;

const bool registered_lion = register_optimizer(
    {"lion",
     "steps of one size in the direction the momentum points to",
     {lr_attr(1e-4), unit_attr("beta1", 0.9, "share of the momentum in the direction"),
      unit_attr("beta2", 0.99, "memory of the momentum"),
      weight_decay_attr(0, "pull of the weights towards 0, applied apart from the gradient"), maximize_attr()},
     [](std::vector<nn::Named> parameters, const AttrValues& v) -> std::unique_ptr<Optimizer> {
       return std::make_unique<Elementwise<Lion>>(std::move(parameters), v, Lion{v.number("beta1"), v.number("beta2")},
                                                  std::vector<std::string>{"exp_avg"});
     }});

}  // namespace
}  // namespace tenon::optim
