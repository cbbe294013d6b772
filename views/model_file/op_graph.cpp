#include "views/model_file/op_graph.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "views/shared/language.h"

namespace tenon::views {

using formats::ModelFile;

OpGraph::OpGraph(std::shared_ptr<const ModelFile> of) : file(std::move(of)) {
  const auto count = static_cast<size_t>(items());
  std::vector<ScopeTree::Item> all(count);
  for (size_t i = 0; i < count; ++i) {
    const int item = static_cast<int>(i);
    all[i].form = op(item);
    if (item >= nodes()) {
      all[i].name = op(item) + " " + name(item);
      std::replace_if(
          all[i].name.begin(), all[i].name.end(), [](char c) { return c == '.' || c == '/'; }, '_');
      continue;
    }
    all[i].scope = file->nodes[i].scope;
    all[i].name = name(item);
    if (!all[i].scope.empty())  // the scope says the rest of it
      all[i].name = all[i].name.substr(all[i].name.find_last_of("/.") + 1);
  }
  tree = ScopeTree(all);
  std::unordered_map<std::string, int> maker, tensor;
  for (int i = 0; i < nodes(); ++i)
    for (const std::string& out : file->nodes[static_cast<size_t>(i)].outputs)
      if (!out.empty()) maker.emplace(out, i);
  for (size_t i = 0; i < file->inputs.size(); ++i) maker.emplace(file->inputs[i].name, nodes() + static_cast<int>(i));
  for (size_t i = 0; i < file->tensors.size(); ++i) tensor.emplace(file->tensors[i].name, static_cast<int>(i));
  weights.resize(static_cast<size_t>(nodes()));
  for (int i = 0; i < nodes(); ++i)
    for (const std::string& in : file->nodes[static_cast<size_t>(i)].inputs) {
      if (const auto made = maker.find(in); made != maker.end())
        edges.emplace_back(made->second, i);
      else if (const auto held = tensor.find(in); held != tensor.end())
        weights[static_cast<size_t>(i)].push_back(held->second);
    }
  for (size_t i = 0; i < file->outputs.size(); ++i)
    if (const auto made = maker.find(file->outputs[i].name); made != maker.end())
      edges.emplace_back(made->second, nodes() + static_cast<int>(file->inputs.size() + i));
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
}

std::string OpGraph::op(int item) const {
  return item < nodes() ? file->nodes[static_cast<size_t>(item)].op : is_input(item) ? tr("input") : tr("output");
}

std::string OpGraph::name(int item) const {
  const auto i = static_cast<size_t>(item);
  const auto n = static_cast<size_t>(nodes()), inputs = file->inputs.size();
  if (i >= n) return i < n + inputs ? file->inputs[i - n].name : file->outputs[i - n - inputs].name;
  const ModelFile::Node& node = file->nodes[i];
  return !node.name.empty() ? node.name : node.outputs.empty() ? node.op : node.outputs.front();
}

int GraphLayout::cell_of(const OpGraph& g, int node) const {
  while (node >= 0 && cell_at[static_cast<size_t>(node)] < 0) node = g.tree.at(node).parent;
  return node < 0 ? -1 : cell_at[static_cast<size_t>(node)];
}

namespace {
/// The cells in the order in which they are first computed, and who gives whom a value.
struct Folded {
  std::vector<int> nodes;  // of the tree, by cell
  std::vector<std::pair<int, int>> edges;
};

Folded fold(const OpGraph& g, const std::set<int>& open) {
  Folded f;
  std::unordered_map<int, int> cell_of;
  std::vector<int> cell(static_cast<size_t>(g.items()));
  auto add = [&](int item) {
    const int node = g.tree.seen(item, open);
    const auto [found, added] = cell_of.try_emplace(node, static_cast<int>(f.nodes.size()));
    if (added) f.nodes.push_back(node);
    cell[static_cast<size_t>(item)] = found->second;
  };
  // Inputs stand before all nodes, which stand in an order in which they can be computed, outputs behind them.
  for (int i = g.nodes(); i < g.items(); ++i)
    if (g.is_input(i)) add(i);
  for (int i = 0; i < g.nodes(); ++i) add(i);
  for (int i = g.nodes(); i < g.items(); ++i)
    if (g.is_output(i)) add(i);
  for (const auto& [a, b] : g.edges) {
    const int from = cell[static_cast<size_t>(a)], to = cell[static_cast<size_t>(b)];
    if (from != to) f.edges.emplace_back(from, to);
  }
  std::sort(f.edges.begin(), f.edges.end());
  f.edges.erase(std::unique(f.edges.begin(), f.edges.end()), f.edges.end());
  return f;
}
}  // namespace

GraphLayout lay_out(const OpGraph& graph, const std::set<int>& open) {
  const Folded f = fold(graph, open);
  const LayeredGraph::Node box{
      GraphLayout::kBoxW, GraphLayout::kBoxH, {GraphLayout::kBoxW / 2}, {GraphLayout::kBoxW / 2}};
  LayeredGraph boxes;
  boxes.nodes.assign(f.nodes.size(), box);
  for (const auto& [from, to] : f.edges) boxes.edges.push_back({from, 0, to, 0});
  LayeredLayout laid = layered_layout(boxes, {.aspect = 1.6f});

  GraphLayout out;
  out.cell_at.assign(graph.tree.nodes().size(), -1);
  std::vector<int> order(f.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](int c) {
    return std::pair{laid.rank[static_cast<size_t>(c)], laid.at[static_cast<size_t>(c)].x};
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  std::vector<int> place_of(f.nodes.size());
  int rank = -1;
  for (int c : order) {
    const auto at = static_cast<size_t>(c);
    if (std::exchange(rank, laid.rank[at]) != laid.rank[at]) out.layers.push_back(static_cast<int>(out.cells.size()));
    place_of[at] = out.cell_at[static_cast<size_t>(f.nodes[at])] = static_cast<int>(out.cells.size());
    out.cells.push_back({f.nodes[at],
                         static_cast<int>(out.layers.size()) - 1,
                         laid.at[at].x + GraphLayout::kBoxW / 2,
                         laid.at[at].y,
                         {},
                         {}});
  }
  out.layers.push_back(static_cast<int>(out.cells.size()));
  out.right = laid.w;
  out.bottom = laid.h;
  for (size_t e = 0; e < f.edges.size(); ++e) {
    const auto [from, to] = f.edges[e];
    const int a = place_of[static_cast<size_t>(from)], b = place_of[static_cast<size_t>(to)];
    const bool back = laid.rank[static_cast<size_t>(from)] > laid.rank[static_cast<size_t>(to)];
    out.wires.push_back({a, b, back, laid.last[e]});
    out.cells[static_cast<size_t>(a)].to.push_back(b);
    out.cells[static_cast<size_t>(b)].from.push_back(a);
  }
  out.pieces = std::move(laid.pieces);
  return out;
}

}  // namespace tenon::views
