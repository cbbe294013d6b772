#include "engine/formats/onnx/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "engine/formats/onnx/batch_norm_fold.h"
#include "engine/formats/onnx/quantized_graph.h"
#include "engine/formats/onnx/value_flow.h"

namespace tenon::formats {
namespace {

constexpr const char* kNames[kPrecisions] = {"f32", "int8-static", "int8-dynamic", "int8-weights", "int4-weights"};

/// Where weights stand among an operator's inputs, and how their axes are meant.
struct WeightedOp {
  const char* type;
  std::vector<size_t> inputs;
  int axes;  ///< that a weight has; -1: any number from 3 on
  int channel_axis, row_axes;
  bool integer, table;
};
const std::vector<WeightedOp>& weighted_ops() {
  static const std::vector<WeightedOp> all = {
      {"Conv", {1}, -1, 0, 1, true, false},    {"ConvTranspose", {1}, -1, 1, 1, false, false},
      {"Gemm", {1}, 2, 1, 1, true, false},     {"MatMul", {1}, 2, 1, 1, true, false},
      {"Gather", {0}, 2, 0, 1, false, true},   {"Slice", {0}, 2, 0, 1, false, true},
      {"LSTM", {1, 2}, 3, 1, 2, false, false}, {"GRU", {1, 2}, 3, 1, 2, false, false},
      {"RNN", {1, 2}, 3, 1, 2, false, false}};
  return all;
}

/// What an attribute changes of that; false: such a node is none.
bool suits(const OnnxNode& n, WeightedNode& w) {
  if (n.op_type == "Gemm") {
    w.channel_axis = n.integer("transB", 0) ? 0 : 1;
    w.integer = n.integer("transA", 0) == 0 && n.number("alpha", 1) == 1 && n.number("beta", 1) == 1;
  }
  if (n.op_type == "ConvTranspose" && n.integer("group", 1) != 1) w.channel_axis = -1;
  return n.op_type != "Gather" || n.integer("axis", 0) == 0;
}

std::string module_of_weight(const std::string& weight) {
  const size_t dot = weight.rfind('.');
  return dot == weight.npos ? weight : weight.substr(0, dot);
}

std::optional<WeightedNode> weighted_node(const OnnxGraph& g, const ValueFlow& flow, size_t at) {
  const OnnxNode& n = g.nodes[at];
  for (const WeightedOp& op : weighted_ops()) {
    if (n.op_type != op.type || !n.domain.empty()) continue;
    WeightedNode w{.node = at, .op = n.op_type, .output = n.outputs.at(0), .inputs = op.inputs};
    w.channel_axis = op.channel_axis, w.row_axes = op.row_axes, w.integer = op.integer, w.table = op.table;
    for (size_t i : op.inputs) {
      const Tensor* t = i < n.inputs.size() && flow.is_constant(n.inputs[i]) ? g.initializer(n.inputs[i]) : nullptr;
      if (!t || t->dtype() != DType::f32 || t->numel() == 0 || (op.axes < 0 ? t->ndim() < 3 : t->ndim() != op.axes))
        return {};
    }
    const bool suitable = suits(n, w);
    w.integer = w.integer && !flow.is_constant(n.inputs[0]);
    if (suitable) return w;
  }
  return {};
}

std::vector<WeightedLayer> layers_of(const OnnxGraph& g, const std::vector<WeightedNode>& nodes) {
  std::vector<WeightedLayer> layers;
  std::map<std::string, size_t> places;
  std::set<std::string> counted;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<std::string>& inputs = g.nodes[nodes[i].node].inputs;
    const std::string module = module_of_weight(inputs[nodes[i].inputs[0]]);
    const auto [at, fresh] = places.try_emplace(module, layers.size());
    if (fresh) layers.push_back({.module = module, .op = nodes[i].op});
    WeightedLayer& layer = layers[at->second];
    layer.nodes.push_back(i);
    for (size_t k : nodes[i].inputs)
      if (counted.insert(inputs[k]).second) layer.weights += g.initializer(inputs[k])->numel();
  }
  return layers;
}

}  // namespace

const char* name(Precision p) { return kNames[static_cast<size_t>(p)]; }

Precision precision_named(const std::string& word) {
  std::string all;
  for (int i = 0; i < kPrecisions; ++i) {
    if (word == kNames[i]) return static_cast<Precision>(i);
    all += (i ? ", " : "") + std::string(kNames[i]);
  }
  throw Error::usage("there is no precision \"" + word + "\"", all);
}

