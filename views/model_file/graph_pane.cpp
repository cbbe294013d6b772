#include "views/model_file/graph_pane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "views/graph/rounded.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr float kMostZoom = 1.5f, kFarZoom = 0.02f, kFirstZoom = 0.5f, kMargin = 24;
constexpr float kOneLine = 13, kTwoLines = 34, kFar = 3;  // how high a box is that has so many words
constexpr int kMostWires = 1500;                          // of a frame
}  // namespace

void GraphPane::show(std::shared_ptr<const FileOutline> outline) {
  outline_ = std::move(outline);
  focus_ = anchor_ = -1;
  fit_next_ = true;
  reveal_next_ = false;
  then_ = Then::as_it_was;
  open_ = outline_->open_nodes;
  layout_ = outline_->layout;
  count_found();
}

/// What was in the middle of a change stays where it was on the screen.
void GraphPane::set_layout(GraphLayout layout, std::set<int> open) {
  layout_ = std::move(layout);
  open_ = std::move(open);
  count_found();
  const Then then = std::exchange(then_, Then::as_it_was);
  fit_next_ = fit_next_ || then == Then::all;
  reveal_next_ = reveal_next_ || then == Then::focus;
  if (anchor_ >= 0) {
    int at = layout_.cell_of(graph(), anchor_);
    for (size_t i = 0; at < 0 && i < layout_.cells.size(); ++i)  // it was unfolded: its first part stands for it
      if (graph().tree.below(layout_.cells[i].node, anchor_)) at = static_cast<int>(i);
    if (at >= 0 && !reveal_next_) {
      const auto& c = layout_.cells[static_cast<size_t>(at)];
      pan_x_ = anchor_at_.x - c.x * zoom_;
      pan_y_ = anchor_at_.y - c.y * zoom_;
      if (focus_ == anchor_ || focus_ < 0 || layout_.cell_of(graph(), focus_) < 0) focus_ = c.node;
    }
  }
  anchor_ = -1;
}

void GraphPane::toggle(int node) {
  if (!any() || node <= ScopeTree::kRoot) return;
  if (graph().tree.at(node).leaf()) return fold(node);
  std::set<int> open = open_;
  open.insert(node);
  // One that holds nothing but another scope would unfold into one box again.
  for (int n = node;
       graph().tree.at(n).children.size() == 1 && !graph().tree.at(graph().tree.at(n).children[0]).leaf();)
    open.insert(n = graph().tree.at(n).children[0]);
  then_ = Then::as_it_was;
  if (const int at = layout_.cell_of(graph(), node); at >= 0) {
    anchor_ = node;
    anchor_at_ = to_picture(layout_.cells[static_cast<size_t>(at)].x, layout_.cells[static_cast<size_t>(at)].y);
  }
  if (on_need_layout) on_need_layout(std::move(open));
}

void GraphPane::fold(int node) {
  if (!any() || node <= ScopeTree::kRoot) return;
  int scope = graph().tree.at(node).parent;
  while (scope > ScopeTree::kRoot && graph().tree.at(scope).items == graph().tree.at(node).items)
    scope = graph().tree.at(scope).parent;  // one that holds nothing else looks the same folded
  if (scope <= ScopeTree::kRoot) return;
  std::set<int> open;
  for (int n : open_)
    if (!graph().tree.below(n, scope)) open.insert(n);
  then_ = Then::as_it_was;
  if (const int at = layout_.cell_of(graph(), node); at >= 0) {
    anchor_ = scope;
    anchor_at_ = to_picture(layout_.cells[static_cast<size_t>(at)].x, layout_.cells[static_cast<size_t>(at)].y);
  }
  if (on_need_layout) on_need_layout(std::move(open));
}

void GraphPane::open_all(bool open) {
  if (!any()) return;
  std::set<int> all;
  const auto& nodes = graph().tree.nodes();
  for (size_t i = 1; open && i < nodes.size(); ++i)
    if (!nodes[i].leaf()) all.insert(static_cast<int>(i));
  then_ = Then::all;
  if (on_need_layout) on_need_layout(std::move(all));
}

void GraphPane::search(const std::string& words) {
  words_ = words;
  matches_.clear();
  for (int i = 0; any() && !words_.empty() && i < graph().items(); ++i)
    if (holds_words(graph().name(i) + " " + graph().op(i), words_)) matches_.push_back(i);
  count_found();
}

void GraphPane::count_found() {
  found_in_.assign(layout_.cells.size(), 0);
  if (matches_.empty()) return;
  for (int m : matches_)
    if (const int at = layout_.cell_of(graph(), graph().tree.leaf_of(m)); at >= 0) ++found_in_[static_cast<size_t>(at)];
}

