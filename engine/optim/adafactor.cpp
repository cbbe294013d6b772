#include <algorithm>
#include <cmath>

#include "engine/ops/dense.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/sum_of_squares.h"

namespace tenon::optim {
namespace {

double mean_square(const Tensor& t) { return sum_of_squares(t) / static_cast<double>(std::max<int64_t>(1, t.numel())); }

/// The squares of a matrix' gradient kept as a row and a column: as good as Adam with next to no state. Shazeer and
/// Stern (2018), with the relative step of section 8; as PyTorch's Adafactor (2.5), whose eps1 is the dtype's and whose
/// rate is min(lr, 1 / sqrt(t)) times the parameter's scale.
class Adafactor : public Optimizer {
 public:
  Adafactor(std::vector<nn::Named> parameters, const AttrValues& v)
      : Optimizer(std::move(parameters), v),
        beta2_decay_(v.number("beta2_decay")),
        eps1_(v.number("eps1")),
        eps2_(v.number("eps2")),
        d_(v.number("d")) {
    row_ = add_state("row_var", [](const Tensor& p) { return reduced(p, p.ndim() - 1); });
    col_ = add_state("col_var", [](const Tensor& p) { return reduced(p, p.ndim() - 2); });
    whole_ = add_state("variance", [](const Tensor& p) { return p.ndim() == 1 ? p.size() : Shape{}; });
    scalar_ = add_state("scalar_variance", [](const Tensor& p) { return p.ndim() == 0 ? Shape{1} : Shape{}; });
  }

 protected:
  void update(size_t i, const Tensor& p, const Tensor& grad, double lr) override {
    Tensor w = p, g = ops::dense(grad);
    double t = static_cast<double>(age(i)), fresh = std::pow(t, beta2_decay_), rho = std::min(lr, 1 / std::sqrt(t));
    double eps1 = eps1_ > 0 ? eps1_ : p.dtype() == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    double alpha = std::max(eps2_, std::sqrt(mean_square(p))) * rho;
    if (decay(i) != 0) mul_(w, 1 - lr * decay(i));
    Tensor variance;
    if (p.ndim() > 1) {
      Tensor row = slot(row_, i), col = slot(col_, i), squares = mul(g, g);
      follow(row, mean(squares, {-1}, true), fresh);
      follow(col, mean(squares, {-2}, true), fresh);
      variance = div(mul(row, col), maximum(mean(row, {-2}, true), eps1));
    } else {
      Tensor v = p.ndim() ? slot(whole_, i) : slot(scalar_, i);
      follow(v, mul(g, g), fresh);
      variance = v;
    }
    Tensor u = mul(rsqrt(maximum(variance, eps1 * eps1)), g);
    double denominator = std::max(1.0, std::sqrt(mean_square(u)) / d_);
    sub_(w, mul(u, alpha / denominator));
  }

 private:
  static Shape reduced(const Tensor& p, int axis) {
    if (p.ndim() < 2) return {};
    Shape s = p.size();
    s[axis] = 1;
    return s;
  }
  static void follow(Tensor& state, const Tensor& now, double fresh) { add_(state, mul(sub(now, state), fresh)); }

  double beta2_decay_, eps1_, eps2_, d_;
  int row_, col_, whole_, scalar_;
};

const bool registered_adafactor =
    register_optimizer({"adafactor",
                        "adam with a row and a column of squares for each matrix: little state",
                        {lr_attr(1e-2),
                         {"beta2_decay", -0.8, -10, 0, "the memory of the square at step t is 1 - t^beta2_decay"},
                         {"eps1", 0.0, 0, 1, "least square; 0: what the number format can tell from 1"},
                         {"eps2", 1e-3, 0, 1e30, "least scale of a parameter"},
                         {"d", 1.0, 1e-6, 1e30, "largest root mean square of a step before the rate"},
                         weight_decay_attr(0, "pull of the weights towards 0, applied apart from the gradient"),
                         maximize_attr()},
                        [](std::vector<nn::Named> parameters, const AttrValues& v) -> std::unique_ptr<Optimizer> {
                          return std::make_unique<Adafactor>(std::move(parameters), v);
                        }});

}  // namespace
}  // namespace tenon::optim
