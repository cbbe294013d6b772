#include "core/error.h"
#include "engine/optim/elementwise.h"

namespace tenon::optim {
namespace {

// The loops take everything by value and each has one form: how a product and a sum are contracted must not depend on a
// branch.
template <class T>
void sgd_update(int64_t n, T* __restrict w, const T* __restrict g, T lr, T decay) {
  for (int64_t i = 0; i < n; ++i) w[i] -= lr * (g[i] + decay * w[i]);
}
template <class T>
void heavy(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict b, T lr, T decay, T momentum) {
  for (int64_t i = 0; i < n; ++i) {
    b[i] = momentum * b[i] + (g[i] + decay * w[i]);
    w[i] -= lr * b[i];
  }
}
template <class T>
void damped(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict b, T lr, T decay, T momentum, T fresh) {
  for (int64_t i = 0; i < n; ++i) {
    b[i] = momentum * b[i] + fresh * (g[i] + decay * w[i]);
    w[i] -= lr * b[i];
  }
}
template <class T>
void ahead(int64_t n, T* __restrict w, const T* __restrict g, T* __restrict b, T lr, T decay, T momentum) {
  for (int64_t i = 0; i < n; ++i) {
    T d = g[i] + decay * w[i];
    b[i] = momentum * b[i] + d;
    w[i] -= lr * (d + momentum * b[i]);
  }
}

/// g += wd p; buf = momentum buf + (1 - dampening) g; p -= lr (nesterov ? g + momentum buf : buf). The first buf is g
/// itself. PyTorch: SGD.
struct Sgd {
  static constexpr const char* op = "sgd_step";
  static constexpr double flops = 6;
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  double lr = 0, weight_decay = 0, fresh = 1;

  void begin(double rate, double decay, double t) {
    lr = rate;
    weight_decay = decay;
    fresh = t > 1 ? 1 - dampening : 1;
  }
  template <class T>
  void run(int64_t n, T* w, const T* g, T* const* s) const {
    T rate = static_cast<T>(lr), m = static_cast<T>(momentum), decay = static_cast<T>(weight_decay);
    if (!s[0])
      sgd_update(n, w, g, rate, decay);
    else if (nesterov)
      ahead(n, w, g, s[0], rate, decay, m);
    else if (fresh != 1)
      damped(n, w, g, s[0], rate, decay, m, static_cast<T>(fresh));
    else
      heavy(n, w, g, s[0], rate, decay, m);
  }
  template <class F>
  void fields(F&& f) const {
    f("lr", lr);
    f("momentum", momentum);
    f("weight_decay", weight_decay);
    f("nesterov", nesterov);
    f("dampening", dampening, false);
    f("fresh", fresh, false);
  }
};
const Register<ElementwiseOp<Sgd>> sgd_op;

std::unique_ptr<Optimizer> make_sgd(std::vector<nn::Named> parameters, const AttrValues& v) {
  Sgd rule{v.number("momentum"), v.number("dampening"), v.flag("nesterov")};
  if (rule.nesterov && (rule.momentum == 0 || rule.dampening != 0))
    throw Error::usage("optimizer.nesterov looks ahead along the momentum, which is " +
                           std::string(rule.momentum == 0 ? "0" : "damped: optimizer.dampening is not 0"),
                       rule.momentum == 0 ? "set optimizer.momentum, e.g. to 0.9" : "set optimizer.dampening to 0");
  return std::make_unique<Elementwise<Sgd>>(std::move(parameters), v, rule,
                                            std::vector<std::string>{rule.momentum == 0 ? "" : "momentum"});
}

const bool registered_sgd =
    register_optimizer({"sgd",
                        "steps against the gradient, with momentum where it is set",
                        {lr_attr(1e-3),
                         {"momentum", 0.0, 0, 1, "share of the last step that is taken again"},
                         {"dampening", 0.0, 0, 1, "share of the gradient left out of the momentum"},
                         {"nesterov", false, 0, 0, "look ahead along the momentum"},
                         weight_decay_attr(0, "pull of the weights towards 0, added to the gradient"),
                         maximize_attr()},
                        make_sgd});

}  // namespace
}  // namespace tenon::optim
