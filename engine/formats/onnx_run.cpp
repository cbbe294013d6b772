#include "engine/formats/onnx_run.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "engine/op/op.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

std::map<std::string, OnnxOperator>& operators() {
  static auto* m = new std::map<std::string, OnnxOperator>;  // leaked: filled by static initialisers in any order
  return *m;
}

// A pointwise op without attributes means the same in ONNX: one table for both directions, the registry's own.
const OpDef* pointwise_op(const std::string& type) {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string, const OpDef*>;
    for (const OpDef* op : all_ops())
      if (op->info.kind == Kind::pointwise && *op->info.onnx && !op->onnx) t->emplace(op->info.onnx, op);
    return t;
  }();
  auto it = table->find(type);
  return it == table->end() ? nullptr : it->second;
}

std::string label(const OnnxNode& n) { return n.name.empty() ? n.op_type : fmt::format("{} '{}'", n.op_type, n.name); }

std::vector<Tensor> run_node(const OnnxCall& call) {
  const OnnxNode& n = call.node;
  if (auto it = operators().find(n.op_type); it != operators().end()) return it->second(call);
  const OpDef* op = pointwise_op(n.op_type);
  // Max and Min take any number of operands, the others exactly theirs: fold from the left.
  std::vector<Tensor> in = call.in;
  bool folds = n.op_type == "Max" || n.op_type == "Min";
  bool missing = std::any_of(in.begin(), in.end(), [](const Tensor& t) { return !t.defined(); });
  if (missing || (folds ? in.empty() : static_cast<int>(in.size()) != op->arity))
    throw Error(fmt::format("{} inputs were given; it takes {}, none of them empty", in.size(), folds ? "one or more" : std::to_string(op->arity)));
  NoAttrs none;
  while (in.size() > 2 && folds) {
    Tensor out;
    dispatch(*op, &none, in.data(), 2, &out);
    in.erase(in.begin());
    in[0] = out;
  }
  if (in.size() == 1 && folds) return in;
  std::vector<Tensor> out(1);
  dispatch(*op, &none, in.data(), static_cast<int>(in.size()), out.data());
  return out;
}

}  // namespace

const Tensor& OnnxCall::input(size_t i) const {
  if (!has(i)) throw Error(fmt::format("input {} is missing", i));
  return in[i];
}

std::vector<int64_t> OnnxCall::list(size_t i, const std::string& attribute, const std::vector<int64_t>& fallback) const {
  if (!has(i)) return node.integers(attribute, fallback);
  Tensor t = contiguous(cast(in[i], DType::i64));
  return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.numel());
}

bool register_onnx(const std::string& op_type, OnnxOperator run) { return operators().emplace(op_type, std::move(run)).second; }

std::string onnx_unsupported(const OnnxNode& n) {
  if (!n.domain.empty() && n.domain != "ai.onnx") return fmt::format("operator domain '{}'", n.domain);
  if (operators().count(n.op_type) || pointwise_op(n.op_type)) return {};
  return fmt::format("operator {}", n.op_type);
}

std::vector<Tensor> run_onnx(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  NoGrad off;
  std::unordered_map<std::string, Tensor> values;
  for (const auto& [name, t] : model.graph.initializers) values[name] = t;
  size_t next = 0;
  for (const OnnxValue& v : model.graph.inputs) {
    if (values.count(v.name) && inputs.size() < model.graph.inputs.size()) continue;  // an initializer is the default of this input
    if (next >= inputs.size()) throw Error(fmt::format("the model needs a value for its input '{}', only {} were given", v.name, inputs.size()));
    values[v.name] = inputs[next++];
  }
  if (next < inputs.size()) throw Error(fmt::format("{} inputs were given, the model has {}", inputs.size(), next));
  for (const OnnxNode& n : model.graph.nodes) {
    if (std::string why = onnx_unsupported(n); !why.empty()) throw Error(fmt::format("{}: {} is not supported", label(n), why));
    OnnxCall call{n, {}, model.opset};
    for (const std::string& name : n.inputs) call.in.push_back(name.empty() ? Tensor() : values.at(name));
    std::vector<Tensor> out;
    try {
      out = run_node(call);
    } catch (const Error& e) {
      throw e.in(label(n));
    }
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k].empty()) continue;
      if (k >= out.size()) throw Error(fmt::format("{}: output {} is not supported", label(n), k));
      values[n.outputs[k]] = out[k];
    }
  }
  std::vector<Tensor> results;
  for (const OnnxValue& v : model.graph.outputs) results.push_back(values.at(v.name));
  return results;
}

}  // namespace tenon::formats
