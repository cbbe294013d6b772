// Where in a sequence: positions that are trained, given, or turned.
#include <fmt/format.h>

#include "core/error.h"
#include "core/state.h"
#include "engine/nn/functional.h"
#include "engine/nn/init.h"
#include "engine/ops/attention.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

using Made = std::shared_ptr<Module>;

/// Trained rows [count, features], as the layers below use them.
class LearnedRows : public Module {
 public:
  LearnedRows(const char* type, int64_t count, int64_t width, Device device) : type_(type) {
    CategoryScope parameters(Category::parameter);
    weight_ = empty({count, width}, DType::f32, device);
    add_parameter("weight", weight_);
  }
  std::string describe() const override { return fmt::format("{}({} x {})", type_, weight_.size(0), weight_.size(1)); }

 protected:
  void reset(uint64_t seed) override { init_normal(weight_, 0, 0.02, seed, path() + ".weight"); }
  Tensor weight_;

 private:
  const char* type_;
};

/// Adds a trained row for every position: [batch, length, features].
class LearnedPositions : public LearnedRows {
 public:
  LearnedPositions(int64_t most, int64_t width, Device device) : LearnedRows("LearnedPositions", most, width, device) {}

 protected:
  Tensor forward(const Tensor& x) override {
    if (x.ndim() != 3 || x.size(1) > weight_.size(0))
      throw Error(fmt::format("its input has size {}; it must be [batch, up to {} positions, {}]", to_string(x.size()),
                              weight_.size(0), weight_.size(1)));
    return add(x, narrow(weight_, 0, 0, x.size(1)));
  }
};

/// Trained rows before those of every sample: [batch, length, features] -> [batch, count + length, features].
class LearnedTokens : public LearnedRows {
 public:
  LearnedTokens(int64_t count, int64_t width, Device device) : LearnedRows("LearnedTokens", count, width, device) {}

 protected:
  Tensor forward(const Tensor& x) override {
    if (x.ndim() != 3 || x.size(2) != weight_.size(1))
      throw Error(
          fmt::format("its input has size {}; it must be [batch, length, {}]", to_string(x.size()), weight_.size(1)));
    return cat({expand(unsqueeze(weight_, 0), {x.size(0), weight_.size(0), weight_.size(1)}), x}, 1);
  }
};

const bool tokens =
    register_layer({{.type = "LearnedTokens",
                     .group = "Attention",
                     .help = "Puts trained rows before every sequence, such as a class token.",
                     .attrs = {{"count", int64_t{1}, 1, 1e6, "rows"}},
                     .examples = {{{2, 5, 6}}}},
                    [](const LayerArgs& a) -> Made {
                      if (a.inputs[0].shape.n != 3)
                        throw Error(fmt::format("its input has size {}; it must be [batch, length, features]",
                                                to_string(a.inputs[0].shape)));
                      return std::make_shared<LearnedTokens>(a.integer("count"), a.inputs[0].shape[2], a.device);
                    }});
const bool learned = register_layer(
    {{.type = "LearnedPositions",
      .group = "Attention",
      .help = "Adds a trained row of values for every position of [batch, length, features].",
      .attrs = {{"max_length", int64_t{1024}, 1, 1e7, "positions there are rows for"}},
      .examples = {{{2, 5, 8}}}},
     [](const LayerArgs& a) -> Made {
       if (a.inputs[0].shape.n != 3)
         throw Error("its input has shape " + to_string(a.inputs[0].shape) + "; it must be [batch, length, features]");
       return std::make_shared<LearnedPositions>(a.integer("max_length"), a.inputs[0].shape[2], a.device);
     }});
const bool sinusoidal = register_layer(
    {{.type = "SinusoidalPositions",
      .group = "Attention",
      .help = "Adds sines and cosines of the position to [batch, length, features].",
      .attrs = {{"base", 10000.0, 1, 1e9, "ratio of the slowest wave to the fastest"}},
      .examples = {{{2, 5, 8}}}},
     [](const LayerArgs& a) -> Made {
       double base = a.number("base");
       return unary("SinusoidalPositions", [base](const Tensor& x) {
         if (x.ndim() < 2)
           throw Error("its input has size " + to_string(x.size()) + "; it must be [.., length, features]");
         return add(x, sinusoidal_positions(x.size(-2), x.size(-1), x.dtype(), base, x.device()));
       });
     }});
const bool turned =
    register_layer({{.type = "RotaryPositions",
                     .group = "Attention",
                     .help = "Turns pairs of features of [.., length, features] by angles that grow with the position.",
                     .attrs = {{"base", 10000.0, 1, 1e9, "ratio of the slowest turn to the fastest"},
                               {"interleaved", false, 0, 0, "pairs are neighbours; false: halves"}},
                     .examples = {{{2, 5, 8}}}},
                    [](const LayerArgs& a) -> Made {
                      double base = a.number("base");
                      bool interleaved = a.flag("interleaved");
                      return unary("RotaryPositions", [=](const Tensor& x) { return rotary(x, base, 0, interleaved); });
                    }});

}  // namespace
}  // namespace tenon::nn
