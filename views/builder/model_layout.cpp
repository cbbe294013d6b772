#include "views/builder/model_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/spec/submodel.h"

namespace tenon::views {

namespace {
constexpr float kOrigin = 40;      // where a picture without places of its own begins: never at (0, 0)
constexpr size_t kReadsWell = 24;  // so many boxes are seen at first, if groups can be folded

void move(GroupLayout& p, float by) {
  for (auto& c : p.cells) c.box.x += by, c.box.y += by;
  for (auto& f : p.frames) f.box.x += by, f.box.y += by;
  for (auto& piece : p.pieces)
    for (Point& q : piece.points) q.x += by, q.y += by;
  p.w += 2 * by;
  p.h += 2 * by;
}
}  // namespace

Size layer_size(const LayerSpec& layer) {
  return {ModelLayout::kNodeW, ModelLayout::kNodeH + (layer.comment.empty() ? 0 : ModelLayout::kCommentLine)};
}

bool ModelLayout::has_places(const ModelSpec& spec) {
  return std::any_of(spec.layers.begin(), spec.layers.end(), [](const LayerSpec& l) { return l.x != 0 || l.y != 0; });
}

std::string ModelLayout::key(int node) const {
  const ScopeTree::Node& n = tree_.at(node);
  return n.repeats ? tree_.path(node) + "\n" + n.name : tree_.path(node);
}

void ModelLayout::show(const ModelSpec& spec, bool anew) {
  spec_ = spec;
  opened_ = {};
  std::vector<ScopeTree::Item> items;
  std::unordered_map<std::string, int> index;
  graph_ = {};
  graph_.folded_w = kNodeW;
  graph_.folded_h = kNodeH;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& l = spec.layers[i];
    ScopeTree::Item item;
    item.name = l.name;
    item.form = l.type;
    for (const Attr& a : l.attrs) item.form += " " + a.name + "=" + attr_text(a.value);
    items.push_back(std::move(item));
    index.emplace(l.name, static_cast<int>(i));
    const LayerInfo* info = find_layer_type(l.type);
    const Size size = layer_size(l);
    graph_.items.push_back({size.w, size.h, info ? info->inputs : 1, info ? info->outputs : 1});
  }
  for (const WireSpec& w : spec.wires) {
    const auto from = index.find(w.from), to = index.find(w.to);
    // Of a file that someone else wrote: a port that a layer does not have is drawn as if it had.
    if (from == index.end() || to == index.end()) {
      graph_.wires.push_back({-1, 0, -1, 0});
      continue;
    }
    auto& outputs = graph_.items[static_cast<size_t>(from->second)].outputs;
    auto& inputs = graph_.items[static_cast<size_t>(to->second)].inputs;
    outputs = std::max(outputs, w.from_port + 1);
    inputs = std::max(inputs, w.to_port + 1);
    graph_.wires.push_back({from->second, w.from_port, to->second, w.to_port});
  }
  tree_ = ScopeTree(items);
  if (!spec.submodels.empty()) find_ports(index);
  if (anew) fold_at_first();
  lay_out();
}

std::string ModelLayout::instance_at(int node) const {
  return tree_.at(node).leaf() || tree_.at(node).repeats ? std::string() : instance_filling(spec_, tree_.path(node));
}

void ModelLayout::find_ports(const std::unordered_map<std::string, int>& index) {
  for (size_t n = 1; n < tree_.nodes().size(); ++n) {
    const std::string scope = instance_at(static_cast<int>(n));
    if (scope.empty()) continue;
    const ScopePorts ports = ports_of(spec_, scope);
    GroupedGraph::Ports& to = graph_.ports[static_cast<int>(n)];
    const auto put = [&](std::map<std::pair<int, int>, int>& ends, const ScopePort& p, int number) {
      if (const auto i = index.find(scope + "." + p.layer); i != index.end()) ends[{i->second, p.port}] = number;
    };
    for (const auto& input : ports.inputs) {
      for (const ScopePort& p : input) put(to.in, p, to.inputs);
      ++to.inputs;
    }
    for (const ScopePort& p : ports.outputs) put(to.out, p, to.outputs++);
  }
}

/// As many levels of groups are open as make no more boxes than read well.
void ModelLayout::fold_at_first() {
  folded_.clear();
  std::vector<int> level = {ScopeTree::kRoot};
  std::vector<int> groups;
  size_t boxes = 0;
  const auto boxes_in = [&](int scope, std::vector<int>& inner) {
    size_t n = 0;
    std::vector<int> todo = tree_.at(scope).children;
    while (!todo.empty()) {
      const int at = todo.back();
      todo.pop_back();
      if (!tree_.at(at).leaf() && !is_group(tree_, at)) {
        todo.insert(todo.end(), tree_.at(at).children.begin(), tree_.at(at).children.end());
        continue;
      }
      ++n;
      if (!tree_.at(at).leaf()) inner.push_back(at);
    }
    return n;
  };
  boxes = boxes_in(ScopeTree::kRoot, groups);
  bool fold = false;
  while (!groups.empty()) {
    std::vector<int> inner;
    size_t more = 0;
    for (int g : groups) more += boxes_in(g, inner) - 1;
    fold |= boxes + more > kReadsWell;
    if (fold)
      for (int g : groups) folded_.insert(key(g));
    boxes += more;
    groups = std::move(inner);
  }
}

