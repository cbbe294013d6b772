// Where layers are that a person placed, and what a person places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/builder/model_layout.h"
#include "views/graph/wire_router.h"

namespace tenon::views {

namespace {
constexpr float kFrameSide = 12, kFrameTitle = 26, kFrameFoot = 10;  // round what was placed by hand

bool same_box(const Box& a, const Box& b) { return a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h; }
}  // namespace

Box ModelLayout::box_by_hand(int node) const {
  const float most = std::numeric_limits<float>::max();
  Box b{most, most, 0, 0};
  float right = -most, bottom = -most;
  const auto reach = [&](int i) {
    const LayerSpec& l = spec_.layers[static_cast<size_t>(i)];
    const auto& item = graph_.items[static_cast<size_t>(i)];
    const auto x = static_cast<float>(l.x), y = static_cast<float>(l.y);
    b.x = std::min(b.x, x), b.y = std::min(b.y, y);
    right = std::max(right, x + item.w), bottom = std::max(bottom, y + item.h);
  };
  if (tree_.at(node).leaf())
    reach(tree_.at(node).item);
  else
    for (int i : layers_below(node)) reach(i);
  b.w = right - b.x;
  b.h = bottom - b.y;
  return b;
}

Box ModelLayout::cell_by_hand(int node) const {
  Box b = box_by_hand(node);
  if (!tree_.at(node).leaf()) b.w = kNodeW, b.h = kNodeH;
  return b;
}

void ModelLayout::lay_out_by_hand() {
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
    picture_.cell_at[static_cast<size_t>(node)] = static_cast<int>(picture_.cells.size());
    picture_.cells.push_back({node, cell_by_hand(node), frame});
  }
  fit_frames();
  begin_wires();
}

/// Frames reach round what they hold, the inner ones first.
void ModelLayout::fit_frames() {
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
  picture_.w = picture_.h = 0;
  for (const auto& c : picture_.cells)
    picture_.w = std::max(picture_.w, c.box.right()), picture_.h = std::max(picture_.h, c.box.bottom());
}

void ModelLayout::show_places(const ModelSpec& spec) {
  for (size_t i = 0; i < spec_.layers.size(); ++i)
    spec_.layers[i].x = spec.layers[i].x, spec_.layers[i].y = spec.layers[i].y;
  lay_out();
}

void ModelLayout::show_moved(const LayerPlaces& places) {
  for (size_t i = 0; i < spec_.layers.size(); ++i) spec_.layers[i].x = places[i].x, spec_.layers[i].y = places[i].y;
  if (!has_places(spec_)) return lay_out();
  if (!std::exchange(by_hand_, true)) {
    lifted_ = std::move(picture_);
    lay_out_by_hand();
    return;
  }
  std::vector<Box> before;
  for (auto& c : picture_.cells) {
    before.push_back(c.box);
    c.box = cell_by_hand(c.node);
  }
  fit_frames();
  forget_ways(before);
}

/// Wires between boxes that a person placed. A folded group has its wires in the middle of its edges.
ModelLayout::End ModelLayout::end_at(int cell, const GroupedGraph::Wire& wire, bool into) const {
  const GroupLayout::Cell& at = picture_.cells[static_cast<size_t>(cell)];
  if (layer_of(at) >= 0) {
    const auto& item = graph_.items[static_cast<size_t>(into ? wire.to : wire.from)];
    return into ? End{cell, wire.to_port, item.inputs} : End{cell, wire.from_port, item.outputs};
  }
  const int own = into ? graph_.port_into(at.node, wire) : graph_.port_out_of(at.node, wire);
  if (own < 0) return {cell, 0, 1};
  const GroupedGraph::Ports& all = graph_.ports.at(at.node);
  return {cell, own, into ? all.inputs : all.outputs};
}

std::optional<std::pair<ModelLayout::End, ModelLayout::End>> ModelLayout::ends_of(
    const GroupedGraph::Wire& wire) const {
  if (wire.from < 0) return {};
  const int a = cell_of_layer(wire.from), b = cell_of_layer(wire.to);
  if (a < 0 || b < 0 || a == b) return {};
  return std::pair{end_at(a, wire, false), end_at(b, wire, true)};
}

std::pair<Point, Point> ModelLayout::from_and_to(const std::pair<End, End>& ends) const {
  const auto& [out, in] = ends;
  const Box &from = picture_.cells[static_cast<size_t>(out.cell)].box,
            &to = picture_.cells[static_cast<size_t>(in.cell)].box;
  return {{from.x + port_at(from.w, out.port, out.ports), from.bottom()},
          {to.x + port_at(to.w, in.port, in.ports), to.y}};
}

const std::vector<Point>& ModelLayout::way(size_t piece) const {
  auto& [before, wire, points] = picture_.pieces[piece];
  if (!points.empty() || !by_hand_) return points;
  if (!router_) {
    std::vector<Box> boxes;
    for (const auto& c : picture_.cells) boxes.push_back(c.box);
    router_ = std::make_shared<const WireRouter>(std::move(boxes));
  }
  const auto [from, to] = from_and_to(*ends_of(graph_.wires[static_cast<size_t>(wire)]));
  return points = router_->route(from, to);
}

