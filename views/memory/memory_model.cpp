#include "views/memory/memory_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

MemoryModel::MemoryModel() {
  snapshot_.on_select = [this](const Selection& s) { select(s); };
  snapshot_.on_cursor = [this] {
    if (on_cursor) on_cursor();
  };
}

void MemoryModel::set_document(const Document* document) {
  shows_snapshot_ = document && document->snapshot;
  begins_ = shows_snapshot_ && document->id == Document::kBeginning;
  const SnapshotHistory* history = snapshot_.history();
  // The picture of a beginning stays until there is one of the whole.
  const bool goes_on = shows_snapshot_ && history && history->asked.document == Document::kBeginning &&
                       history->snapshot->path == document->snapshot->path;
  if (!shows_snapshot_ || (history && history->snapshot != document->snapshot && !goes_on))
    snapshot_.set_history(nullptr);
  snapshot_.set_selection(selection_);
  changed();
}

void MemoryModel::set_beginning(const Document* document) {
  if ((document && document->snapshot) || begins_) set_document(document);
}

void MemoryModel::set_history(std::shared_ptr<const SnapshotHistory> history) {
  snapshot_.set_history(std::move(history));
  snapshot_.set_selection(selection_);
  changed();
}

void MemoryModel::set_bookmarks(std::vector<Bookmark> bookmarks) {
  snapshot_.set_bookmarks(std::move(bookmarks));
  changed();
}

void MemoryModel::set_map(std::shared_ptr<const snapshot::AllocatorState> map) {
  snapshot_.set_map(std::move(map));
  changed();
}

void MemoryModel::set_step(const Links& links) {
  links_ = links;
  states_.clear();
  blocks_.clear();
  peak_ = most_ = {};
  peak_time_ = cursor_ = 0;
  if (links_) {
    const auto& r = *links_.record();
    int64_t end = r.duration_ns;
    std::unordered_map<uint32_t, size_t> open;
    Live live;
    for (const auto& a : r.allocs) {
      end = std::max(end, a.time_ns);
      int category = static_cast<int>(a.origin.category);
      if (a.bytes > 0) {
        open[a.block] = blocks_.size();
        blocks_.push_back({a.block, a.address, a.bytes, a.time_ns, -1, true, a.origin});
      } else if (auto at = open.find(a.block); at != open.end()) {
        Block& b = blocks_[at->second];
        b.to = a.time_ns;
        b.outlives = false;
        category = static_cast<int>(b.origin.category);  // what is given back leaves the band it came in
        open.erase(at);
      }
      live.total += static_cast<double>(a.bytes);
      live.by[category] += static_cast<double>(a.bytes);
      most_.by[category] = std::max(most_.by[category], live.by[category]);
      if (!states_.empty() && states_.back().time == a.time_ns)
        states_.back().live = live;
      else
        states_.push_back({a.time_ns, live});
      if (live.total > peak_.total) {
        peak_ = live;
        peak_time_ = static_cast<double>(a.time_ns);
      }
    }
    for (Block& b : blocks_)
      if (b.outlives) b.to = end;
    axis_.min_span = 200;
    axis_.set_full(0, static_cast<double>(std::max<int64_t>(end, 1)));
    axis_.fit();
    cursor_ = peak_time_;
  }
  set_selection(selection_);
  if (on_cursor) on_cursor();
}

void MemoryModel::set_selection(const Selection& s) {
  selection_ = s;
  chosen_.clear();
  snapshot_.set_selection(s);
  if (!links_ || s.document) {
    changed();
    return;
  }
  if (s.kind == Selection::Kind::alloc)
    chosen_.push_back(s.id);
  else if (s.kind != Selection::Kind::range)
    for (uint32_t seq : links_.ops_of(s))
      for (int64_t b : links_.blocks_of(seq)) chosen_.push_back(b);
  std::sort(chosen_.begin(), chosen_.end());
  uint32_t seq = links_.op_of(s);
  if (seq && s.source != "memory") {
    const auto& op = links_.record()->ops[seq - 1];
    cursor_ = static_cast<double>(op.start_ns) + static_cast<double>(op.duration_ns);
    axis_.reveal(cursor_, cursor_);
    if (on_cursor) on_cursor();
  }
  changed();
}

