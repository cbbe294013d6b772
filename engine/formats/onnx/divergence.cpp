#include "engine/formats/onnx/divergence.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/quiet.h"
#include "engine/formats/onnx/run.h"

namespace tenon::formats {
namespace {

/// The model's own value by each name that the file has for it.
std::map<std::string, Tensor> own_by_name(const OnnxGraph& file, const ModelValues& own) {
  std::map<std::string, Tensor> all = own.values;
  size_t next = 0;
  for (const OnnxValue& v : file.inputs)
    if (!file.initializer(v.name) && next < own.inputs.size()) all[v.name] = own.inputs[next++];
  for (size_t i = 0; i < file.outputs.size() && i < own.outputs.size(); ++i) all[file.outputs[i].name] = own.outputs[i];
  return all;
}

bool beyond(const TensorDifference& d, double tolerance) { return d.apart || !(d.relative() <= tolerance); }

/// Of the node's output from the model's; why there is none.
std::string compared(const Tensor& should_be, const Tensor& is, TensorDifference& d) {
  if (!is.defined()) return "it gives no tensor";
  if (!(is.size() == should_be.size()))
    return fmt::format("it gives the size {} where the model has {}", to_string(is.size()),
                       to_string(should_be.size()));
  d = tensor_difference(should_be, is);
  return {};
}

/// Every node alone.
class Alone {
 public:
  Alone(const OnnxModel& file, const std::map<std::string, Tensor>& own) : file_(file), own_(own) {
    for (const auto& [name, t] : file.graph.initializers) held_[name] = t;
  }

  std::vector<NodeDivergence> nodes(size_t& unmatched) {
    std::vector<NodeDivergence> all;
    for (size_t i = 0; i < file_.graph.nodes.size(); ++i) {
      const OnnxNode& n = file_.graph.nodes[i];
      const auto own = n.outputs.empty() ? own_.end() : own_.find(n.outputs[0]);
      NodeDivergence d{i, n.outputs.empty() ? n.name : n.outputs[0], n.op_type};
      std::vector<Tensor> out;
      d.known = run(n, out, d.why);
      if (d.known)
        for (size_t k = 0; k < n.outputs.size() && k < out.size(); ++k) held_[n.outputs[k]] = out[k];
      if (own == own_.end()) {
        ++unmatched;
        continue;
      }
      d.size = own->second.size();
      if (d.known && d.why.empty()) d.why = compared(own->second, out.empty() ? Tensor() : out[0], d.alone);
      all.push_back(std::move(d));
    }
    return all;
  }

 private:
  /// What a node reads: what the file holds, else the model's own value, else what nodes before it made of those.
  Tensor input(const std::string& name) const {
    if (file_.graph.initializer(name)) return held_.at(name);
    if (const auto own = own_.find(name); own != own_.end()) return own->second;
    const auto made = held_.find(name);
    if (made == held_.end()) throw Error(fmt::format("'{}' is not known", name));
    return made->second;
  }
  bool run(const OnnxNode& n, std::vector<Tensor>& out, std::string& why) const {
    std::vector<Tensor> in;
    try {
      for (const std::string& name : n.inputs) in.push_back(name.empty() ? Tensor() : input(name));
    } catch (const Error&) {
      return false;
    }
    int64_t opset = file_.opset;
    for (const auto& [domain, version] : file_.other_opsets)
      if (!n.domain.empty() && domain == n.domain) opset = version;
    try {
      out = run_onnx_node(n, in, opset);
    } catch (const OnnxUnsupported&) {
      return false;
    } catch (const Error& e) {
      why = e.message();
    }
    return true;
  }

  const OnnxModel& file_;
  const std::map<std::string, Tensor>& own_;
  std::map<std::string, Tensor> held_;
};

/// What the file as a whole comes to, by name.
std::map<std::string, Tensor> all_values(const OnnxModel& file, const std::vector<Tensor>& inputs) {
  const std::vector<std::string> names = value_names(file.graph);
  const std::vector<OnnxItem> out = run_onnx_items(with_outputs(file, names), {inputs.begin(), inputs.end()}).outputs;
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < out.size(); ++i) values[names[i]] = out[i].tensor;
  return values;
}

}  // namespace

ModelValues model_values(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Quiet quiet;
  const std::vector<Tensor> values = graph_values(graph, inputs);
  ModelValues own;
  own.inputs = inputs;
  for (int v : graph.outputs) own.outputs.push_back(values[static_cast<size_t>(v)]);
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].defined()) own.values.emplace(graph.values[v].name, values[v]);
  return own;
}

std::vector<std::string> value_names(const OnnxGraph& graph) {
  std::vector<std::string> names;
  for (const OnnxNode& n : graph.nodes)
    if (!n.outputs.empty() && !n.outputs[0].empty()) names.push_back(n.outputs[0]);
  return names;
}

Divergence find_divergence(const OnnxModel& file, const ModelValues& own, double tolerance) {
  const Quiet quiet;
  const std::map<std::string, Tensor> named = own_by_name(file.graph, own);
  Divergence all;
  all.nodes = Alone(file, named).nodes(all.unmatched);
  std::map<std::string, Tensor> carried;
  try {
    carried = all_values(file, own.inputs);
  } catch (const Error& e) {
    all.broken = e.message();
  }
  const auto first_where = [&](const auto& is) {
    const auto at = std::find_if(all.nodes.begin(), all.nodes.end(), is);
    return at == all.nodes.end() ? -1 : at - all.nodes.begin();
  };
  for (NodeDivergence& d : all.nodes)
    if (const auto at = carried.find(d.name); at != carried.end() && at->second.defined()) {
      const std::string why = compared(named.at(d.name), at->second, d.carried);
      if (!d.known && d.why.empty()) d.why = why;
    }
  all.first =
      first_where([&](const NodeDivergence& d) { return d.known && (!d.why.empty() || beyond(d.alone, tolerance)); });
  if (all.first < 0)
    all.first = first_where([&](const NodeDivergence& d) { return !d.why.empty() || beyond(d.carried, tolerance); });
  return all;
}

}  // namespace tenon::formats
