#include "views/shared/flame_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tracing/record/step_record.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using tracing::Flame;

namespace {
constexpr float kBoxRow = 20, kLeastBox = 0.6f, kFlameEdge = 8;
}  // namespace

void FlameModel::set_flame(Shared flame, int document, std::shared_ptr<const tracing::StepRecord> step) {
  flame_ = std::move(flame);
  step_ = std::move(step);
  pair_.reset();
  document_ = document;
  root_ = chosen_ = 0;
  scroll_ = 0;
  changed();
}

void FlameModel::set_difference(std::shared_ptr<const tracing::FlamePair> pair, int a, int b) {
  set_flame(pair ? Shared(pair, &pair->flame) : nullptr, b);
  pair_ = std::move(pair);
  first_ = a;
}

void FlameModel::set_root(uint32_t node) {
  if (!flame_ || node >= flame_->nodes().size()) return;
  root_ = node;
  scroll_ = 0;
  changed();
}

void FlameModel::choose(uint32_t node) {
  if (!flame_ || node >= flame_->nodes().size()) return;
  chosen_ = node;
  scroll_to(node);
  changed();
  if (const Selection s = selection_of(node)) select(s);
}

Selection FlameModel::selection_of(uint32_t node) const {
  if (!node) return {};
  if (pair_) return in_b(node) ? in_b(node) : in_a(node);
  if (flame_->unit() == tracing::Unit::bytes) return Selection::place(document_, flame_->text(node), "flame");
  const traces::EventId e = flame_->nodes()[node].longest;
  if (e == traces::kNone) return {};
  if (!step_) return Selection::event(document_, e, "flame");
  const uint32_t seq = step_->timeline.op(e).seq;
  return seq ? Selection::op(seq, "flame") : Selection();
}

void FlameModel::set_filter(const Filter& f) {
  if (wanted_ == lower(f.name)) return;
  wanted_ = lower(f.name);
  changed();
}

bool FlameModel::finds(uint32_t node) const {
  return node && !wanted_.empty() && lower(flame_->text(node)).find(wanted_) != std::string::npos;
}

double FlameModel::found() const {
  if (!flame_ || wanted_.empty() || flame_->nodes()[root_].total <= 0) return -1;
  int64_t sum = 0;
  std::vector<uint32_t> open{root_};
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    if (finds(node)) {
      sum += flame_->nodes()[node].total;  // what is below it lies within
      continue;
    }
    for (const uint32_t c : flame_->children(node)) open.push_back(c);
  }
  return static_cast<double>(sum) / static_cast<double>(flame_->nodes()[root_].total);
}

std::string FlameModel::amount(int64_t v) const {
  return flame_ && flame_->unit() == tracing::Unit::bytes ? format_bytes(static_cast<double>(v))
                                                          : format_ns(static_cast<double>(v));
}

Ink FlameModel::ink_of_node(uint32_t node) const {
  const Flame::Node& n = flame_->nodes()[node];
  if (flame_->unit() == tracing::Unit::nanoseconds && n.longest != traces::kNone) return ink_of(n.kind);
  // Neighbours are told apart; the same name has the same colour wherever it stands.
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : flame_->text(node)) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return series_ink(static_cast<int>((h ^ h >> 32) % 8));
}

std::string FlameModel::tip(uint32_t node) const {
  if (pair_) return difference_tip(node);
  const Flame::Node& n = flame_->nodes()[node];
  const auto of = [&](uint32_t whole) {
    const int64_t total = flame_->nodes()[whole].total;
    return format_percent(total > 0 ? static_cast<double>(n.total) / static_cast<double>(total) : 0);
  };
  std::string text = flame_->text(node) + "\n" + tr("{}, {} of all", amount(n.total), of(0));
  if (root_) text += ", " + tr("{} of what fills the width", of(root_));
  text += "\n" + tr("{} of it in itself", amount(n.self));
  if (n.count <= 0) return text;
  const std::string count = format_grouped(n.count);
  if (flame_->unit() == tracing::Unit::bytes)
    return text + "\n" + (n.count == 1 ? tr("1 block") : tr("{} blocks", count));
  return text + "\n" + (n.count == 1 ? tr("1 event") : tr("{} events", count));
}

