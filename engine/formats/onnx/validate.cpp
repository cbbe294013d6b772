#include <fmt/format.h>

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {
namespace {

std::string node_words(const OnnxNode& n, size_t number) {
  return fmt::format("node {} ({})", n.name.empty() ? fmt::format("#{}", number) : n.name, n.op_type);
}

/// Names that the body graphs of a node read from outside.
void outer_reads(const OnnxGraph& g, std::vector<std::string>& out) {
  std::unordered_set<std::string> own;
  for (const auto& v : g.inputs) own.insert(v.name);
  for (const auto& [name, t] : g.initializers) own.insert(name);
  for (const auto& n : g.nodes)
    for (const auto& o : n.outputs) own.insert(o);
  std::vector<std::string> reads;
  for (const auto& n : g.nodes) {
    reads.insert(reads.end(), n.inputs.begin(), n.inputs.end());
    for (const auto& a : n.attributes)
      if (const auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value)) outer_reads(**body, reads);
  }
  for (const auto& v : g.outputs) reads.push_back(v.name);
  for (const auto& r : reads)
    if (!r.empty() && !own.contains(r)) out.push_back(r);
}

void validate_graph(OnnxGraph& graph, const std::string& name, const std::unordered_set<std::string>& outer) {
  constexpr int kGiven = -1;
  std::unordered_map<std::string, int> maker;  // node number, or kGiven
  for (const auto& v : graph.inputs)
    if (!maker.emplace(v.name, kGiven).second)
      throw Error(fmt::format("{}: two inputs are called \"{}\"", name, v.name));
  std::unordered_set<std::string> constants;
  for (const auto& [n, t] : graph.initializers) {
    if (!constants.insert(n).second) throw Error(fmt::format("{}: two initializers are called \"{}\"", name, n));
    maker.emplace(n, kGiven);  // an input of the same name has it as its default
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const auto& o : graph.nodes[i].outputs)
      if (!o.empty() && !maker.emplace(o, static_cast<int>(i)).second)
        throw Error(fmt::format("{}: {} makes \"{}\", which is already made elsewhere", name,
                                node_words(graph.nodes[i], i), o));

  // Kahn's algorithm, first come first served: a graph already in order keeps its order.
  std::vector<std::vector<size_t>> readers(graph.nodes.size());
  std::vector<size_t> waits(graph.nodes.size(), 0);
  std::unordered_set<std::string> visible = outer;
  for (const auto& [n, m] : maker) visible.insert(n);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<std::string> reads = graph.nodes[i].inputs;
    for (auto& a : graph.nodes[i].attributes)
      if (const auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value)) {
        outer_reads(**body, reads);
        validate_graph(**body, name, visible);
      }
    for (const auto& r : reads) {
      if (r.empty()) continue;
      const auto at = maker.find(r);
      if (at == maker.end()) {
        if (outer.contains(r)) continue;
        throw Error(fmt::format("{}: {} reads \"{}\", which nothing makes", name, node_words(graph.nodes[i], i), r));
      }
      if (at->second == kGiven) continue;
      readers[static_cast<size_t>(at->second)].push_back(i);
      ++waits[i];
    }
  }
  for (const auto& v : graph.outputs)
    if (!maker.contains(v.name) && !outer.contains(v.name))
      throw Error(fmt::format("{}: nothing makes its output \"{}\"", name, v.name));

  bool sorted = true;
  for (size_t i = 0; i < readers.size() && sorted; ++i)
    for (size_t r : readers[i]) sorted = sorted && r > i;
  if (sorted) return;
  std::deque<size_t> ready;
  for (size_t i = 0; i < waits.size(); ++i)
    if (waits[i] == 0) ready.push_back(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.front();
    ready.pop_front();
    order.push_back(i);
    for (size_t r : readers[i])
      if (--waits[r] == 0) ready.push_back(r);
  }
  if (order.size() < graph.nodes.size())
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i])
        throw Error(
            fmt::format("{}: {} needs its own result: the graph has a cycle", name, node_words(graph.nodes[i], i)));
  std::vector<OnnxNode> nodes;
  for (size_t i : order) nodes.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(nodes);
}

}  // namespace

void validate(OnnxGraph& graph, const std::string& name) { validate_graph(graph, name, {}); }

}  // namespace tenon::formats
