#include "engine/ops/activation.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "engine/nn/functional.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {

std::shared_ptr<Module> relu() {
  return unary("ReLU", [](const Tensor& x) { return tenon::relu(x); });
}
std::shared_ptr<Module> tanh() {
  return unary("Tanh", [](const Tensor& x) { return tenon::tanh(x); });
}
std::shared_ptr<Module> sigmoid() {
  return unary("Sigmoid", [](const Tensor& x) { return tenon::sigmoid(x); });
}
std::shared_ptr<Module> softmax() {
  return unary("Softmax", [](const Tensor& x) { return tenon::softmax(x, -1); });
}

PReLU::PReLU(int64_t num_parameters, double init, Device device, DType dtype) : init_(init) {
  weight_ = empty({num_parameters}, dtype, device);
  add_parameter("weight", weight_);
}
Tensor PReLU::forward(const Tensor& x) { return prelu(x, weight_); }
void PReLU::reset(uint64_t) { nn::fill(weight_, init_); }
std::string PReLU::describe() const { return fmt::format("PReLU({})", weight_.numel()); }

namespace {

using Made = std::shared_ptr<Module>;

/// A function without attributes.
bool plain(const char* type, const char* help, Tensor (*f)(const Tensor&), Place place = Place::current()) {
  return register_layer({{.type = type, .group = "Activation", .help = help, .attrs = {}},
                         [f](const LayerArgs& a) -> Made { return unary(a.spec.type, f); }},
                        place);
}
const bool plain_layers[] = {
    plain("ReLU", "max(x, 0)", tenon::relu),
    plain("Tanh", "Hyperbolic tangent, between -1 and 1.", tenon::tanh),
    plain("Sigmoid", "1 / (1 + exp(-x)), between 0 and 1.", tenon::sigmoid),
    plain("SiLU", "x sigmoid(x), also called swish.", tenon::silu),
    plain("Mish", "x tanh(softplus(x))", tenon::mish),
    plain("SELU", "Scaled exponential unit that keeps mean 0 and variance 1.", tenon::selu),
    plain("ReLU6", "max(x, 0), at most 6.", tenon::relu6),
    plain("Hardsigmoid", "A straight-lined sigmoid: relu6(x + 3) / 6.", [](const Tensor& x) { return hardsigmoid(x); }),
    plain("Hardswish", "x relu6(x + 3) / 6", tenon::hardswish),
    plain("Softsign", "x / (1 + |x|), between -1 and 1.", tenon::softsign),
    plain("Tanhshrink", "x - tanh(x)", tenon::tanhshrink),
    plain("LogSigmoid", "log(sigmoid(x))", tenon::logsigmoid),
};

AttrDef axis(const char* help) { return {"dim", int64_t{-1}, -8, 7, help}; }
/// A function along an axis.
template <Tensor (*F)(const Tensor&, int)>
Made along(const LayerArgs& a) {
  int dim = static_cast<int>(a.integer("dim"));
  return unary(fmt::format("{}(dim {})", a.spec.type, dim), [dim](const Tensor& x) { return F(x, dim); });
}
const bool along_layers[] = {
    register_layer({{.type = "Softmax",
                     .group = "Activation",
                     .help = "exp(x) / sum(exp(x)): shares that add up to 1.",
                     .attrs = {axis("axis that adds up to 1")}},
                    along<tenon::softmax>}),
    register_layer({{.type = "LogSoftmax",
                     .group = "Activation",
                     .help = "Logarithm of the shares that Softmax gives.",
                     .attrs = {axis("axis whose shares add up to 1")}},
                    along<tenon::log_softmax>}),
    register_layer({{.type = "Softmin",
                     .group = "Activation",
                     .help = "Softmax of -x: the smallest gets the largest share.",
                     .attrs = {axis("axis that adds up to 1")}},
                    along<tenon::softmin>}),
    register_layer({{.type = "GLU",
                     .group = "Activation",
                     .help = "The first half times the sigmoid of the second.",
                     .attrs = {axis("axis that is halved")}},
                    along<tenon::glu>}),
    register_layer(
        {{.type = "Softmax2d", .group = "Activation", .help = "Softmax over the channels of an image.", .attrs = {}},
         [](const LayerArgs&) -> Made {
           return unary("Softmax2d", [](const Tensor& x) { return tenon::softmax(x, -3); });
         }}),
};

/// A function with one number.
template <Tensor (*F)(const Tensor&, double)>
bool with_number(const char* type, const char* help, const AttrDef& attr) {
  return register_layer(
      {{.type = type, .group = "Activation", .help = help, .attrs = {attr}}, [](const LayerArgs& a) -> Made {
         double p = a.number(a.info.attrs[0].name);
         return unary(fmt::format("{}({})", a.spec.type, p), [p](const Tensor& x) { return F(x, p); });
       }});
}
const bool number_layers[] = {
    with_number<tenon::elu>("ELU", "x, or alpha (exp(x) - 1) below 0.",
                            {"alpha", 1.0, -1e6, 1e6, "how far below 0 it goes"}),
    with_number<tenon::celu>("CELU", "x, or alpha (exp(x / alpha) - 1) below 0.",
                             {"alpha", 1.0, -1e6, 1e6, "how far below 0 it goes"}),
    with_number<tenon::leaky_relu>("LeakyReLU", "x, or a small slope times x below 0.",
                                   {"negative_slope", 0.01, -1e6, 1e6, "slope below 0"}),
    with_number<tenon::softshrink>("Softshrink", "Moves x towards 0.", {"lambd", 0.5, 0, 1e6, "by how much"}),
    with_number<tenon::hardshrink>("Hardshrink", "x, or 0 where it is small.",
                                   {"lambd", 0.5, 0, 1e6, "up to where it is small"}),
};

const bool gelu_layer = register_layer(
    {{.type = "GELU",
      .group = "Activation",
      .help = "x times the share of a normal distribution below x.",
      .attrs =
          {{"approximate", std::string("none"), 0, 0, "none: exact; tanh: by a hyperbolic tangent", {"none", "tanh"}}}},
     [](const LayerArgs& a) -> Made {
       std::string approximate = a.text("approximate");
       if (approximate != "none" && approximate != "tanh")
         throw Error(fmt::format("approximate is \"{}\"; it must be none or tanh", approximate));
       return unary(approximate == "tanh" ? "GELU(tanh)" : "GELU",
                    approximate == "tanh" ? tenon::gelu_tanh : tenon::gelu);
     }});
const bool softplus_layer = register_layer(
    {{.type = "Softplus",
      .group = "Activation",
      .help = "log(1 + exp(beta x)) / beta: a smooth max(x, 0).",
      .attrs = {{"beta", 1.0, 1e-6, 1e6, "sharpness"},
                {"threshold", 20.0, 0, 1e6, "beta x above which it is x itself"}}},
     [](const LayerArgs& a) -> Made {
       double beta = a.number("beta"), limit = a.number("threshold");
       return unary(fmt::format("Softplus({})", beta), [=](const Tensor& x) { return softplus(x, beta, limit); });
     }});
const bool hardtanh_layer = register_layer(
    {{.type = "Hardtanh",
      .group = "Activation",
      .help = "x within limits.",
      .attrs = {{"min_val", -1.0, -1e9, 1e9, "lower limit"}, {"max_val", 1.0, -1e9, 1e9, "upper limit"}}},
     [](const LayerArgs& a) -> Made {
       double lo = a.number("min_val"), hi = a.number("max_val");
       return unary(fmt::format("Hardtanh({}, {})", lo, hi), [=](const Tensor& x) { return hardtanh(x, lo, hi); });
     }});
const bool threshold_layer =
    register_layer({{.type = "Threshold",
                     .group = "Activation",
                     .help = "x where it is above the threshold, else a value.",
                     .attrs = {{"threshold", 0.0, -1e9, 1e9, "the threshold"},
                               {"value", 0.0, -1e9, 1e9, "what stands for smaller ones"}}},
                    [](const LayerArgs& a) -> Made {
                      double limit = a.number("threshold"), value = a.number("value");
                      return unary(fmt::format("Threshold({}, {})", limit, value),
                                   [=](const Tensor& x) { return threshold(x, limit, value); });
                    }});
const bool prelu_layer =
    register_layer({{.type = "PReLU",
                     .group = "Activation",
                     .help = "x, or a trained slope times x below 0.",
                     .attrs = {{"num_parameters", int64_t{1}, 1, 1e6, "1, or one a channel (axis 1)"},
                               {"init", 0.25, -1e3, 1e3, "slope at the start"}}},
                    [](const LayerArgs& a) -> Made {
                      return std::make_shared<PReLU>(a.integer("num_parameters"), a.number("init"), a.device);
                    }});

/// In training each negative value has a random slope, in evaluation their mean.
class RReLU : public Module {
 public:
  RReLU(double lower, double upper) : lower_(lower), upper_(upper) {}
  std::string describe() const override { return fmt::format("RReLU({}, {})", lower_, upper_); }

 protected:
  Tensor forward(const Tensor& x) override {
    if (!training()) return leaky_relu(x, (lower_ + upper_) / 2);
    return rrelu(x, lower_, upper_, draws(static_cast<uint64_t>(x.numel()), path(), x));
  }

 private:
  double lower_, upper_;
};
const bool rrelu_layer = register_layer(
    {{.type = "RReLU",
      .group = "Activation",
      .help = "LeakyReLU whose slope is random in training.",
      .attrs = {{"lower", 1.0 / 8, 0, 1e3, "least slope"}, {"upper", 1.0 / 3, 0, 1e3, "largest slope"}}},
     [](const LayerArgs& a) -> Made { return std::make_shared<RReLU>(a.number("lower"), a.number("upper")); }});

}  // namespace
}  // namespace tenon::nn