Table FlameModel::names() const {
  Table t;
  t.columns = {{tr("Name")}, {tr("In itself"), true}, {tr("With what it calls"), true}, {tr("Count"), true}};
  if (!flame_) return t;
  struct Sum {
    int64_t self = 0, total = 0, count = 0;
    uint32_t largest = 0;
  };
  std::map<uint32_t, Sum> sums;
  const auto& nodes = flame_->nodes();
  for (uint32_t i = 1; i < nodes.size(); ++i) {
    bool again = false;  // below one of its own name, whose total holds it already
    for (uint32_t up = nodes[i].parent; up && !again; up = nodes[up].parent) again = nodes[up].name == nodes[i].name;
    Sum& s = sums[nodes[i].name];
    s.self += nodes[i].self;
    s.count += nodes[i].count;
    if (!again) s.total += nodes[i].total;
    if (!s.largest || nodes[i].total > nodes[s.largest].total) s.largest = i;
  }
  for (const auto& [name, s] : sums) {
    const Flame::Node& n = nodes[s.largest];
    Table::Row row;
    if (n.longest != traces::kNone) row.selection = Selection::event(document_, n.longest, "flame");
    if (flame_->unit() == tracing::Unit::bytes)
      row.selection = Selection::place(document_, flame_->text(s.largest), "flame");
    row.cells = {{flame_->text(s.largest), 0, {}, ink_of_node(s.largest)},
                 Table::Cell::number(static_cast<double>(s.self), amount(s.self)),
                 Table::Cell::number(static_cast<double>(s.total), amount(s.total)),
                 Table::Cell::number(static_cast<double>(s.count), format_grouped(s.count))};
    t.rows.push_back(std::move(row));
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [](const auto& a, const auto& b) { return a.cells[1].key > b.cells[1].key; });
  return t;
}

float FlameModel::content_height() const {
  return flame_ ? static_cast<float>(flame_->deepest() + 1) * kBoxRow + 2 * kFlameEdge + top() : 0;
}

void FlameModel::scroll_to(uint32_t node) {
  if (!flame_) return;
  const float y = static_cast<float>(flame_->nodes()[node].depth) * kBoxRow;
  if (y < scroll_) scroll_ = y;
  if (y + 2 * kBoxRow > scroll_ + height_) scroll_ = y + 2 * kBoxRow - height_;
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content_height() - height_));
}

void FlameModel::draw_box(Scene& scene, const Laid& at, float y) {
  const bool way = at.node != root_ && flame_->nodes()[at.node].depth < flame_->nodes()[root_].depth;
  const bool dim = way || (!wanted_.empty() && !finds(at.node));
  const Fill fill = fill_of(at.node);
  const Box b{at.x, y, std::max(at.w - (at.w > 3 ? 1.f : 0.f), kLeastBox), kBoxRow - 1};
  scene.rect(b, fill.ink, dim ? 0.35f * fill.alpha : fill.alpha, at.w > 8 ? 2.f : 0.f);
  if (fill.hatched && b.w > 4) scene.hatch(b, fill.text, 0.3f);
  if (at.node == chosen_ && chosen_)
    scene.outline({b.x + 1, b.y + 1, std::max(b.w - 2, 1.f), b.h - 2}, Ink::text, 2, 2);
  constexpr float kLeastText = 44;  // less is dots
  if (b.w > kLeastText) {
    std::string text = at.node ? flame_->text(at.node) : tr("everything, {}", amount(flame_->nodes()[0].total));
    if (pair_) text = difference_label(at.node, b.w - 10);
    scene.text({b.x + 5, b.y, b.w - 10, b.h}, text, dim ? Ink::text : fill.text, Face::small);
  }
  if (b.w >= 2) scene.target(b, {box, at.node}, Cursor::hand, tip(at.node));
}

void FlameModel::draw_row(Scene& scene, const std::vector<Laid>& row, float y) {
  for (const Laid& l : row) draw_box(scene, l, y);
}

