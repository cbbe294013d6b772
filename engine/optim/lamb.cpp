#include <cmath>

#include "engine/ops/dense.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/readings.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/sum_of_squares.h"

namespace tenon::optim {
namespace {

/// Adam's direction plus the decay, made as long as the parameter: u = m^ / (sqrt(v^) + eps) + wd p; p -= lr |p| / |u|
/// u, with a ratio of 1 where either is 0. You et al., Large batch optimization for deep learning (2019), algorithm 2.
class Lamb : public Optimizer {
 public:
  Lamb(std::vector<nn::Named> parameters, const AttrValues& v)
      : Optimizer(std::move(parameters), v),
        beta1_(v.number("beta1")),
        beta2_(v.number("beta2")),
        eps_(v.number("eps")),
        mean_(add_state("exp_avg")),
        square_(add_state("exp_avg_sq")) {}

 protected:
  void update(size_t i, const Tensor& p, const Tensor& grad, double lr) override {
    Tensor m = slot(mean_, i), v = slot(square_, i), g = ops::dense(grad), w = p;
    add_(mul_(m, beta1_), mul(g, 1 - beta1_));
    add_(mul_(v, beta2_), mul(mul(g, g), 1 - beta2_));
    double t = static_cast<double>(age(i)), bias1 = 1 - std::pow(beta1_, t), bias2 = 1 - std::pow(beta2_, t);
    Tensor u = div(mul(m, 1 / bias1), add(sqrt(mul(v, 1 / bias2)), eps_));
    if (decay(i) != 0) u = add(u, mul(p, decay(i)));
    Readings norms(p.device());
    const size_t of_p = sum_of_squares(p, norms), of_u = sum_of_squares(u, norms);
    double length = std::sqrt(norms.at(of_p)), wanted = std::sqrt(norms.at(of_u));
    sub_(w, mul(u, lr * (length > 0 && wanted > 0 ? length / wanted : 1)));
  }

 private:
  double beta1_, beta2_, eps_;
  int mean_, square_;
};

const bool registered_lamb = register_optimizer(
    {"lamb",
     "adam whose step is in proportion to each parameter's length: for very large batches",
     {lr_attr(1e-3), unit_attr("beta1", 0.9, "memory of the mean"), unit_attr("beta2", 0.999, "memory of the square"),
      eps_attr(1e-6), weight_decay_attr(0, "pull of the weights towards 0, part of the step's direction"),
      maximize_attr()},
     [](std::vector<nn::Named> parameters, const AttrValues& v) -> std::unique_ptr<Optimizer> {
       return std::make_unique<Lamb>(std::move(parameters), v);
     }});

}  // namespace
}  // namespace tenon::optim