void MemoryModel::set_cursor(double ns) {
  cursor_ = std::clamp(ns, axis_.full_lo, axis_.full_hi);
  changed();
  if (on_cursor) on_cursor();
}

size_t MemoryModel::state_at(double ns) const {
  auto it = std::partition_point(states_.begin(), states_.end(),
                                 [&](const State& s) { return static_cast<double>(s.time) <= ns; });
  return static_cast<size_t>(it - states_.begin());  // number of states begun; 0: before the first
}

MemoryModel::Live MemoryModel::live_at(double ns) const {
  size_t n = state_at(ns);
  return n ? states_[n - 1].live : Live{};
}

std::string MemoryModel::block_text(const Block& b) const {
  std::string text = format_bytes(static_cast<double>(b.bytes)) + "  " + word(b.origin.category);
  if (b.origin.seq && b.origin.seq <= links_.record()->ops.size())
    text += "  " + op_text(links_.record()->ops[b.origin.seq - 1]);
  std::string path = module_path(b.origin.module);
  if (!path.empty()) text += "  " + path;
  return text;
}

Table MemoryModel::live_table() const {
  Table t;
  t.columns = {{tr("Block"), true}, {tr("Size"), true},  {tr("Category")},   {tr("Made by")},
               {tr("Module")},      {tr("Since"), true}, {tr("Until"), true}};
  if (!links_) return t;
  for (const Block& b : blocks_) {
    if (static_cast<double>(b.from) > cursor_ || (!b.outlives && static_cast<double>(b.to) <= cursor_)) continue;
    Table::Row row;
    row.selection = Selection::alloc(b.id, "memory");
    const auto& ops = links_.record()->ops;
    bool known = b.origin.seq && b.origin.seq <= ops.size();
    row.cells = {Table::Cell::number(static_cast<double>(b.id), std::to_string(b.id)),
                 {format_bytes(static_cast<double>(b.bytes)), static_cast<double>(b.bytes),
                  tr("{} bytes", format_grouped(b.bytes)), Ink::none},
                 {word(b.origin.category), 0, {}, ink_of(b.origin.category)},
                 {known ? op_text(ops[b.origin.seq - 1]) : tr("before the step"), 0, {}, Ink::none},
                 {module_path(b.origin.module), 0, {}, Ink::none},
                 Table::Cell::number(static_cast<double>(b.from),
                                     b.from == 0 ? tr("start") : format_ns(static_cast<double>(b.from))),
                 Table::Cell::number(b.outlives ? 1e300 : static_cast<double>(b.to),
                                     b.outlives ? tr("stays") : format_ns(static_cast<double>(b.to)))};
    t.rows.push_back(std::move(row));
  }
  std::stable_sort(t.rows.begin(), t.rows.end(),
                   [](const auto& a, const auto& b) { return a.cells[1].key > b.cells[1].key; });
  return t;
}

Table MemoryModel::categories() const {
  Table t;
  t.columns = {{tr("Category")}, {tr("At cursor"), true}, {tr("At peak"), true}};
  if (!links_) return t;
  Live now = live_at(cursor_);
  for (Category c : stack_order()) {
    double a = now.by[static_cast<int>(c)], b = peak_.by[static_cast<int>(c)];
    if (a == 0 && b == 0) continue;
    t.rows.push_back({{{word(c), 0, {}, ink_of(c)},
                       Table::Cell::number(a, format_bytes(a)),
                       Table::Cell::number(b, format_bytes(b))},
                      {}});
  }
  return t;
}

