#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "engine/model/layer_registry.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/ops/dropout.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"

namespace tenon::nn {

thread_local RandomState t_random;

std::shared_ptr<Module> relu() {
  return std::make_shared<Function>("ReLU", [](const Tensor& x) { return tenon::relu(x); });
}
std::shared_ptr<Module> tanh() {
  return std::make_shared<Function>("Tanh", [](const Tensor& x) { return tenon::tanh(x); });
}
std::shared_ptr<Module> sigmoid() {
  return std::make_shared<Function>("Sigmoid", [](const Tensor& x) { return tenon::sigmoid(x); });
}
std::shared_ptr<Module> softmax() {
  return std::make_shared<Function>("Softmax", [](const Tensor& x) { return tenon::softmax(x, -1); });
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("the probability {} is not between 0 and 1", p));
}
Tensor Dropout::forward(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  return dropout(x, p_, t_random.seed, stream_of(path().c_str()), draw(static_cast<uint64_t>(x.numel())));
}
std::string Dropout::describe() const { return fmt::format("Dropout({})", p_); }

namespace {

/// The sum of two tensors of one size: joins the two ends of a shortcut.
class Add : public Module {
 public:
  std::string describe() const override { return "Add"; }

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override {
    if (in.size() != 2) throw Error(fmt::format("Add takes 2 inputs, not {}", in.size()));
    return add(in[0], in[1]);
  }
};

using Made = std::shared_ptr<Module>;
const bool relu_layer = register_layer(
    {{.type = "ReLU", .group = "Activation", .help = "max(x, 0)", .attrs = {}}, [](const LayerArgs&) -> Made { return relu(); }});
const bool tanh_layer =
    register_layer({{.type = "Tanh", .group = "Activation", .help = "hyperbolic tangent, between -1 and 1", .attrs = {}},
                    [](const LayerArgs&) -> Made { return tanh(); }});
const bool sigmoid_layer =
    register_layer({{.type = "Sigmoid", .group = "Activation", .help = "1 / (1 + exp(-x)), between 0 and 1", .attrs = {}},
                    [](const LayerArgs&) -> Made { return sigmoid(); }});
const bool softmax_layer = register_layer(
    {{.type = "Softmax", .group = "Activation", .help = "exp(x) / sum(exp(x)) over the last axis: shares that add up to 1", .attrs = {}},
     [](const LayerArgs&) -> Made { return softmax(); }});
const bool dropout_layer = register_layer({{.type = "Dropout",
                                            .group = "Regularisation",
                                            .help = "Sets a random part of the values to 0 in training and scales the rest up.",
                                            .attrs = {{"p", 0.5, 0, 1, "share of the values set to 0"}}},
                                           [](const LayerArgs& a) -> Made { return std::make_shared<Dropout>(a.number("p")); }});
const bool add_layer =
    register_layer({{.type = "Add", .group = "Shape", .help = "Adds two tensors of the same size.", .inputs = 2, .attrs = {}},
                    [](const LayerArgs&) -> Made { return std::make_shared<Add>(); }});

}  // namespace
}  // namespace tenon::nn
