#include "engine/formats/onnx/value_flow.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tenon::formats {
namespace {

constexpr std::array<std::string_view, 7> kPassOn = {"MaxPool", "Reshape",   "Flatten", "Transpose",
                                                     "Squeeze", "Unsqueeze", "Identity"};

void names_in_bodies(const OnnxNode& node, std::set<std::string>& out) {
  for (const OnnxAttribute& a : node.attributes)
    if (const auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value)) {
      for (const OnnxNode& inner : (*body)->nodes) {
        out.insert(inner.inputs.begin(), inner.inputs.end());
        names_in_bodies(inner, out);
      }
      for (const OnnxValue& v : (*body)->outputs) out.insert(v.name);
    }
}

}  // namespace

ValueFlow::ValueFlow(const OnnxGraph& graph) : graph_(graph) {
  for (const auto& [name, t] : graph.initializers) constants_.insert(name);
  for (const OnnxValue& v : graph.inputs) constants_.erase(v.name);  // whoever runs it may give another value
  for (const OnnxValue& v : graph.outputs) outputs_.insert(v.name);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::set<std::string> reads(graph.nodes[i].inputs.begin(), graph.nodes[i].inputs.end()), inner;
    names_in_bodies(graph.nodes[i], inner);
    within_.insert(inner.begin(), inner.end());
    reads.insert(inner.begin(), inner.end());
    for (const std::string& name : reads) readers_[name].push_back(i);
    for (const std::string& name : graph.nodes[i].outputs) makers_.emplace(name, static_cast<int>(i));
  }
}

int ValueFlow::maker(const std::string& value) const {
  const auto at = makers_.find(value);
  return at == makers_.end() ? -1 : at->second;
}

const std::vector<size_t>& ValueFlow::readers(const std::string& value) const {
  static const std::vector<size_t> none;
  const auto at = readers_.find(value);
  return at == readers_.end() ? none : at->second;
}

bool ValueFlow::passes_on(size_t node) const {
  const OnnxNode& n = graph_.nodes[node];
  return n.domain.empty() && std::find(kPassOn.begin(), kPassOn.end(), n.op_type) != kPassOn.end() &&
         !n.inputs.empty() && n.outputs.size() == 1;
}

const std::string& ValueFlow::root(const std::string& value) const {
  const std::string* at = &value;
  for (int by = maker(*at); by >= 0 && passes_on(static_cast<size_t>(by)); by = maker(*at)) {
    const std::string& from = graph_.nodes[static_cast<size_t>(by)].inputs[0];
    if (is_constant(from)) break;
    at = &from;
  }
  return *at;
}

FreeNames::FreeNames(const OnnxGraph& graph) {
  for (const auto& [name, t] : graph.initializers) taken_.insert(name);
  for (const OnnxValue& v : graph.inputs) taken_.insert(v.name);
  for (const OnnxNode& n : graph.nodes) {
    taken_.insert(n.name);
    taken_.insert(n.outputs.begin(), n.outputs.end());
    names_in_bodies(n, taken_);
  }
}

std::string FreeNames::take(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

}  // namespace tenon::formats
