#include <fmt/format.h>

#include "core/state.h"
#include "engine/model/layer_registry.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"
#include "engine/ops/matmul.h"
#include "engine/ops/view.h"

namespace tenon::nn {

Linear::Linear(int64_t in, int64_t out, bool bias, Device device, DType dtype) {
  CategoryScope parameters(Category::parameter);
  weight_ = empty({out, in}, dtype, device);
  add_parameter("weight", weight_);
  if (!bias) return;
  bias_ = empty({out}, dtype, device);
  add_parameter("bias", bias_);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight_, bias_); }

void Linear::reset(uint64_t seed) {
  init_default(weight_, weight_.size(1), seed, path() + ".weight");
  if (bias_) init_default(bias_, weight_.size(1), seed, path() + ".bias");
}

std::string Linear::describe() const {
  return fmt::format("Linear({} -> {}{})", weight_.size(1), weight_.size(0), bias_ ? "" : ", no bias");
}

Tensor Flatten::forward(const Tensor& x) { return flatten(x, first_); }

namespace {

const bool linear_layer =
    register_layer({{.type = "Linear",
                     .group = "Basic",
                     .help = "A weighted sum of all inputs for every output: y = x W^T + b.",
                     .attrs = {{"in_features", int64_t{0}, 0, 1e9, "size of the last axis of the input; 0: whatever arrives"},
                               {"out_features", int64_t{128}, 1, 1e9, "size of the last axis of the output"},
                               {"bias", true, 0, 0, "add a trained constant to every output"}}},
                    [](const LayerArgs& a) -> std::shared_ptr<Module> {
                      return std::make_shared<Linear>(a.features("in_features", -1), a.integer("out_features"), a.flag("bias"), a.device);
                    }});

const bool flatten_layer = register_layer(
    {{.type = "Flatten",
      .group = "Shape",
      .help = "Joins the axes from start_dim on into one.",
      .attrs = {{"start_dim", int64_t{1}, 0, 7, "first axis that is joined; 0 is the batch"}}},
     [](const LayerArgs& a) -> std::shared_ptr<Module> { return std::make_shared<Flatten>(static_cast<int>(a.integer("start_dim"))); }});

}  // namespace
}  // namespace tenon::nn
