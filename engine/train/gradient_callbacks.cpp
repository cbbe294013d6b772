// Callbacks on gradients and weights: noise, centralization, a bound of the norm.
#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/ops/linalg.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/train/callback.h"

namespace tenon {
namespace {

/// All axes but the first: those of what one output of a layer reads.
Dims axes_of_a_row(const Tensor& t) {
  Dims axes;
  axes.n = t.ndim() - 1;
  for (int i = 0; i < axes.n; ++i) axes.v[i] = i + 1;
  return axes;
}

/// Neelakantan, Vilnis, Le, Sutskever, Kaiser, Kurach & Martens: Adding gradient noise improves learning for very deep
/// networks (2015): a normal number of variance std^2 / (1 + t)^decay beside every value.
struct GradientNoise : Callback {
  double std, decay;
  uint64_t seed;
  GradientNoise(double s, double d, uint64_t run_seed) : std(s), decay(d), seed(run_seed) {}
  void on_gradients(const std::vector<nn::Named>& trained, int64_t step) override {
    const double now = std / std::pow(1 + static_cast<double>(step), decay / 2);
    for (size_t i = 0; i < trained.size(); ++i) {
      Tensor g = grad_of(trained[i].tensor);
      if (!g) continue;
      // A step has 2^40 counters of each parameter's stream.
      Generator draws{seed, stream_of("callback.gradient_noise") + i, static_cast<uint64_t>(step) << 40};
      Tensor noise = randn(g.size(), g.dtype(), &draws, g.device());
      add_(g, mul_(noise, now));
    }
  }
};

/// Yong, Huang, Hua & Zhang: Gradient centralization (2020).
struct Centralize : Callback {
  void on_gradients(const std::vector<nn::Named>& trained, int64_t) override {
    for (const nn::Named& p : trained) {
      Tensor g = grad_of(p.tensor);
      if (g && g.ndim() > 1) sub_(g, mean(g, axes_of_a_row(g), true));
    }
  }
};

/// Srivastava, Hinton, Krizhevsky, Sutskever & Salakhutdinov: Dropout (2014), section 5.1.
struct MaxNorm : Callback {
  double most;
  explicit MaxNorm(double m) : most(m) {}
  void on_update(const std::vector<nn::Named>& trained, int64_t) override {
    for (const nn::Named& p : trained) {
      Tensor w = p.tensor;
      if (w.ndim() < 2) continue;
      const Tensor norm = vector_norm(w, 2, axes_of_a_row(w), true);
      mul_(w, div(minimum(norm, most), maximum(norm, 1e-12)));
    }
  }
};

const bool registered_gradients[] = {
    register_callback({.name = "gradient_noise",
                       .title = "Gradient noise",
                       .help = "adds normal noise, less with every step, to the gradients",
                       .moment = Moment::gradients,
                       .attrs = {{"std", 0.1, 0, 1e30, "standard deviation at the beginning"},
                                 {"decay", 0.55, 0, 10, "its variance falls with (1 + step) to this power"}},
                       .make = [](const AttrValues& v, const CallbackRun& run) -> std::unique_ptr<Callback> {
                         return std::make_unique<GradientNoise>(v.number("std"), v.number("decay"), run.seed);
                       }}),
    register_callback({.name = "centralize",
                       .title = "Centralize gradients",
                       .help = "takes the mean out of the gradient of what each output reads",
                       .moment = Moment::gradients,
                       .make = [](const AttrValues&, const CallbackRun&) -> std::unique_ptr<Callback> {
                         return std::make_unique<Centralize>();
                       }}),
    register_callback({.name = "max_norm",
                       .title = "Bound the norm of weights",
                       .help = "scales the weights of an output down where their norm is larger",
                       .moment = Moment::update,
                       .attrs = {{"norm", 3.0, 1e-9, 1e30, "largest 2-norm of the weights that one output reads"}},
                       .make = [](const AttrValues& v, const CallbackRun&) -> std::unique_ptr<Callback> {
                         return std::make_unique<MaxNorm>(v.number("norm"));
                       }}),
};

}  // namespace
}  // namespace tenon
