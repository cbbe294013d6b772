#include <algorithm>
#include <cmath>
#include <sstream>

#include "engine/ops/dense.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/sum_of_squares.h"

namespace tenon::optim {
namespace {

/// A matrix near U V^T of g = U S V^T by a polynomial iteration of degree 5 (Newton and Schulz; coefficients of Jordan
/// et al., Muon, 2024). Singular values end between about 0.7 and 1.2.
Tensor orthogonal(const Tensor& g, int64_t steps) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool tall = g.size(0) > g.size(1);
  const double sum = sum_of_squares(g);
  Tensor x = mul(tall ? contiguous(transpose(g, 0, 1)) : g, 1 / (std::sqrt(sum) + 1e-7));
  for (int64_t k = 0; k < steps; ++k) {
    Tensor s = matmul(x, x, false, true);
    Tensor p = add(mul(s, b), mul(matmul(s, s), c));
    x = add(mul(x, a), matmul(p, x));
  }
  return tall ? contiguous(transpose(x, 0, 1)) : x;
}

/// Momentum made orthogonal for matrices, AdamW for everything else. Keller Jordan et al. (2024); PyTorch 2.9: Muon.
class Muon : public Optimizer {
 public:
  Muon(std::vector<nn::Named> parameters, const AttrValues& v)
      : Optimizer(std::move(parameters), v),
        momentum_(v.number("momentum")),
        nesterov_(v.flag("nesterov")),
        steps_of_iteration_(v.integer("ns_steps")),
        adamw_lr_(v.number("adamw_lr")),
        beta1_(v.number("beta1")),
        beta2_(v.number("beta2")),
        eps_(v.number("eps")) {
    std::istringstream words(v.text("adamw_for"));
    std::vector<std::string> excluded;
    for (std::string w; std::getline(words, w, ',');) excluded.push_back(w);
    for (const nn::Named& p : this->parameters()) {
      bool matrix = p.tensor.ndim() == 2;
      for (const std::string& w : excluded) matrix &= w.empty() || p.name.find(w) == std::string::npos;
      matrix_.push_back(matrix);
    }
    size_t i = 0, k = 0;
    buffer_ = add_state("momentum_buffer", [&](const Tensor& p) { return matrix_[i++] ? p.size() : Shape{}; });
    auto rest = [&](const Tensor& p) {
      return matrix_[k++ % matrix_.size()] ? Shape{} : p.ndim() ? p.size() : Shape{1};
    };
    mean_ = add_state("exp_avg", rest);
    square_ = add_state("exp_avg_sq", rest);
  }

 protected:
  void update(size_t i, const Tensor& p, const Tensor& grad, double lr) override {
    Tensor w = p, g = ops::dense(grad);
    if (!matrix_[i]) return adamw(i, w, g, lr * (adamw_lr_ > 0 ? adamw_lr_ : 1));
    Tensor m = slot(buffer_, i);
    add_(m, mul(sub(g, m), 1 - momentum_));
    Tensor u = nesterov_ ? add(g, mul(sub(m, g), momentum_)) : m;
    u = orthogonal(u, steps_of_iteration_);
    mul_(w, 1 - lr * decay(i));
    double ratio = std::sqrt(std::max(1.0, static_cast<double>(p.size(0)) / static_cast<double>(p.size(1))));
    sub_(w, mul(u, lr * ratio));
  }

 private:
  void adamw(size_t i, Tensor& w, const Tensor& g, double lr) {
    Tensor m = slot(mean_, i), v = slot(square_, i);
    if (w.ndim() == 0) m = view(m, {}), v = view(v, {});
    add_(mul_(m, beta1_), mul(g, 1 - beta1_));
    add_(mul_(v, beta2_), mul(mul(g, g), 1 - beta2_));
    double t = static_cast<double>(age(i)), bias1 = 1 - std::pow(beta1_, t), bias2 = 1 - std::pow(beta2_, t);
    mul_(w, 1 - lr * decay(i));
    sub_(w, mul(div(m, add(mul(sqrt(v), 1 / std::sqrt(bias2)), eps_)), lr / bias1));
  }

  double momentum_;
  bool nesterov_;
  int64_t steps_of_iteration_;
  double adamw_lr_, beta1_, beta2_, eps_;
  std::vector<bool> matrix_;
  int buffer_ = -1, mean_ = -1, square_ = -1;
};

const bool registered_muon = register_optimizer(
    {"muon",
     "a momentum whose matrices are made orthogonal before they are added; adamw for all else",
     {lr_attr(1e-3),
      unit_attr("momentum", 0.95, "memory of the momentum"),
      {"nesterov", true, 0, 0, "look ahead along the momentum"},
      {"ns_steps", int64_t{5}, 1, 100, "iterations towards the orthogonal matrix"},
      {"adamw_lr", 1.0, 0, 1e30, "rate of what is no matrix, as a multiple of lr"},
      {"adamw_for", std::string(), 0, 0,
       "words, separated by commas, in names of matrices that adamw updates all the same: embed,head"},
      unit_attr("beta1", 0.9, "memory of adamw's mean"),
      unit_attr("beta2", 0.999, "memory of adamw's square"),
      eps_attr(1e-8),
      weight_decay_attr(0.1, "pull of the weights towards 0, applied apart from the gradient"),
      maximize_attr()},
     [](std::vector<nn::Named> parameters, const AttrValues& v) -> std::unique_ptr<Optimizer> {
       return std::make_unique<Muon>(std::move(parameters), v);
     }});

}  // namespace
}  // namespace tenon::optim
