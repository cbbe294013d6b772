#include "engine/formats/onnx/node_errors.h"

#include <algorithm>
#include <iterator>

#include "core/quiet.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/value_flow.h"
#include "engine/formats/tensor_difference.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr int64_t kFloat = 1, kDouble = 11;  // of TensorProto

Tensor widened(const Tensor& t) { return t.defined() && t.dtype() == DType::f32 ? cast(t, DType::f64) : t; }

void widen_all(OnnxGraph& g) {
  for (auto* values : {&g.inputs, &g.outputs, &g.values})
    for (OnnxValue& v : *values)
      if (v.typed && v.dtype == DType::f32) v.dtype = DType::f64;
  for (OnnxNode& n : g.nodes)
    for (OnnxAttribute& a : n.attributes) {
      if (auto* t = std::get_if<Tensor>(&a.value)) *t = widened(*t);
      if (auto* to = std::get_if<int64_t>(&a.value); to && *to == kFloat && (a.name == "to" || a.name == "dtype"))
        *to = kDouble;
      if (auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value); body && *body) {
        *body = std::make_shared<OnnxGraph>(**body);
        for (auto& [name, t] : (*body)->initializers) t = widened(t);
        widen_all(**body);
      }
    }
}

/// Each weight is wide from its first reader to its last alone: all of them at once take twice the file.
void widen_when_read(OnnxGraph& g) {
  const ValueFlow flow(g);
  FreeNames free(g);
  std::vector<std::vector<OnnxNode>> before(g.nodes.size() + 1);
  for (auto& [name, t] : g.initializers) {
    if (!t.defined() || t.dtype() != DType::f32) continue;
    const std::vector<size_t>& readers = flow.readers(name);
    if (readers.empty() && !flow.is_output(name)) continue;
    const auto names_it = [&given = name](const OnnxValue& v) { return v.name == given; };
    if (std::any_of(g.inputs.begin(), g.inputs.end(), names_it)) {  // what an input is where none is given
      t = widened(t);
      continue;
    }
    OnnxNode cast{"", "Cast", "", {free.take(name + " in f32")}, {name}, {{"to", kDouble}}};
    cast.compiled = [](const OnnxCall& call) { return std::vector<OnnxItem>{OnnxItem(widened(call.input(0)))}; };
    name = cast.inputs[0];
    before[readers.empty() ? g.nodes.size() : readers.front()].push_back(std::move(cast));
  }
  std::vector<OnnxNode> nodes;
  for (size_t i = 0; i < before.size(); ++i) {
    std::move(before[i].begin(), before[i].end(), std::back_inserter(nodes));
    if (i < g.nodes.size()) nodes.push_back(std::move(g.nodes[i]));
  }
  g.nodes = std::move(nodes);
}

}  // namespace

OnnxModel in_f64(const OnnxModel& model) {
  const Quiet quiet;
  OnnxModel wide = model;
  widen_all(wide.graph);
  widen_when_read(wide.graph);
  return wide;
}

std::vector<NodeError> node_errors(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  const Quiet quiet;
  std::vector<Tensor> wide;
  for (const Tensor& x : inputs) wide.push_back(widened(x));
  std::vector<size_t> nodes;
  std::vector<std::string> names;
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const OnnxNode& n = model.graph.nodes[i];
    if (n.outputs.empty() || n.outputs[0].empty()) continue;
    nodes.push_back(i);
    names.push_back(n.outputs[0]);
  }
  const auto values_of = [&](const OnnxModel& m, const std::vector<Tensor>& x) {
    return run_onnx_items(with_outputs(m, names), {x.begin(), x.end()}).outputs;
  };
  const std::vector<OnnxItem> is = values_of(model, inputs), should_be = values_of(in_f64(model), wide);
  std::vector<NodeError> errors;
  for (size_t k = 0; k < nodes.size(); ++k) {
    const OnnxNode& n = model.graph.nodes[nodes[k]];
    const Tensor &a = should_be[k].tensor, &b = is[k].tensor;
    if (!a.defined() || !b.defined() || !is_floating(b.dtype()) || !(a.size() == b.size())) continue;
    errors.push_back({nodes[k], n.name.empty() ? n.outputs[0] : n.name, n.op_type,
                      tensor_difference(a, cast(b, a.dtype())).worst_relative()});
  }
  return errors;
}

}  // namespace tenon::formats