int GraphPane::next_found(int direction) {
  if (matches_.empty()) return -1;
  const int now = item();
  auto next = std::upper_bound(matches_.begin(), matches_.end(), now);
  if (direction < 0) {
    next = std::lower_bound(matches_.begin(), matches_.end(), now);
    next = next == matches_.begin() ? matches_.end() - 1 : next - 1;
  } else if (next == matches_.end()) {
    next = matches_.begin();
  }
  return *next;
}

int GraphPane::item() const { return any() && focus_ > 0 ? graph().tree.at(focus_).item : -1; }

void GraphPane::set_focus(int node) { focus_ = node; }

/// What it stands in is unfolded for it.
void GraphPane::reveal(int item) {
  if (!any()) return;
  focus_ = graph().tree.leaf_of(item);
  reveal_next_ = true;
  std::set<int> open = open_;
  for (int n = graph().tree.at(focus_).parent; n > ScopeTree::kRoot; n = graph().tree.at(n).parent) open.insert(n);
  if (graph().tree.seen(item, open_) == focus_) return;
  then_ = Then::focus;
  if (on_need_layout) on_need_layout(std::move(open));
}

void GraphPane::center(int at) {
  fit_next_ = false;
  zoom_ = std::max(zoom_, kFirstZoom);
  const auto& c = layout_.cells[static_cast<size_t>(at)];
  pan_x_ = box_.x + box_.w / 2 - c.x * zoom_;
  pan_y_ = box_.y + box_.h / 2 - c.y * zoom_;
}

/// No further than it takes to see a cell whole.
void GraphPane::show_cell(int at) {
  const auto& c = layout_.cells[static_cast<size_t>(at)];
  const Point p = to_picture(c.x, c.y);
  const float half = GraphLayout::kBoxW * zoom_ / 2, height = GraphLayout::kBoxH * zoom_;
  pan_x_ += std::max(0.f, box_.x + kMargin - (p.x - half)) - std::max(0.f, p.x + half - (box_.right() - kMargin));
  pan_y_ += std::max(0.f, box_.y + kMargin - p.y) - std::max(0.f, p.y + height - (box_.bottom() - kMargin));
}

/// Up and down along the wires, left and right within the layer.
bool GraphPane::move(const std::string& key) {
  if (!any() || layout_.cells.empty()) return false;
  const int now = focus_ > 0 ? layout_.cell_of(graph(), focus_) : -1;
  int to = -1;
  if (now < 0) {
    to = 0;
  } else {
    const auto& c = layout_.cells[static_cast<size_t>(now)];
    if (key == "Left" || key == "Right") {
      const int next = now + (key == "Left" ? -1 : 1);
      if (next >= layout_.layers[static_cast<size_t>(c.layer)] &&
          next < layout_.layers[static_cast<size_t>(c.layer) + 1])
        to = next;
    } else {
      for (int n : key == "Up" ? c.from : c.to)
        if (to < 0 || std::fabs(layout_.cells[static_cast<size_t>(n)].x - c.x) <
                          std::fabs(layout_.cells[static_cast<size_t>(to)].x - c.x))
          to = n;
    }
  }
  if (to < 0) return false;
  focus_ = layout_.cells[static_cast<size_t>(to)].node;
  show_cell(to);
  return true;
}

float GraphPane::whole_zoom() const {
  constexpr float kSpeck = 1e-4f;  // of a box that leaves no room
  const float w = std::max(layout_.right - layout_.left, GraphLayout::kBoxW),
              h = std::max(layout_.bottom, GraphLayout::kBoxH);
  return std::max(std::min((box_.w - 2 * kMargin) / w, (box_.h - 2 * kMargin) / h), kSpeck);
}

void GraphPane::fit() {
  zoom_ = std::min(whole_zoom(), 1.f);
  pan_x_ = box_.x + box_.w / 2 - (layout_.left + layout_.right) / 2 * zoom_;
  pan_y_ = box_.y + kMargin;
  fit_next_ = false;
}

void GraphPane::zoom(float factor, Point at) {
  const float next = std::clamp(zoom_ * factor, std::min(whole_zoom(), kFarZoom), kMostZoom);
  pan_x_ = at.x - (at.x - pan_x_) * next / zoom_;
  pan_y_ = at.y - (at.y - pan_y_) * next / zoom_;
  zoom_ = next;
  fit_next_ = false;
}

void GraphPane::pan(float dx, float dy) {
  pan_x_ += dx;
  pan_y_ += dy;
  fit_next_ = false;
}