std::set<int> ModelLayout::open_nodes() const {
  std::set<int> open;
  for (size_t n = 1; n < tree_.nodes().size(); ++n)
    if (is_group(tree_, static_cast<int>(n)) && is_open(static_cast<int>(n))) open.insert(static_cast<int>(n));
  return open;
}

void ModelLayout::set_open(int node, bool open) {
  open ? folded_.erase(key(node)) : folded_.insert(key(node)).second;
  lay_out();
}

void ModelLayout::set_all_open(bool open) {
  folded_.clear();
  for (size_t n = 1; !open && n < tree_.nodes().size(); ++n)
    if (is_group(tree_, static_cast<int>(n))) folded_.insert(key(static_cast<int>(n)));
  lay_out();
}

bool ModelLayout::reveal(int layer) {
  bool any = false;
  for (int n = tree_.at(tree_.leaf_of(layer)).parent; n > ScopeTree::kRoot; n = tree_.at(n).parent)
    any |= is_group(tree_, n) && folded_.erase(key(n));
  if (any) lay_out();
  return any;
}

bool ModelLayout::any_groups() const {
  for (size_t n = 1; n < tree_.nodes().size(); ++n)
    if (is_group(tree_, static_cast<int>(n))) return true;
  return false;
}

bool ModelLayout::any_folded() const {
  return std::any_of(picture_.cells.begin(), picture_.cells.end(),
                     [&](const GroupLayout::Cell& c) { return layer_of(c) < 0; });
}

std::vector<int> ModelLayout::layers_below(int node) const {
  std::vector<int> out, todo = {node};
  while (!todo.empty()) {
    const ScopeTree::Node& n = tree_.at(todo.back());
    todo.pop_back();
    if (n.leaf()) out.push_back(n.item);
    todo.insert(todo.end(), n.children.begin(), n.children.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

int ModelLayout::node_of(const std::string& path) const {
  for (size_t n = 1; n < tree_.nodes().size(); ++n)
    if (is_group(tree_, static_cast<int>(n)) && !tree_.at(static_cast<int>(n)).repeats &&
        tree_.path(static_cast<int>(n)) == path)
      return static_cast<int>(n);
  return -1;
}

std::string ModelLayout::title(int node) const {
  const ScopeTree::Node& n = tree_.at(node);
  int repeats = n.repeats;
  for (int c : n.children)  // the row of blocks that a scope holds and nothing else
    if (tree_.at(c).items == n.items) repeats = std::max(repeats, tree_.at(c).repeats);
  std::string path = tree_.path(node);
  if (n.repeats) path += (path.empty() ? "" : ".") + n.name;
  return repeats ? fmt::format("{} ×{}", path, repeats) : path;
}

/// What the frame around a name says is left out; but a number alone says nothing.
std::string ModelLayout::within(const std::string& name, int frame) const {
  if (frame < 0) return name;
  const std::string around = tree_.path(picture_.frames[static_cast<size_t>(frame)].node) + ".";
  if (!name.starts_with(around) || name.size() <= around.size()) return name;
  const std::string rest = name.substr(around.size());
  if (rest[0] < '0' || rest[0] > '9') return rest;
  const size_t dot = around.size() < 2 ? std::string::npos : around.find_last_of('.', around.size() - 2);
  return name.substr(dot == std::string::npos ? 0 : dot + 1);
}

std::string ModelLayout::short_name(const GroupLayout::Cell& c) const {
  return within(layer_of(c) >= 0 ? spec_.layers[static_cast<size_t>(layer_of(c))].name : title(c.node), c.frame);
}

void ModelLayout::lay_out() {
  lifted_.reset();
  by_hand_ = has_places(spec_);
  if (by_hand_) return lay_out_by_hand();
  GroupedGraph graph = graph_;
  std::erase_if(graph.wires, [](const GroupedGraph::Wire& w) { return w.from < 0; });
  if (graph.wires.size() == graph_.wires.size()) {
    picture_ = group_layout(graph_, tree_, open_nodes(), {.aspect = kAspect});
  } else {  // wires that end nowhere are not drawn
    picture_ = group_layout(graph, tree_, open_nodes(), {.aspect = kAspect});
    std::vector<int> number, last;
    for (size_t w = 0, next = 0; w < graph_.wires.size(); ++w) {
      const bool drawn = graph_.wires[w].from >= 0;
      last.push_back(drawn ? picture_.last[next++] : -1);
      if (drawn) number.push_back(static_cast<int>(w));
    }
    for (auto& piece : picture_.pieces) piece.wire = number[static_cast<size_t>(piece.wire)];
    picture_.last = std::move(last);
  }
  move(picture_, kOrigin);
}

}  // namespace tenon::views
