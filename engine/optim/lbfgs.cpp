#include <algorithm>
#include <cmath>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/dense.h"
#include "engine/optim/line_search.h"
#include "engine/optim/optimizer.h"

namespace tenon::optim {
namespace {

/// Newton's steps from a memory of past steps and gradient changes; several evaluations a step. Nocedal (1980); as
/// PyTorch's LBFGS. Its vectors stay on the host, to which gradients and weights cross and come back. T is the dtype of
/// the parameters, which are seen as one vector. Sums are added in f64, in order.
template <class T>
class Lbfgs : public Optimizer {
 public:
  Lbfgs(std::vector<nn::Named> parameters, const AttrValues& v)
      : Optimizer(std::move(parameters), v),
        history_(v.integer("history_size")),
        max_iter_(v.integer("max_iter")),
        max_eval_(v.integer("max_eval") > 0 ? v.integer("max_eval") : max_iter_ * 5 / 4),
        tolerance_grad_(v.number("tolerance_grad")),
        tolerance_change_(v.number("tolerance_change")),
        wolfe_(v.text("line_search") == "strong_wolfe") {
    for (const nn::Named& p : this->parameters()) n_ += p.tensor.numel();
    DType type = sizeof(T) == 8 ? DType::f64 : DType::f32;
    changes_ = add_shared_state("old_dirs", {history_, n_}, type).template data<T>();
    moves_ = add_shared_state("old_stps", {history_, n_}, type).template data<T>();
    direction_ = add_shared_state("d", {n_}, type).template data<T>();
    last_gradient_ = add_shared_state("prev_flat_grad", {n_}, type).template data<T>();
    inverse_ = add_shared_state("ro", {history_}, DType::f64).template data<double>();
    numbers_ = add_shared_state("numbers", {4}, DType::f64).template data<double>();
  }
  bool needs_closure() const override { return true; }

 protected:
  using Vector = std::vector<T>;
  void update(size_t, const Tensor&, const Tensor&, double) override {
    throw Error("lbfgs searches along a line: it needs a closure that computes loss and gradients again");
  }

  void search(double lr, double loss, const Closure& closure) override {
    if (is_dry(this->parameters()[0].tensor.device()))
      return void(closure());  // every evaluation takes the same memory
    double &count = numbers_[0], &iterations = numbers_[1], &t = numbers_[2], &scale = numbers_[3];
    Vector g = gradient();
    if (largest(g.data()) <= tolerance_grad_) return;
    int64_t evaluations = 1;
    for (int64_t k = 1; k <= max_iter_; ++k) {
      ++iterations;
      if (iterations == 1) {
        for (int64_t i = 0; i < n_; ++i) direction_[i] = -g[static_cast<size_t>(i)];
        count = 0;
        scale = 1;
      } else {
        remember(g, t, count, scale);
        turn(g, static_cast<int64_t>(count), scale);
      }
      std::copy(g.begin(), g.end(), last_gradient_);
      double last_loss = loss;
      t = iterations == 1 ? std::min(1.0, 1 / size_of(g)) * lr : lr;
      double slope = dot(g.data(), direction_);
      if (slope > -tolerance_change_) break;
      int tried = 0;
      if (wolfe_) {
        Vector from = values();
        LinePoint<T> found = strong_wolfe<T>(
            [&](double at) {
              move(from, at);
              LinePoint<T> p{at, closure(), 0, gradient()};
              p.slope = dot(p.gradient.data(), direction_);
              return p;
            },
            {0, loss, slope, g}, t, largest(direction_), tolerance_change_, tried);
        move(from, found.t);
        t = found.t;
        loss = found.f;
        g = std::move(found.gradient);
      } else {
        move(values(), t);
        if (k != max_iter_) {
          loss = closure();
          g = gradient();
          tried = 1;
        }
      }
      evaluations += tried;
      if (k == max_iter_ || evaluations >= max_eval_ || largest(g.data()) <= tolerance_grad_) break;
      if (largest(direction_) * std::abs(t) <= tolerance_change_ || std::abs(loss - last_loss) < tolerance_change_)
        break;
      if (!std::isfinite(loss)) break;
    }
  }

 private:
  static double dot_of(const T* a, const T* b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
  }
  double dot(const T* a, const T* b) const { return dot_of(a, b, n_); }
  double largest(const T* a) const {
    double most = 0;
    for (int64_t i = 0; i < n_; ++i) most = std::max(most, static_cast<double>(std::abs(a[i])));
    return most;
  }
  double size_of(const Vector& g) const {
    double sum = 0;
    for (T x : g) sum += static_cast<double>(std::abs(x));
    return sum;
  }

