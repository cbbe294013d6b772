#include "views/builder/model_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/spec/submodel.h"
#include "views/graph/wire_router.h"

namespace tenon::views {

namespace {
constexpr float kOrigin = 40;      // where a picture without places of its own begins: never at (0, 0)
constexpr size_t kReadsWell = 24;  // so many boxes are seen at first, if groups can be folded
constexpr float kAspect = 1.6f;    // of the canvas that a picture is made for
constexpr float kFrameSide = 12, kFrameTitle = 26, kFrameFoot = 10;  // round what was placed by hand

bool same_box(const Box& a, const Box& b) { return a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h; }

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

/// What a node of the tree covers: a folded group stands where the first of what it holds does.
Box ModelLayout::box_by_hand(int node) const {
  const float most = std::numeric_limits<float>::max();
  Box b{most, most, 0, 0};
  float right = -most, bottom = -most;
  for (int i : layers_below(node)) {
    const LayerSpec& l = spec_.layers[static_cast<size_t>(i)];
    const auto& item = graph_.items[static_cast<size_t>(i)];
    const auto x = static_cast<float>(l.x), y = static_cast<float>(l.y);
    b.x = std::min(b.x, x), b.y = std::min(b.y, y);
    right = std::max(right, x + item.w), bottom = std::max(bottom, y + item.h);
  }
  b.w = right - b.x;
  b.h = bottom - b.y;
  return b;
}

void ModelLayout::lay_out_by_hand(const GroupLayout* before) {
  const auto nodes = tree_.nodes().size();
  picture_ = {};
  picture_.cell_at.assign(nodes, -1);
  picture_.frame_at.assign(nodes, -1);
  picture_.last.assign(graph_.wires.size(), -1);
  struct Todo {
    int node, frame;
  };
  std::vector<Todo> todo;
  const auto add_children = [&](int node, int frame) {
    const auto& children = tree_.at(node).children;
    for (auto c = children.rbegin(); c != children.rend(); ++c) todo.push_back({*c, frame});
  };
  add_children(ScopeTree::kRoot, -1);
  while (!todo.empty()) {
    const auto [node, frame] = todo.back();
    todo.pop_back();
    const bool leaf = tree_.at(node).leaf(), group = is_group(tree_, node);
    if (!leaf && !group) {
      add_children(node, frame);
      continue;
    }
    if (group && is_open(node)) {
      picture_.frame_at[static_cast<size_t>(node)] = static_cast<int>(picture_.frames.size());
      const int depth = frame < 0 ? 0 : picture_.frames[static_cast<size_t>(frame)].depth + 1;
      picture_.frames.push_back({node, {}, frame, depth});
      add_children(node, picture_.frame_at[static_cast<size_t>(node)]);
      continue;
    }
    Box b = box_by_hand(node);
    if (group) b.w = kNodeW, b.h = kNodeH;
    picture_.cell_at[static_cast<size_t>(node)] = static_cast<int>(picture_.cells.size());
    picture_.cells.push_back({node, b, frame});
  }
  // Frames reach round what they hold, the inner ones first.
  const float most = std::numeric_limits<float>::max();
  std::vector<Box> reach(picture_.frames.size(), {most, most, -most, -most});  // w and h: right and bottom
  const auto grow = [&](int frame, Box b) {
    if (frame < 0) return;
    Box& r = reach[static_cast<size_t>(frame)];
    r.x = std::min(r.x, b.x - kFrameSide), r.y = std::min(r.y, b.y - kFrameTitle);
    r.w = std::max(r.w, b.right() + kFrameSide), r.h = std::max(r.h, b.bottom() + kFrameFoot);
  };
  for (const auto& c : picture_.cells) grow(c.frame, c.box);
  for (size_t f = picture_.frames.size(); f-- > 0;) {
    picture_.frames[f].box = {reach[f].x, reach[f].y, reach[f].w - reach[f].x, reach[f].h - reach[f].y};
    grow(picture_.frames[f].around, picture_.frames[f].box);
  }
  for (const auto& c : picture_.cells)
    picture_.w = std::max(picture_.w, c.box.right()), picture_.h = std::max(picture_.h, c.box.bottom());
  route(before);
}

void ModelLayout::show_moved(const ModelSpec& spec) {
  const bool was = by_hand_;
  for (size_t i = 0; i < spec_.layers.size() && i < spec.layers.size(); ++i) {
    spec_.layers[i].x = spec.layers[i].x;
    spec_.layers[i].y = spec.layers[i].y;
  }
  by_hand_ = has_places(spec_);
  if (!by_hand_) return lay_out();
  const GroupLayout before = std::move(picture_);
  lay_out_by_hand(was ? &before : nullptr);
}

/// Wires between boxes that a person placed. A folded group has its wires in the middle of its edges.
std::pair<int, int> ModelLayout::port_of(const GroupLayout::Cell& cell, const GroupedGraph::Wire& wire,
                                         bool into) const {
  if (layer_of(cell) >= 0) {
    const auto& item = graph_.items[static_cast<size_t>(into ? wire.to : wire.from)];
    return into ? std::pair{wire.to_port, item.inputs} : std::pair{wire.from_port, item.outputs};
  }
  const int own = into ? graph_.port_into(cell.node, wire) : graph_.port_out_of(cell.node, wire);
  if (own < 0) return {0, 1};
  const GroupedGraph::Ports& all = graph_.ports.at(cell.node);
  return {own, into ? all.inputs : all.outputs};
}

void ModelLayout::route(const GroupLayout* before) {
  std::vector<Box> boxes;
  for (const auto& c : picture_.cells) boxes.push_back(c.box);
  const WireRouter router(std::move(boxes));
  std::map<std::tuple<int, int, int, int>, int> known;  // cells and ports: groups share what they have between them
  for (size_t w = 0; w < graph_.wires.size(); ++w) {
    const GroupedGraph::Wire& wire = graph_.wires[w];
    if (wire.from < 0) continue;
    const int a = cell_of_layer(wire.from), b = cell_of_layer(wire.to);
    if (a < 0 || b < 0 || a == b) continue;
    const auto &from = picture_.cells[static_cast<size_t>(a)], &to = picture_.cells[static_cast<size_t>(b)];
    const auto [out, outs] = port_of(from, wire, false);
    const auto [in, ins] = port_of(to, wire, true);
    const auto [found, added] = known.try_emplace({a, out, b, in}, static_cast<int>(picture_.pieces.size()));
    picture_.last[w] = found->second;
    if (!added) continue;
    if (before && before->last[w] >= 0 && same_box(before->cells[static_cast<size_t>(a)].box, from.box) &&
        same_box(before->cells[static_cast<size_t>(b)].box, to.box)) {
      picture_.pieces.push_back({-1, static_cast<int>(w), before->pieces[static_cast<size_t>(before->last[w])].points});
      continue;
    }
    const Point p{from.box.x + port_at(from.box.w, out, outs), from.box.bottom()},
        q{to.box.x + port_at(to.box.w, in, ins), to.box.y};
    picture_.pieces.push_back({-1, static_cast<int>(w), router.route(p, q)});
  }
}

ModelSpec ModelLayout::placed(const ModelSpec& spec) const {
  if (has_places(spec)) return spec;
  ModelSpec out = spec;
  GroupLayout whole;             // for what is folded away
  std::map<int, Point> corners;  // of folded groups
  if (any_folded()) {
    ModelLayout opened;
    opened.show(spec, true);
    opened.set_all_open(true);
    whole = std::move(opened.picture_);
  }
  for (size_t i = 0; i < out.layers.size(); ++i) {
    const int leaf = tree_.leaf_of(static_cast<int>(i)), cell = picture_.cell_of(tree_, leaf);
    if (cell < 0) continue;
    const auto& seen = picture_.cells[static_cast<size_t>(cell)];
    Point p{seen.box.x, seen.box.y};
    if (seen.node != leaf) {  // a folded group stands where the first of what it holds does
      const auto corner = [&](int n) {
        const Box& b = whole.cells[static_cast<size_t>(whole.cell_at[static_cast<size_t>(n)])].box;
        return Point{b.x, b.y};
      };
      const auto [first, added] = corners.try_emplace(seen.node, corner(leaf));
      if (added)
        for (int k : layers_below(seen.node)) {
          const Point q = corner(tree_.leaf_of(k));
          first->second = {std::min(first->second.x, q.x), std::min(first->second.y, q.y)};
        }
      const Point at = corner(leaf);
      p = {p.x + at.x - first->second.x, p.y + at.y - first->second.y};
    }
    out.layers[i].x = std::round(p.x);
    out.layers[i].y = std::round(p.y);
  }
  return out;
}

ModelSpec ModelLayout::with_room(const ModelSpec& spec, int node) const {
  ModelSpec out = spec;
  const int cell = picture_.cell_at[static_cast<size_t>(node)];
  if (!has_places(spec) || cell < 0) return out;
  const auto& folded = picture_.cells[static_cast<size_t>(cell)];
  const Box whole = box_by_hand(node);
  const auto framed = [&](float by_x, float by_y) {
    return Box{whole.x + by_x - kFrameSide, whole.y + by_y - kFrameTitle, whole.w + 2 * kFrameSide,
               whole.h + kFrameTitle + kFrameFoot};
  };
  if (std::none_of(picture_.cells.begin(), picture_.cells.end(),
                   [&](const GroupLayout::Cell& c) { return c.node != node && c.box.overlaps(framed(0, 0)); }))
    return out;
  // What stands beside it moves to the right, what stands below it down, each as one.
  const Box frame = framed(kFrameSide + 4, kFrameTitle + 4);
  const double right = std::max(0.f, frame.right() + 16 - folded.box.right()),
               down = std::max(0.f, frame.bottom() + 16 - folded.box.bottom());
  for (const auto& c : picture_.cells)
    for (int i : layers_below(c.node)) {
      LayerSpec& l = out.layers[static_cast<size_t>(i)];
      if (c.node == node)
        l.x += kFrameSide + 4, l.y += kFrameTitle + 4;
      else if (c.box.x >= folded.box.right() - 1)
        l.x += right;
      else if (c.box.y >= folded.box.bottom() - 1)
        l.y += down;
    }
  return out;
}

Point ModelLayout::free_place(double x, double y) const {
  const Point start{static_cast<float>(std::round(x / 8) * 8), static_cast<float>(std::round(y / 8) * 8)};
  const auto free = [&](Point p) {
    const Box b{p.x - 8, p.y - 8, kNodeW + 16, kNodeH + 16};
    return std::none_of(picture_.cells.begin(), picture_.cells.end(),
                        [&](const GroupLayout::Cell& c) { return c.box.overlaps(b); });
  };
  for (int ring = 0; ring < 200; ++ring)  // below it, then beside
    for (int side : {0, 1, -1})
      if (const Point p{start.x + static_cast<float>(side) * (kNodeW + 32),
                        start.y + static_cast<float>(ring) * (kNodeH + 24)};
          free(p))
        return p;
  return start;
}

}  // namespace tenon::views
