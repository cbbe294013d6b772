#include "engine/formats/onnx/equal_constants.h"

#include <map>
#include <set>
#include <tuple>

#include "core/sha256.h"
#include "core/tensor_bytes.h"
#include "engine/formats/onnx/value_flow.h"

namespace tenon::formats {

void merge_equal_constants(OnnxGraph& graph) {
  using Content = std::tuple<DType, std::vector<int64_t>, bool, Sha256Digest>;
  const ValueFlow flow(graph);
  std::map<Content, std::string> first;
  std::map<std::string, std::string> instead;
  std::vector<char> copy;
  for (const auto& [name, t] : graph.initializers) {
    if (!flow.is_constant(name) || flow.is_output(name) || flow.is_read_within(name)) continue;
    const std::string_view bytes = logical_bytes(t, copy);
    const Content content{t.dtype(),
                          {t.size().begin(), t.size().end()},
                          graph.four_bit.contains(name),
                          sha256(bytes.data(), bytes.size())};
    const auto [at, fresh] = first.try_emplace(content, name);
    if (!fresh) instead[name] = at->second;
  }
  for (OnnxNode& n : graph.nodes)
    for (std::string& in : n.inputs)
      if (const auto at = instead.find(in); at != instead.end()) in = at->second;
  std::erase_if(graph.initializers, [&](const auto& i) { return instead.contains(i.first); });
  for (const auto& [name, other] : instead) graph.four_bit.erase(name);
}

}  // namespace tenon::formats