  /// The change of the gradient over the last step, unless the function bends the wrong way there.
  void remember(const Vector& g, double t, double& count, double& scale) {
    Vector y(g), s(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      y[i] = g[i] - last_gradient_[i];
      s[i] = direction_[i] * static_cast<T>(t);
    }
    double ys = dot(y.data(), s.data());
    if (!(ys > 1e-10)) return;
    if (static_cast<int64_t>(count) == history_) {
      std::copy(changes_ + n_, changes_ + history_ * n_, changes_);
      std::copy(moves_ + n_, moves_ + history_ * n_, moves_);
      std::copy(inverse_ + 1, inverse_ + history_, inverse_);
      --count;
    }
    auto at = static_cast<int64_t>(count);
    std::copy(y.begin(), y.end(), changes_ + at * n_);
    std::copy(s.begin(), s.end(), moves_ + at * n_);
    inverse_[at] = 1 / ys;
    ++count;
    scale = ys / dot(y.data(), y.data());
  }

  /// direction = -H g by the two loops over the memory.
  void turn(const Vector& g, int64_t count, double scale) {
    std::vector<double> al(static_cast<size_t>(count));
    T* q = direction_;
    for (int64_t i = 0; i < n_; ++i) q[i] = -g[static_cast<size_t>(i)];
    for (int64_t k = count - 1; k >= 0; --k) {
      al[static_cast<size_t>(k)] = dot(moves_ + k * n_, q) * inverse_[k];
      add(q, changes_ + k * n_, -al[static_cast<size_t>(k)]);
    }
    for (int64_t i = 0; i < n_; ++i) q[i] *= static_cast<T>(scale);
    for (int64_t k = 0; k < count; ++k) {
      double be = dot(changes_ + k * n_, q) * inverse_[k];
      add(q, moves_ + k * n_, al[static_cast<size_t>(k)] - be);
    }
  }
  void add(T* to, const T* from, double factor) const {
    T f = static_cast<T>(factor);
    for (int64_t i = 0; i < n_; ++i) to[i] += f * from[i];
  }

  Vector gradient() const {
    Vector g;
    g.reserve(static_cast<size_t>(n_));
    for (const nn::Named& p : parameters()) {
      Tensor d = grad_of(p.tensor);
      if (!d) {
        g.insert(g.end(), static_cast<size_t>(p.tensor.numel()), T(0));
        continue;
      }
      d = to_host(ops::dense(d));
      for (int64_t i = 0; i < d.numel(); ++i) g.push_back(d.data<T>()[i]);
    }
    return g;
  }
  Vector values() const {
    Vector v;
    v.reserve(static_cast<size_t>(n_));
    for (const nn::Named& p : parameters()) {
      const Tensor w = to_host(p.tensor);
      v.insert(v.end(), w.data<T>(), w.data<T>() + w.numel());
    }
    return v;
  }
  void move(const Vector& from, double t) const {
    T by = static_cast<T>(t);
    const T *x = from.data(), *d = direction_;
    for (const nn::Named& p : parameters()) {
      const Tensor moved = empty(p.tensor.size(), p.tensor.dtype());
      T* to = moved.data<T>();
      for (int64_t i = 0; i < moved.numel(); ++i) to[i] = *x++ + by * *d++;
      copy_(p.tensor, moved);
    }
  }

  int64_t n_ = 0, history_, max_iter_, max_eval_;
  double tolerance_grad_, tolerance_change_;
  bool wolfe_;
  T *changes_ = nullptr, *moves_ = nullptr, *direction_ = nullptr, *last_gradient_ = nullptr;
  double *inverse_ = nullptr,
         *numbers_ =
             nullptr;  ///< numbers: how many are remembered, iterations so far, last step, scale of the first guess
};

std::unique_ptr<Optimizer> make_lbfgs(std::vector<nn::Named> parameters, const AttrValues& v) {
  bool wide = !parameters.empty() && parameters[0].tensor.dtype() == DType::f64;
  for (const nn::Named& p : parameters)
    if (p.tensor.dtype() != (wide ? DType::f64 : DType::f32))
      throw Error("lbfgs sees all parameters as one vector; " + p.name + " is " + name(p.tensor.dtype()) + " and " +
                  parameters[0].name + " is " + name(parameters[0].tensor.dtype()));
  if (wide) return std::make_unique<Lbfgs<double>>(std::move(parameters), v);
  return std::make_unique<Lbfgs<float>>(std::move(parameters), v);
}

const bool registered_lbfgs = register_optimizer(
    {"lbfgs",
     "Newton's steps from a memory of past ones; several evaluations a step, for small full batches",
     {lr_attr(1.0),
      {"max_iter", int64_t{20}, 1, 1e6, "iterations a step"},
      {"max_eval", int64_t{0}, 0, 1e6, "evaluations a step; 0: max_iter times 5 / 4"},
      {"tolerance_grad", 1e-7, 0, 1, "stop where no gradient is larger"},
      {"tolerance_change", 1e-9, 0, 1, "stop where neither weights nor loss change more"},
      {"history_size", int64_t{100}, 1, 10000, "steps remembered", {}, "steps"},
      {"line_search", std::string("none"), 0, 0, "how far to go along a direction", {"none", "strong_wolfe"}}},
     make_lbfgs});

}  // namespace
}  // namespace tenon::optim
