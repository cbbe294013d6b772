// The graphs of two model files, node by node.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "engine/formats/model_difference.h"

// Note [Nodes that match]
// Those of one name, where it names one node in each file. Of what is left over, in the files' order: those at the
// beginning and at the end as far as their ops agree, then the first of an op with the first of that op. Names of
// values are made up by whoever writes a file, so two inputs are the same where the nodes that give them match; what no
// node gives (a weight, an input of the graph) goes by its name.

namespace tenon::formats {
namespace {

std::vector<int> left_over(const std::vector<int>& match) {
  std::vector<int> out;
  for (size_t i = 0; i < match.size(); ++i)
    if (match[i] < 0) out.push_back(static_cast<int>(i));
  return out;
}

class NodeMatch {
 public:
  NodeMatch(const ModelFile& a, const ModelFile& b)
      : a_(a), b_(b), of_a_(a.nodes.size(), -1), of_b_(b.nodes.size(), -1) {
    by_name();
    by_place();
  }
  /// The node of B that each of A is, and the other way round; -1: none.
  const std::vector<int>& of_a() const { return of_a_; }
  const std::vector<int>& of_b() const { return of_b_; }

 private:
  void pair(int a, int b) {
    of_a_[static_cast<size_t>(a)] = b;
    of_b_[static_cast<size_t>(b)] = a;
  }
  const std::string& op_a(int i) const { return a_.nodes[static_cast<size_t>(i)].op; }
  const std::string& op_b(int i) const { return b_.nodes[static_cast<size_t>(i)].op; }

  /// By name; -2 where several have it.
  static std::unordered_map<std::string, int> names(const ModelFile& m) {
    std::unordered_map<std::string, int> out;
    for (size_t i = 0; i < m.nodes.size(); ++i)
      if (!m.nodes[i].name.empty())
        if (const auto [at, fresh] = out.emplace(m.nodes[i].name, static_cast<int>(i)); !fresh) at->second = -2;
    return out;
  }
  void by_name() {
    const auto b = names(b_);
    for (const auto& [name, i] : names(a_))
      if (const auto at = b.find(name); i >= 0 && at != b.end() && at->second >= 0) pair(i, at->second);
  }
  void by_place() {
    std::vector<int> a = left_over(of_a_), b = left_over(of_b_);
    size_t first = 0;
    while (first < std::min(a.size(), b.size()) && op_a(a[first]) == op_b(b[first])) ++first;
    size_t last = 0;
    while (last + first < std::min(a.size(), b.size()) && op_a(a[a.size() - 1 - last]) == op_b(b[b.size() - 1 - last]))
      ++last;
    for (size_t i = 0; i < first; ++i) pair(a[i], b[i]);
    for (size_t i = 0; i < last; ++i) pair(a[a.size() - 1 - i], b[b.size() - 1 - i]);
    std::map<std::string, std::vector<int>> of_op;
    for (size_t i = b.size() - last; i-- > first;) of_op[op_b(b[i])].push_back(b[i]);
    for (size_t i = first; i + last < a.size(); ++i)
      if (const auto at = of_op.find(op_a(a[i])); at != of_op.end() && !at->second.empty()) {
        pair(a[i], at->second.back());
        at->second.pop_back();
      }
  }

  const ModelFile &a_, &b_;
  std::vector<int> of_a_, of_b_;
};

/// Which node gives a value, as its how manieth output.
using Givers = std::unordered_map<std::string, std::pair<int, size_t>>;
Givers givers_of(const ModelFile& m) {
  Givers out;
  for (size_t i = 0; i < m.nodes.size(); ++i)
    for (size_t k = 0; k < m.nodes[i].outputs.size(); ++k)
      if (!m.nodes[i].outputs[k].empty()) out.emplace(m.nodes[i].outputs[k], std::pair{static_cast<int>(i), k});
  return out;
}

std::string attribute_changes(const ModelFile::Node& a, const ModelFile::Node& b) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  const std::map<std::string, std::string> of_b(b.attributes.begin(), b.attributes.end()),
      of_a(a.attributes.begin(), a.attributes.end());
  for (const auto& [name, value] : of_a) {
    const auto at = of_b.find(name);
    if (at == of_b.end())
      add(fmt::format("{}: {} -> none", name, value));
    else if (at->second != value)
      add(fmt::format("{}: {} -> {}", name, value, at->second));
  }
  for (const auto& [name, value] : of_b)
    if (!of_a.contains(name)) add(fmt::format("{}: none -> {}", name, value));
  return out;
}

}  // namespace

std::vector<NodePair> node_differences(const ModelFile& a, const ModelFile& b) {
  const NodeMatch match(a, b);
  const Givers give_a = givers_of(a), give_b = givers_of(b);
  auto same_value = [&](const std::string& x, const std::string& y) {
    const auto from_a = give_a.find(x);
    const auto from_b = give_b.find(y);
    if (from_a == give_a.end() || from_b == give_b.end())
      return from_a == give_a.end() && from_b == give_b.end() && x == y;
    return match.of_a()[static_cast<size_t>(from_a->second.first)] == from_b->second.first &&
           from_a->second.second == from_b->second.second;
  };
  std::vector<NodePair> out;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    NodePair pair{static_cast<int>(i), match.of_a()[i]};
    if (pair.b >= 0) {
      const ModelFile::Node &x = a.nodes[i], &y = b.nodes[static_cast<size_t>(pair.b)];
      if (x.op != y.op || x.domain != y.domain) pair.change = fmt::format("{} -> {}", x.op, y.op);
      const std::string attributes = attribute_changes(x, y);
      if (!attributes.empty()) pair.change += (pair.change.empty() ? "" : "; ") + attributes;
      if (!std::equal(x.inputs.begin(), x.inputs.end(), y.inputs.begin(), y.inputs.end(), same_value))
        pair.change += pair.change.empty() ? "other inputs" : "; other inputs";
    }
    out.push_back(std::move(pair));
  }
  for (size_t k = 0; k < b.nodes.size(); ++k)
    if (match.of_b()[k] < 0) out.push_back({-1, static_cast<int>(k)});
  return out;
}

}  // namespace tenon::formats