/// What is too narrow to be seen is left out with all below it: the picture costs what it shows.
void FlameModel::draw(Scene& scene) {
  if (!flame_ || flame_->empty()) return;
  const Size size = scene.size();
  height_ = size.h;
  scroll_ = std::clamp(scroll_, 0.f, std::max(0.f, content_height() - height_));
  const float width = std::max(size.w - 2 * kFlameEdge, 10.f);
  std::vector<uint32_t> way;
  for (uint32_t n = root_; n; n = flame_->nodes()[n].parent) way.push_back(n);
  way.push_back(0);
  float y = kFlameEdge + top() - scroll_;
  for (size_t i = way.size(); i-- > 0; y += kBoxRow) draw_row(scene, {{way[i], kFlameEdge, width}}, y);
  std::vector<Laid> row{{root_, kFlameEdge, width}}, next;
  while (!row.empty() && y < size.h) {
    next.clear();
    for (const Laid& above : row) {
      const double total = static_cast<double>(flame_->nodes()[above.node].total);
      float x = above.x;
      for (const uint32_t c : flame_->children(above.node)) {
        const auto w =
            static_cast<float>(static_cast<double>(flame_->nodes()[c].total) / std::max(total, 1.0)) * above.w;
        if (w < kLeastBox) break;  // the others are smaller
        next.push_back({c, x, w});
        x += w;
      }
    }
    if (y + kBoxRow > 0) draw_row(scene, next, y);
    row.swap(next);
    y += kBoxRow;
  }
  if (pair_) draw_legend(scene);
}

bool FlameModel::pointer(const PointerEvent& e) {
  if (!flame_) return false;
  const Hit hit = last_.hit_at(e.x, e.y);
  if (e.type == PointerEvent::Type::press && e.button == Button::left && hit.kind == box) {
    choose(static_cast<uint32_t>(hit.id));
    return true;
  }
  if (e.type == PointerEvent::Type::double_click) {
    set_root(hit.kind == box ? static_cast<uint32_t>(hit.id) : 0);
    return true;
  }
  return false;
}

bool FlameModel::wheel(const WheelEvent& e) {
  if (!flame_ || e.dy == 0) return false;
  scroll_ = std::clamp(scroll_ - e.dy * 3 * kBoxRow, 0.f, std::max(0.f, content_height() - height_));
  return true;
}

/// To the neighbour of the same parent.
bool FlameModel::step(int direction) {
  const auto siblings = flame_->children(flame_->nodes()[chosen_].parent);
  const auto at = std::find(siblings.begin(), siblings.end(), chosen_) - siblings.begin() + direction;
  if (at < 0 || at >= static_cast<ptrdiff_t>(siblings.size())) return false;
  choose(siblings[static_cast<size_t>(at)]);
  return true;
}

bool FlameModel::key(const KeyEvent& e) {
  if (!flame_ || flame_->empty()) return false;
  if (e.key == "Esc" || e.key == "F") {
    set_root(0);
    return true;
  }
  if (e.key == "Return" || e.key == "Enter") {
    set_root(chosen_);
    return true;
  }
  if (e.key == "Backspace") {
    set_root(flame_->nodes()[root_].parent);
    return true;
  }
  const bool arrow = e.key == "Left" || e.key == "Right" || e.key == "Up" || e.key == "Down";
  if (!arrow) return false;
  if (!chosen_) {
    choose(flame_->children(root_).empty() ? root_ : flame_->children(root_).front());
    return true;
  }
  if (e.key == "Left" || e.key == "Right") return step(e.key == "Right" ? 1 : -1);
  if (e.key == "Down" && !flame_->children(chosen_).empty())
    choose(flame_->children(chosen_).front());
  else if (e.key == "Up" && flame_->nodes()[chosen_].parent)
    choose(flame_->nodes()[chosen_].parent);
  else
    return false;
  return true;
}

std::string FlameModel::summary() const {
  if (!flame_ || flame_->empty()) return tr("Flame graph: nothing is shown");
  if (pair_)
    return tr("Difference of two flame graphs: {} in A, {} in B", amount(pair_->a[0].total),
              amount(pair_->b[0].total)) +
           (chosen_ ? tr("; chosen: {}", flame_->text(chosen_) + ", " + change_text(chosen_)) : std::string());
  std::string text = tr("Flame graph of {} over {} names", amount(flame_->nodes()[0].total),
                        format_grouped(static_cast<int64_t>(flame_->nodes().size() - 1)));
  if (root_) text += tr(", from {}", flame_->text(root_));
  if (chosen_) text += tr("; chosen: {}", flame_->text(chosen_) + ", " + amount(flame_->nodes()[chosen_].total));
  return text;
}

}  // namespace tenon::views