bool ModelLayout::may_be_seen(size_t piece, const Box& part, float least) const {
  const auto& [before, wire, points] = picture_.pieces[piece];
  const bool led = !points.empty() || !by_hand_;
  if (led && points.empty()) return false;
  const auto [from, to] =
      led ? std::pair{points.front(), points.back()} : from_and_to(*ends_of(graph_.wires[static_cast<size_t>(wire)]));
  const float w = std::fabs(from.x - to.x), h = std::fabs(from.y - to.y);
  if (w + h < least) return false;
  constexpr float kAside = WireRouter::kFarthest;
  return led ||
         Box{std::min(from.x, to.x) - kAside, std::min(from.y, to.y) - kAside, w + 2 * kAside, h + 2 * kAside}.overlaps(
             part);
}

/// One piece for each, to be led later.
void ModelLayout::begin_wires() {
  router_.reset();
  std::map<std::pair<End, End>, int> known;  // groups share what they have between them
  const auto folded = [&](const End& e) { return layer_of(picture_.cells[static_cast<size_t>(e.cell)]) < 0; };
  for (size_t w = 0; w < graph_.wires.size(); ++w) {
    const auto ends = ends_of(graph_.wires[w]);
    if (!ends) continue;
    int& last = picture_.last[w];
    last = static_cast<int>(picture_.pieces.size());
    if (folded(ends->first) || folded(ends->second)) last = known.try_emplace(*ends, last).first->second;
    if (last == static_cast<int>(picture_.pieces.size())) picture_.pieces.push_back({-1, static_cast<int>(w), {}});
  }
}

/// Of those whose boxes are elsewhere now.
void ModelLayout::forget_ways(const std::vector<Box>& before) {
  router_.reset();
  const auto moved = [&](const End& e) {
    return !same_box(before[static_cast<size_t>(e.cell)], picture_.cells[static_cast<size_t>(e.cell)].box);
  };
  for (auto& piece : picture_.pieces) {
    if (piece.points.empty()) continue;
    const auto ends = ends_of(graph_.wires[static_cast<size_t>(piece.wire)]);
    if (moved(ends->first) || moved(ends->second)) piece.points.clear();
  }
}

void ModelLayout::foresee_opened() const {
  if (opened_.valid() || (by_hand_ && !lifted_) || !any_folded()) return;
  std::set<int> all;
  for (size_t n = 1; n < tree_.nodes().size(); ++n)
    if (is_group(tree_, static_cast<int>(n))) all.insert(static_cast<int>(n));
  opened_ = std::async(std::launch::async, [graph = graph_, tree = tree_, all = std::move(all)]() mutable {
              std::erase_if(graph.wires, [](const GroupedGraph::Wire& w) { return w.from < 0; });
              return std::make_shared<const GroupLayout>(group_layout(graph, tree, all, {.aspect = kAspect}));
            }).share();
}

LayerPlaces ModelLayout::places(bool inside) const {
  LayerPlaces out;
  const GroupLayout& picture = lifted_ ? *lifted_ : picture_;
  if (by_hand_ && !lifted_) {
    for (const LayerSpec& l : spec_.layers) out.push_back({l.x, l.y});
    return out;
  }
  std::shared_ptr<const GroupLayout> whole;  // for what is folded away
  if (inside && any_folded()) {
    foresee_opened();
    whole = opened_.get();
  }
  const auto corner = [&](int n) {
    const Box& b = whole->cells[static_cast<size_t>(whole->cell_at[static_cast<size_t>(n)])].box;
    return Point{b.x, b.y};
  };
  std::map<int, Point> corners;  // of folded groups
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const int leaf = tree_.leaf_of(static_cast<int>(i)), cell = picture.cell_of(tree_, leaf);
    if (cell < 0) {
      out.push_back({spec_.layers[i].x, spec_.layers[i].y});
      continue;
    }
    const auto& seen = picture.cells[static_cast<size_t>(cell)];
    Point p{seen.box.x, seen.box.y};
    if (seen.node != leaf && whole) {  // a folded group stands where the first of what it holds does
      const auto [first, added] = corners.try_emplace(seen.node, corner(leaf));
      if (added)
        for (int k : layers_below(seen.node)) {
          const Point q = corner(tree_.leaf_of(k));
          first->second = {std::min(first->second.x, q.x), std::min(first->second.y, q.y)};
        }
      const Point at = corner(leaf);
      p = {p.x + at.x - first->second.x, p.y + at.y - first->second.y};
    }
    out.push_back({std::round(p.x), std::round(p.y)});
  }
  return out;
}

ModelSpec ModelLayout::placed(const ModelSpec& spec) const {
  if (has_places(spec)) return spec;
  ModelSpec out = spec;
  const LayerPlaces at = places(true);
  for (size_t i = 0; i < out.layers.size(); ++i) out.layers[i].x = at[i].x, out.layers[i].y = at[i].y;
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