std::string GraphPane::title_of(int node) const {
  const ScopeTree::Node& n = graph().tree.at(node);
  if (n.leaf()) return graph().op(n.item);
  // A number alone says nothing: the name that it is one of stands before it.
  int outer = n.parent;
  while (outer > ScopeTree::kRoot && graph().tree.at(outer).repeats) outer = graph().tree.at(outer).parent;
  const bool number = !n.name.empty() && n.name[0] >= '0' && n.name[0] <= '9' && outer > ScopeTree::kRoot;
  const std::string name = number ? graph().tree.at(outer).name + "." + n.name : n.name;
  return n.repeats ? fmt::format("{}  ×{}", name, n.repeats) : name;
}

std::string GraphPane::below_of(int node) const {
  const ScopeTree::Node& n = graph().tree.at(node);
  if (!n.leaf()) return n.items == 1 ? tr("1 node") : tr("{} nodes", format_grouped(n.items));
  if (n.item >= graph().nodes()) return graph().name(n.item);
  const std::string& scope = graph().file->nodes[static_cast<size_t>(n.item)].scope;
  return scope.empty() ? graph().name(n.item) : scope;
}

/// Those of the cell in focus lie over the others.
void GraphPane::draw_wires(Scene& scene, int focused) const {
  enum Look : char { none, back, forth, hot };
  std::vector<Look> look(layout_.pieces.size(), none);
  for (const GraphLayout::Wire& w : layout_.wires) {
    const Look as = w.from == focused || w.to == focused ? hot : w.back ? back : forth;
    for (int p = w.last; p >= 0; p = layout_.pieces[static_cast<size_t>(p)].before) {
      Look& now = look[static_cast<size_t>(p)];
      if (now >= as) break;  // and so is all before it
      now = as;
    }
  }
  int drawn = 0;
  for (const bool over : {false, true})
    for (size_t p = 0; p < look.size(); ++p) {
      if (look[p] == none || (look[p] == hot) != over || (!over && drawn >= kMostWires)) continue;
      std::vector<Point> way;
      Point least{1e9f, 1e9f}, most{-1e9f, -1e9f};
      for (const Point& q : layout_.pieces[p].points) {
        way.push_back(to_picture(q.x, q.y));
        least = {std::min(least.x, way.back().x), std::min(least.y, way.back().y)};
        most = {std::max(most.x, way.back().x), std::max(most.y, way.back().y)};
      }
      if (most.y < box_.y || least.y > box_.bottom() || most.x < box_.x || least.x > box_.right()) continue;
      scene.polyline(zoom_ < 0.35f ? way : rounded(way, 7 * zoom_), over ? Ink::accent : Ink::secondary,
                     over ? 2.f : 1.2f,
                     over              ? 1.f
                     : look[p] == back ? 0.35f
                                       : 0.6f);
      ++drawn;
    }
}

void GraphPane::draw_cell(Scene& scene, int at, bool focused) const {
  const auto& c = layout_.cells[static_cast<size_t>(at)];
  const Point p = to_picture(c.x, c.y);
  const Box box{p.x - GraphLayout::kBoxW * zoom_ / 2, p.y, GraphLayout::kBoxW * zoom_, GraphLayout::kBoxH * zoom_};
  const ScopeTree::Node& n = graph().tree.at(c.node);
  const bool edge = n.leaf() && n.item >= graph().nodes();
  const bool weights = n.leaf() && !edge && !graph().weights[static_cast<size_t>(n.item)].empty();
  const int found = found_in_[static_cast<size_t>(at)];
  const Ink kind = edge       ? Ink::phase_data
                   : weights  ? Ink::memory_parameter
                   : n.leaf() ? Ink::memory_other
                              : Ink::phase_forward;
  if (box.h < kOneLine) {  // too many to be drawn in parts
    scene.rect(box, focused ? Ink::accent : found ? Ink::warning : kind, 1);
    return scene.target(box, {cell, c.node}, Cursor::hand);
  }
  const float radius = 4, stripe = std::max(2.f, 4 * zoom_);
  scene.rect(box, n.leaf() ? Ink::panel : Ink::raised, 1, radius);
  scene.rect({box.x + 1, box.y + 2, stripe, box.h - 4}, kind, 1, stripe / 2);
  const Ink rim = focused ? Ink::accent : found ? Ink::warning : Ink::line;
  scene.outline(box, rim, focused || found ? 2.f : 1.f, radius);
  if (!n.leaf())  // what is folded lies on another sheet
    scene.outline({box.x + 3, box.y - 3, box.w, box.h}, Ink::line, 1, radius, 0.6f);
  std::string tip =
      n.leaf() ? graph().op(n.item) + "\n" + graph().name(n.item)
               : tr("{}\n{} nodes\nDouble click unfolds it", graph().tree.path(c.node), format_grouped(n.items));
  if (found && !n.leaf()) tip += "\n" + tr("{} found in it", format_grouped(found));
  scene.target(box, {cell, c.node}, Cursor::hand, tip);
  const float x = box.x + stripe + 6, w = box.right() - x - 6;
  if (w < 24) return;
  const bool two = box.h >= kTwoLines;
  const std::string title = n.leaf() ? title_of(c.node) : "▸ " + title_of(c.node);
  scene.text({x, box.y, w, two ? box.h / 2 + 2 : box.h}, title, Ink::text, two ? Face::body : Face::small);
  if (two) scene.text({x, box.y + box.h / 2 - 1, w, box.h / 2 - 2}, below_of(c.node), Ink::secondary, Face::small);
}

