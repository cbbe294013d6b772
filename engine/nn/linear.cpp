#include <fmt/format.h>

#include "core/error.h"
#include "core/state.h"
#include "engine/nn/functional.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

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

Tensor Flatten::forward(const Tensor& x) { return flatten(x, first_, last_); }

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, bool bias, Device device, DType dtype) {
  CategoryScope parameters(Category::parameter);
  weight_ = empty({out, in1, in2}, dtype, device);
  add_parameter("weight", weight_);
  if (!bias) return;
  bias_ = empty({out}, dtype, device);
  add_parameter("bias", bias_);
}

Tensor Bilinear::forward(std::span<const Tensor> in) {
  if (in.size() != 2) throw Error(fmt::format("Bilinear takes 2 inputs, not {}", in.size()));
  const Tensor &a = in[0], &b = in[1];
  int64_t out = weight_.size(0), n1 = weight_.size(1), n2 = weight_.size(2);
  bool alike = a.ndim() == b.ndim() && a.ndim() > 0 && a.size(-1) == n1 && b.size(-1) == n2;
  for (int i = 0; alike && i < a.ndim() - 1; ++i) alike = a.size(i) == b.size(i);
  if (!alike)
    throw Error(fmt::format("inputs of sizes {} and {} do not end in {} and {}, with all else equal",
                            to_string(a.size()), to_string(b.size()), n1, n2));
  int64_t rows = a.numel() / std::max<int64_t>(1, n1);
  // x1 meets every weight at once: [rows, in1] x [in1, out * in2].
  Tensor left =
      reshape(matmul(reshape(a, {rows, n1}), reshape(permute(weight_, {1, 0, 2}), {n1, out * n2})), {rows, out, n2});
  Tensor y = sum(mul(left, unsqueeze(reshape(b, {rows, n2}), 1)), {2});
  if (bias_) y = add(y, bias_);
  Shape size = a.size();
  size[size.n - 1] = out;
  return reshape(y, size);
}

void Bilinear::reset(uint64_t seed) {
  init_default(weight_, weight_.size(1), seed, path() + ".weight");
  if (bias_) init_default(bias_, weight_.size(1), seed, path() + ".bias");
}
std::string Bilinear::describe() const {
  return fmt::format("Bilinear({}, {} -> {})", weight_.size(1), weight_.size(2), weight_.size(0));
}

namespace {

const bool linear_layer = register_layer(
    {{.type = "Linear",
      .group = "Basic",
      .help = "A weighted sum of all inputs for every output: y = x W^T + b.",
      .attrs = {{"in_features", int64_t{0}, 0, 1e9, "size of the last axis of the input; 0: whatever arrives"},
                {"out_features", int64_t{128}, 1, 1e9, "size of the last axis of the output"},
                {"bias", true, 0, 0, "add a trained constant to every output"}}},
     [](const LayerArgs& a) -> std::shared_ptr<Module> {
       return std::make_shared<Linear>(a.features("in_features", -1), a.integer("out_features"), a.flag("bias"),
                                       a.device);
     }});

const bool bilinear_layer = register_layer(
    {{.type = "Bilinear",
      .group = "Basic",
      .help = "A weighted sum of all products of two inputs for every output.",
      .inputs = 2,
      .attrs = {{"in1_features", int64_t{0}, 0, 1e9, "size of the last axis of the first input; 0: whatever arrives"},
                {"in2_features", int64_t{0}, 0, 1e9, "size of the last axis of the second input; 0: whatever arrives"},
                {"out_features", int64_t{32}, 1, 1e9, "size of the last axis of the output"},
                {"bias", true, 0, 0, "add a trained constant to every output"}}},
     [](const LayerArgs& a) -> std::shared_ptr<Module> {
       return std::make_shared<Bilinear>(a.features("in1_features", -1), a.features("in2_features", -1, 1),
                                         a.integer("out_features"), a.flag("bias"), a.device);
     }});

const bool flatten_layer =
    register_layer({{.type = "Flatten",
                     .group = "Shape",
                     .help = "Joins the axes from start_dim to end_dim into one.",
                     .attrs = {{"start_dim", int64_t{1}, 0, 7, "first axis that is joined; 0 is the batch"},
                               {"end_dim", int64_t{-1}, -8, 7, "last axis that is joined; -1 is the last of all"}}},
                    [](const LayerArgs& a) -> std::shared_ptr<Module> {
                      return std::make_shared<Flatten>(static_cast<int>(a.integer("start_dim")),
                                                       static_cast<int>(a.integer("end_dim")));
                    }});

const bool unflatten_layer = register_layer(
    {{.type = "Unflatten",
      .group = "Shape",
      .help = "Splits an axis into several.",
      .attrs = {{"dim", int64_t{1}, -8, 7, "the axis"},
                {"unflattened_size", std::vector<int64_t>{1, -1}, -1, 1e9, "sizes it is split into; -1: the rest"}}},
     [](const LayerArgs& a) -> std::shared_ptr<Module> {
       int64_t dim = a.integer("dim");
       std::vector<int64_t> to = a.ints("unflattened_size");
       return unary(fmt::format("Unflatten({}, {})", dim, to_string(Dims(to))),
                    [dim, to](const Tensor& x) { return unflatten(x, static_cast<int>(dim), Shape(to)); });
     }});

const bool identity_layer = register_layer(
    {{.type = "Identity", .group = "Shape", .help = "Its input as it is.", .attrs = {}},
     [](const LayerArgs&) -> std::shared_ptr<Module> { return unary("Identity", [](const Tensor& x) { return x; }); }});

}  // namespace
}  // namespace tenon::nn
