#include "views/model_file/op_graph.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

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
constexpr int kSweeps = 4;

/// The cells in the order in which they are first computed, and who gives whom a value.
struct Folded {
  std::vector<int> nodes;                  // of the tree, by cell
  std::vector<std::vector<int>> from, to;  // forward: from a cell to a later one
  std::vector<std::pair<int, int>> back;
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
  std::vector<std::pair<int, int>> edges;
  for (const auto& [a, b] : g.edges) {
    const int from = cell[static_cast<size_t>(a)], to = cell[static_cast<size_t>(b)];
    if (from != to) edges.emplace_back(from, to);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  f.from.resize(f.nodes.size());
  f.to.resize(f.nodes.size());
  for (const auto& [a, b] : edges) {
    if (a > b) {
      f.back.emplace_back(a, b);
    } else {
      f.to[static_cast<size_t>(a)].push_back(b);
      f.from[static_cast<size_t>(b)].push_back(a);
    }
  }
  return f;
}

/// Each cell one layer below the lowest that it reads from; one that reads nothing, right above its first reader.
std::vector<int> layers_of(const Folded& f) {
  std::vector<int> layer(f.nodes.size(), 0);
  for (size_t i = 0; i < layer.size(); ++i)
    for (int from : f.from[i]) layer[i] = std::max(layer[i], layer[static_cast<size_t>(from)] + 1);
  for (size_t i = 0; i < layer.size(); ++i) {
    if (!f.from[i].empty() || f.to[i].empty()) continue;
    int first = std::numeric_limits<int>::max();
    for (int to : f.to[i]) first = std::min(first, layer[static_cast<size_t>(to)]);
    layer[i] = std::max(0, first - 1);
  }
  return layer;
}

/// Places a layer as near to where its cells would stand as the room between them lets.
void place(const std::vector<int>& cells, const std::vector<float>& wanted, std::vector<float>& x) {
  constexpr float kStep = GraphLayout::kBoxW + GraphLayout::kGapX;
  const size_t n = cells.size();
  std::vector<float> right(n), left(n);
  for (size_t i = 0; i < n; ++i) right[i] = i ? std::max(wanted[i], right[i - 1] + kStep) : wanted[i];
  for (size_t i = n; i-- > 0;) left[i] = i + 1 < n ? std::min(wanted[i], left[i + 1] - kStep) : wanted[i];
  for (size_t i = 0; i < n; ++i) x[static_cast<size_t>(cells[i])] = (left[i] + right[i]) / 2;
}

/// Orders the cells of a layer by where their neighbours stand, and places them there.
void sweep(std::vector<int>& layer, const std::vector<std::vector<int>>& neighbours, std::vector<float>& x) {
  std::vector<std::pair<float, int>> by_place;
  for (int c : layer) {
    const auto& near = neighbours[static_cast<size_t>(c)];
    float sum = 0;
    for (int n : near) sum += x[static_cast<size_t>(n)];
    by_place.emplace_back(near.empty() ? x[static_cast<size_t>(c)] : sum / static_cast<float>(near.size()), c);
  }
  std::stable_sort(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<float> wanted;
  for (size_t i = 0; i < layer.size(); ++i) {
    layer[i] = by_place[i].second;
    wanted.push_back(by_place[i].first);
  }
  place(layer, wanted, x);
}
}  // namespace

GraphLayout lay_out(const OpGraph& graph, const std::set<int>& open) {
  const Folded f = fold(graph, open);
  const std::vector<int> layer = layers_of(f);
  std::vector<std::vector<int>> layers;
  for (size_t i = 0; i < layer.size(); ++i) {
    if (layers.size() <= static_cast<size_t>(layer[i])) layers.resize(static_cast<size_t>(layer[i]) + 1);
    layers[static_cast<size_t>(layer[i])].push_back(static_cast<int>(i));
  }
  std::vector<float> x(f.nodes.size(), 0);
  for (auto& l : layers) place(l, std::vector<float>(l.size(), 0), x);
  for (int s = 0; s < kSweeps; ++s) {
    for (auto& l : layers) sweep(l, f.from, x);
    if (s + 1 == kSweeps) break;  // the last goes down: a chain stands under its head
    for (size_t i = layers.size(); i-- > 0;) sweep(layers[i], f.to, x);
  }
  GraphLayout out;
  out.cell_at.assign(graph.tree.nodes().size(), -1);
  std::vector<int> place_of(f.nodes.size());
  for (size_t l = 0; l < layers.size(); ++l) {
    out.layers.push_back(static_cast<int>(out.cells.size()));
    for (int c : layers[l]) {
      const auto at = static_cast<size_t>(c);
      place_of[at] = out.cell_at[static_cast<size_t>(f.nodes[at])] = static_cast<int>(out.cells.size());
      out.cells.push_back({f.nodes[at],
                           static_cast<int>(l),
                           x[at],
                           static_cast<float>(l) * (GraphLayout::kBoxH + GraphLayout::kGapY),
                           {},
                           {}});
      out.left = std::min(out.left, x[at] - GraphLayout::kBoxW / 2);
      out.right = std::max(out.right, x[at] + GraphLayout::kBoxW / 2);
      out.bottom = out.cells.back().y + GraphLayout::kBoxH;
    }
  }
  out.layers.push_back(static_cast<int>(out.cells.size()));
  auto connect = [&](int from, int to, bool back) {
    const int a = place_of[static_cast<size_t>(from)], b = place_of[static_cast<size_t>(to)];
    out.wires.push_back({a, b, back});
    out.cells[static_cast<size_t>(a)].to.push_back(b);
    out.cells[static_cast<size_t>(b)].from.push_back(a);
  };
  for (size_t i = 0; i < f.to.size(); ++i)
    for (int to : f.to[i]) connect(static_cast<int>(i), to, false);
  for (const auto& [a, b] : f.back) connect(a, b, true);
  return out;
}

}  // namespace tenon::views