std::vector<WeightedNode> weighted_nodes(const OnnxGraph& graph) {
  const ValueFlow flow(graph);
  std::vector<WeightedNode> out;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (auto w = weighted_node(graph, flow, i)) out.push_back(std::move(*w));
  return out;
}

Precision quantized_as(const WeightedNode& node, Precision wanted) {
  const bool alone = wanted == Precision::int4_weights ? node.table : !node.integer;
  return alone && wanted != Precision::f32 ? Precision::int8_weights : wanted;
}

Quantizer::Quantizer(OnnxModel model, const Quantization& how) : model_(std::move(model)), how_(how) {
  if (how.precision == Precision::int8_static) calibration_named(how.calibration);
  if (how.precision == Precision::int4_weights && how.group < 16)
    throw Error::usage(fmt::format("groups of {} weights: they have 16 at least", how.group), "32 is usual.");
  if (model_.graph.inputs.size() != 1)
    throw Error(
        fmt::format("the model has {} inputs; one with a single input can be quantized", model_.graph.inputs.size()));
  fold_batch_norms(model_.graph);
  nodes_ = weighted_nodes(model_.graph);
  if (nodes_.empty())
    throw Error("the model has no layer whose weights can be quantized",
                "Convolutions, linear and recurrent layers and embeddings can be.");
  layers_ = layers_of(model_.graph, nodes_);
  if (how_.trained) take_trained_grids();
}

void Quantizer::take_trained_grids() {
  if (how_.precision != Precision::int8_static)
    throw Error::usage(std::string("the grids that training found are not of ") + name(how_.precision), "int8-static");
  const ValueFlow flow(model_.graph);
  std::map<std::string, std::pair<double, double>> ranges;
  for (const WeightedLayer& layer : layers_) {
    const auto range = how_.trained->inputs.find(layer.module);
    if (range == how_.trained->inputs.end()) continue;
    for (const size_t k : layer.nodes) {
      if (!nodes_[k].integer) continue;
      const auto [at, fresh] =
          ranges.try_emplace(flow.root(model_.graph.nodes[nodes_[k].node].inputs[0]), range->second);
      at->second = {std::min(at->second.first, range->second.first), std::max(at->second.second, range->second.second)};
    }
  }
  for (const auto& [name, r] : ranges) grids_[name] = asymmetric_grid(r.first, r.second, how_.trained->activation_bits);
  // What has no grid is no layer to be quantized.
  std::erase_if(layers_, [&](const WeightedLayer& l) {
    return std::any_of(l.nodes.begin(), l.nodes.end(),
                       [&](size_t k) { return !nodes_[k].integer || !how_.trained->inputs.contains(l.module); });
  });
  if (layers_.empty()) throw Error("the grids that training found are of no layer of this model");
}

std::vector<std::string> Quantizer::activations() const {
  if (how_.precision != Precision::int8_static || how_.trained) return {};
  const ValueFlow flow(model_.graph);
  std::set<std::string> all, read;
  for (const WeightedNode& w : nodes_) {
    if (!w.integer) continue;
    read.insert(flow.root(model_.graph.nodes[w.node].inputs[0]));
    if (const std::string made = quantized_output(model_.graph, flow, w); !made.empty()) all.insert(made);
  }
  for (const CarriedNode& c : carried_nodes(model_.graph, flow, all, read)) all.insert(c.made);
  all.insert(read.begin(), read.end());
  return {all.begin(), all.end()};
}

void Quantizer::calibrate(const std::vector<Tensor>& batches, const QuantProgress& progress) {
  const CalibrationDef& method = calibration_named(how_.calibration);
  constexpr int kBits = 8;
  for (const auto& [name, values] : observe(model_, activations(), batches, progress)) {
    const CalibrationRange r = method.range(values, 1 << kBits);
    grids_[name] = asymmetric_grid(r.lo, r.hi, kBits);
  }
}

OnnxModel Quantizer::quantized(const std::vector<bool>& chosen) const {
  std::vector<WeightedNode> nodes;
  for (size_t i = 0; i < layers_.size(); ++i)
    if (chosen.at(i))
      for (size_t k : layers_[i].nodes) nodes.push_back(nodes_[k]);
  return quantized_graph(model_, nodes, how_, grids_);
}

}  // namespace tenon::formats