bool MemoryModel::pointer(const PointerEvent& e) {
  if (shows_snapshot_) return snapshot_.pointer(e, last_);
  if (!links_) return false;
  bool inside = e.x >= axis_.x && e.x <= axis_.x + axis_.w;
  switch (e.type) {
    case PointerEvent::Type::press: {
      pull_.begin(axis_, e.x);
      if (e.button == Button::middle || (e.button == Button::left && e.mods.shift)) {
        panning_ = true;
        return false;
      }
      if (e.button != Button::left) return false;
      Hit hit = last_.hit_at(e.x, e.y);
      if (hit.kind == block) {
        select(Selection::alloc(hit.id, "memory"));
        return true;
      }
      if (hit.kind != plot || !inside) return false;
      dragging_ = true;
      set_cursor(axis_.to_value(e.x));
      return true;
    }
    case PointerEvent::Type::move:
      if (panning_) {
        pull_.to(axis_, e.x);
        return true;
      }
      if (!dragging_) return false;
      set_cursor(axis_.to_value(e.x));
      return true;
    case PointerEvent::Type::release: {
      bool was = dragging_ || panning_;
      // A click (not a scrub) also selects what was running then.
      if (dragging_ && std::fabs(e.x - pull_.x) < 3) select_at_cursor();
      dragging_ = panning_ = false;
      return was;
    }
    case PointerEvent::Type::double_click:
      axis_.fit();
      return true;
    case PointerEvent::Type::leave:
      return false;
  }
  return false;
}

/// The op that ran then.
bool MemoryModel::select_at_cursor() {
  for (const auto& op : links_.record()->ops)
    if (static_cast<double>(op.start_ns) <= cursor_ && static_cast<double>(op.start_ns + op.duration_ns) > cursor_) {
      select(Selection::op(op.seq, "memory"));
      break;
    }
  return true;
}

/// Through what is alive at the cursor, as it lies in the memory.
bool MemoryModel::next_block(int direction) {
  std::vector<std::pair<uint64_t, int64_t>> live;
  for (const Block& b : blocks_)
    if (static_cast<double>(b.from) <= cursor_ && (b.outlives || static_cast<double>(b.to) > cursor_))
      live.emplace_back(b.address, b.id);
  if (live.empty()) return false;
  std::sort(live.begin(), live.end());
  const int n = static_cast<int>(live.size());
  int at = direction > 0 ? -1 : n;
  for (int i = 0; i < n; ++i)
    if (selection_.kind == Selection::Kind::alloc && live[i].second == selection_.id) at = i;
  select(Selection::alloc(live[std::clamp(at + direction, 0, n - 1)].second, "memory"));
  return true;
}

bool MemoryModel::wheel(const WheelEvent& e) {
  if (shows_snapshot_) return snapshot_.wheel(e);
  return links_ && axis_.wheel(e);
}

bool MemoryModel::key(const KeyEvent& e) {
  if (shows_snapshot_) return snapshot_.key(e);
  if (!links_) return false;
  if (axis_.key(e)) return true;
  if (e.key == "P") {
    set_cursor(peak_time_);
    axis_.reveal(cursor_, cursor_);
    return true;
  }
  if (e.key == "Up" || e.key == "Down") return next_block(e.key == "Down" ? 1 : -1);
  if (e.key == "Return" || e.key == "Enter") return select_at_cursor();
  if (e.key != "Left" && e.key != "Right") return false;
  size_t n = state_at(cursor_);
  if (e.key == "Right" && n < states_.size()) set_cursor(static_cast<double>(states_[n].time));
  if (e.key == "Left" && n > 1) set_cursor(static_cast<double>(states_[n - 2].time));
  axis_.reveal(cursor_, cursor_);
  return true;
}

std::string MemoryModel::summary() const {
  if (shows_snapshot_) return snapshot_.summary();
  if (!links_) return tr("Memory: no step is loaded");
  std::string text = tr("Memory of step {}: peak {} at {}, {} blocks; at the cursor, {}: {}",
                        format_grouped(links_.record()->step), format_bytes(peak_.total), format_ns(peak_time_),
                        blocks_.size(), format_ns(cursor_), format_bytes(live_at(cursor_).total));
  if (selection_.kind == Selection::Kind::alloc)
    for (const Block& b : blocks_)
      if (b.id == selection_.id) return text + tr("; chosen: {}", block_text(b));
  return text;
}

}  // namespace tenon::views