/// From so far that a box is a speck: one stroke a layer, as wide as its boxes reach, and none within two pixels of
/// another.
void GraphPane::draw_far(Scene& scene) const {
  float last = -1;
  for (size_t l = 0; l + 1 < layout_.layers.size(); ++l) {
    const auto &first = layout_.cells[static_cast<size_t>(layout_.layers[l])],
               &end = layout_.cells[static_cast<size_t>(layout_.layers[l + 1] - 1)];
    const Point a = to_picture(first.x - GraphLayout::kBoxW / 2, first.y),
                b = to_picture(end.x + GraphLayout::kBoxW / 2, end.y);
    if (a.y < box_.y - 4 || a.y > box_.bottom()) continue;
    if (std::exchange(last, std::floor(a.y / 2)) != std::floor(a.y / 2))
      scene.rect({a.x, a.y, std::max(2.f, b.x - a.x), std::max(1.f, GraphLayout::kBoxH * zoom_)}, Ink::secondary, 0.7f);
    for (int c = layout_.layers[l]; c < layout_.layers[l + 1]; ++c) {
      const auto& one = layout_.cells[static_cast<size_t>(c)];
      const bool here = focus_ > 0 && graph().tree.below(focus_, one.node);
      if (!here && !found_in_[static_cast<size_t>(c)]) continue;
      const Point p = to_picture(one.x, one.y);
      scene.rect({p.x - 3, p.y - 2, 6, 6}, here ? Ink::accent : Ink::warning, 1, 3);
    }
  }
}

void GraphPane::draw(Scene& scene, Box b) {
  const bool resized = b.w != box_.w || b.h != box_.h;
  box_ = b;
  if (!any() || b.w < 40 || b.h < 40) return;
  if (fit_next_) {
    fit();
    if (zoom_ < kFirstZoom) {  // its beginning, large enough to be read
      zoom_ = kFirstZoom;
      const float wide = (layout_.right - layout_.left) * zoom_, first = layout_.cells.front().x * zoom_;
      if (wide > b.w - 2 * kMargin)
        pan_x_ = b.x + kMargin - layout_.left * zoom_;
      else
        pan_x_ = b.x + b.w / 2 - (layout_.left + layout_.right) / 2 * zoom_;
      if (pan_x_ + first > b.right() - kMargin) pan_x_ = b.x + b.w / 2 - first;
    }
    fit_next_ = resized;  // a window that is still growing is fitted again
  }
  if (const int at = reveal_next_ && focus_ > 0 ? layout_.cell_of(graph(), focus_) : -1; at >= 0) center(at);
  reveal_next_ = reveal_next_ && resized;
  scene.clip(b);
  if (GraphLayout::kBoxH * zoom_ < kFar) {
    draw_far(scene);
  } else {
    const int focused = focus_ > 0 ? layout_.cell_of(graph(), focus_) : -1;
    draw_wires(scene, focused);
    const float half = GraphLayout::kBoxW * zoom_ / 2 + 4, height = GraphLayout::kBoxH * zoom_ + 4;
    for (size_t c = 0; c < layout_.cells.size(); ++c) {
      const Point p = to_picture(layout_.cells[c].x, layout_.cells[c].y);
      if (p.x + half >= b.x && p.x - half <= b.right() && p.y + height >= b.y && p.y - 4 <= b.bottom())
        draw_cell(scene, static_cast<int>(c), static_cast<int>(c) == focused);
    }
  }
  scene.unclip();
}

std::string GraphPane::summary() const {
  std::string out = tr("graph of {} nodes in {} boxes", format_grouped(graph().nodes()),
                       format_grouped(static_cast<int64_t>(layout_.cells.size())));
  if (focus_ <= 0) return out;
  const ScopeTree::Node& n = graph().tree.at(focus_);
  return out + tr("; chosen: {}", n.leaf() ? graph().op(n.item) + " " + graph().name(n.item)
                                           : graph().tree.path(focus_) + ", " + below_of(focus_));
}

}  // namespace tenon::views
