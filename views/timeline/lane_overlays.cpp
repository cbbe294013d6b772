// What is drawn over the lanes of an opened trace, and above them: the whole of it, its critical path, the gaps of the
// GPU with their reasons, arrows between what belongs together, counters.
#include <algorithm>
#include <cmath>

#include "tracing/analyses/trace_story.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/timeline/lane_model.h"

namespace tenon::views {

using traces::EventId;
using traces::kNone;
using tracing::Gap;
using tracing::GapReason;
using tracing::PathPiece;

namespace {

constexpr size_t kMostLinks = 200;  // of an op that launched thousands some are enough to see where they went

Ink ink_of_piece(PathPiece::What what) {
  switch (what) {
    case PathPiece::What::gpu:
      return ink_of(traces::EventKind::kernel);
    case PathPiece::What::cpu:
      return ink_of(traces::EventKind::cpu_op);
    case PathPiece::What::launch_delay:
      return Ink::series5;
    case PathPiece::What::wait:
      return Ink::warning;
    case PathPiece::What::between:
    case PathPiece::What::nothing:
      return Ink::baseline;
  }
  return Ink::baseline;
}

Ink ink_of_gap(GapReason reason) {
  constexpr Ink kInks[] = {Ink::phase_data, Ink::warning, Ink::series1,          Ink::series2, Ink::phase_communication,
                           Ink::baseline,   Ink::series6, Ink::memory_workspace, Ink::series4, Ink::bad};
  static_assert(std::size(kInks) == tracing::kGapReasons);
  return kInks[static_cast<size_t>(reason)];
}

std::string gap_words(GapReason reason) {
  std::string text = tracing::name(reason);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Of stretches that ascend, those within [lo, hi]: each that is a pixel wide, and of narrower neighbours the longest.
template <class Stretch, class Draw>
void each_seen(const std::vector<Stretch>& all, const Axis& axis, int64_t origin, Draw&& draw) {
  auto px = [&](int64_t t) { return std::clamp(axis.to_px(static_cast<double>(t - origin)), axis.x, axis.x + axis.w); };
  const auto lo = static_cast<double>(origin) + std::floor(axis.lo);
  size_t i = static_cast<size_t>(
      std::partition_point(all.begin(), all.end(), [&](const Stretch& s) { return static_cast<double>(s.to) < lo; }) -
      all.begin());
  while (i < all.size() && static_cast<double>(all[i].from - origin) < axis.hi) {
    const float a = px(all[i].from), b = px(all[i].to);
    size_t last = i + 1, longest = i;
    if (b - a < 1) {
      const double until = axis.to_value(a + 1);
      for (; last < all.size() && static_cast<double>(all[last].to - origin) < until; ++last)
        if (all[last].to - all[last].from > all[longest].to - all[longest].from) longest = last;
    }
    draw(a, std::max(px(all[last - 1].to), a + 1), longest, last - i);
    i = last;
  }
}

}  // namespace

bool LaneModel::box_of(uint32_t lane, Box& box) const {
  const int band = layout_.band_of(lane);
  if (band < 0) return false;
  const LaneLayout::Band& b = layout_.bands()[static_cast<size_t>(band)];
  for (const LaneLayout::Placed& p : placed_bands_)
    if (p.band == static_cast<size_t>(band)) {
      const uint32_t depth = b.folded ? 0 : lane - b.first;
      box = {gutter_, p.y + static_cast<float>(depth) * row_, axis_.w, row_};
      return true;
    }
  return false;
}

bool LaneModel::behind_pins(uint32_t lane, Box box) const {
  const int band = layout_.band_of(lane);
  return band >= 0 && !layout_.bands()[static_cast<size_t>(band)].pinned && box.y + box.h / 2 < rest_top_;
}

int LaneModel::chosen_band() const {
  if (!trace_ || chosen_event_ == kNone || document_ == Document::kProject) return -1;
  const uint32_t row = trace_->row_of(chosen_event_);
  const auto& bands = layout_.bands();
  for (size_t i = 0; i < bands.size(); ++i)
    if (bands[i].kind == LaneLayout::Band::Kind::row && bands[i].of == row) return static_cast<int>(i);
  return -1;
}

int LaneModel::band_at(float y) const {
  for (size_t i = 0; i < placed_bands_.size(); ++i) {  // what is pinned lies over the rest
    const LaneLayout::Placed& at = placed_bands_[i];
    if (y >= at.y && y < at.y + at.h && (i < stuck_ || y >= rest_top_)) return static_cast<int>(at.band);
  }
  return -1;
}

void LaneModel::toggle_pin(size_t band) {
  if (document_ == Document::kProject) return;
  layout_.toggle_pin(band);
  changed();
}

void LaneModel::unpin_all() {
  layout_.unpin_all();
  changed();
}

Ink LaneModel::colour_of(EventId e) const {
  const uint32_t name = colour_ == ColourBy::kind     ? kNone
                        : colour_ == ColourBy::module ? module_of(e)
                                                      : trace_->columns().name[e];
  if (colour_ == ColourBy::module && name == kNone) return Ink::baseline;
  if (name == kNone) {
    const traces::EventKind kind = trace_->kind(e);
    const bool collective = kind == traces::EventKind::kernel &&
                            (trace_->event_name(e).starts_with("nccl") || trace_->event_name(e).starts_with("rccl"));
    return collective ? Ink::phase_communication : ink_of(kind);
  }
  uint32_t hash = 2166136261u;  // FNV-1a: a name has one colour in every file
  for (char c : trace_->text(name)) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return series_ink(static_cast<int>(hash % 8));
}

/// The name of the innermost module around an event, or around the call that launched it.
uint32_t LaneModel::module_of(EventId e) const {
  const auto known = module_of_.find(e);
  if (known != module_of_.end()) return known->second;
  uint32_t name = kNone;
  EventId up = e;
  if (traces::on_gpu(trace_->kind(e))) up = trace_->launch_of(e);
  for (; up != kNone; up = trace_->parent(up))
    if (trace_->event_name(up).starts_with(tracing::kModulePrefix)) {
      name = trace_->columns().name[up];
      break;
    }
  if (module_of_.size() > 200000) module_of_.clear();
  return module_of_[e] = name;
}

void LaneModel::gather_links() {
  linked_.clear();
  if (!trace_ || chosen_event_ == kNone || document_ == Document::kProject) return;
  const traces::Trace& t = *trace_;
  const EventId e = chosen_event_;
  if (const EventId call = t.launch_of(e); call != kNone) linked_.push_back({call, e});
  const int64_t from = t.start(e), to = t.end(e);
  const uint32_t row = t.row_of(e);
  for (const traces::Link& l : t.launches()) {
    if (linked_.size() >= kMostLinks) break;
    if (l.from == e || (t.start(l.from) >= from && t.end(l.from) <= to && t.row_of(l.from) == row))
      linked_.push_back(l);
  }
  for (const traces::Link& l : t.forward_backward())
    if (l.from == e || l.to == e) linked_.push_back(l);
}

void LaneModel::draw_links(Scene& scene) const {
  for (const traces::Link& l : linked_) {
    Box a, b;
    if (!box_of(trace_->lane_of(l.from), a) || !box_of(trace_->lane_of(l.to), b)) continue;
    const float x0 = axis_.to_px(at(trace_->start(l.from))), x1 = axis_.to_px(at(trace_->start(l.to)));
    if (std::max(x0, x1) < axis_.x || std::min(x0, x1) > axis_.x + axis_.w) continue;
    // What lies behind the pinned rows is pointed at where it went.
    auto middle = [&](EventId e, Box row) {
      return behind_pins(trace_->lane_of(e), row) ? rest_top_ : row.y + row.h / 2;
    };
    const Point p{std::clamp(x0, axis_.x, axis_.x + axis_.w), middle(l.from, a)},
        q{std::clamp(x1, axis_.x, axis_.x + axis_.w), middle(l.to, b)};
    scene.curve(p, q, Ink::text, 1.5f, 0.85f);
    const float d = q.x >= p.x ? -6.f : 6.f;
    scene.polygon({{q.x, q.y}, {q.x + d, q.y - 4}, {q.x + d, q.y + 4}}, Ink::text, 0.85f);
  }
}

void LaneModel::draw_counter(Scene& scene, const LaneLayout::Band& band, Box row) {
  const traces::CounterCurve& curve = (*curves_)[band.of];
  auto told = [&](double v) { return curve.bytes() ? format_bytes(v) : format_value(v); };
  const double peak = std::max(curve.peak(), 1e-300);
  scene.text({14, row.y + 17, gutter_ - 20, 16}, told(curve.peak()), Ink::secondary, Face::mono_small);
  constexpr float kColumn = 2;
  float run_x = row.x;
  double run = std::nan("");
  auto flush = [&](float x) {
    if (std::isfinite(run) && x > run_x) {
      const float h = static_cast<float>(std::clamp(run / peak, 0.0, 1.0)) * (row.h - 4);
      scene.rect({run_x, row.bottom() - std::max(h, 1.f), x - run_x, std::max(h, 1.f)}, Ink::accent, 0.4f);
      scene.target({run_x, row.y, x - run_x, row.h}, {lane, 0}, Cursor::arrow, curve.name() + "\n" + told(run));
    }
    run_x = x;
  };
  for (float x = row.x; x < row.right(); x += kColumn) {
    const int64_t from = origin_ + static_cast<int64_t>(axis_.to_value(x)),
                  to = origin_ + static_cast<int64_t>(axis_.to_value(x + kColumn));
    const double v = curve.most(from, std::max(to, from + 1));
    if (v == run || (std::isnan(v) && std::isnan(run))) continue;
    flush(x);
    run = v;
  }
  flush(row.right());
}

/// How busy the streams are (or, without a GPU, the threads) over the whole trace, and what of it is seen.
void LaneModel::draw_overview(Scene& scene, Box strip) {
  overview_box_ = strip;
  const auto columns = static_cast<size_t>(strip.w);
  const double whole = axis_.full_hi - axis_.full_lo;
  if (overview_.size() != columns) {
    overview_.assign(columns, 0);
    const bool gpu = std::any_of(trace_->rows().begin(), trace_->rows().end(), [](const auto& r) { return r.gpu; });
    const double per = whole / static_cast<double>(columns);
    for (const traces::Row& row : trace_->rows()) {
      if (row.lanes == 0 || row.gpu != gpu) continue;
      for (const traces::Summary& s :
           trace_->summarise(row.first_lane, trace_->begin(), trace_->finish() + 1, columns)) {
        const double a = at(s.start) / per, b = std::max(at(s.end) / per, a + 1e-9);
        const double share =
            std::min(1.0, static_cast<double>(s.busy) / std::max(1.0, static_cast<double>(s.end - s.start)));
        for (auto c = static_cast<size_t>(std::max(a, 0.0)); c < columns && static_cast<double>(c) < b; ++c) {
          const double part = std::min(b, static_cast<double>(c) + 1) - std::max(a, static_cast<double>(c));
          overview_[c] = std::min(1.f, overview_[c] + static_cast<float>(part * share));
        }
      }
    }
  }
  scene.text({8, strip.y, gutter_ - 12, strip.h},
             document_ == Document::kBeginning ? tr("beginning") : tr("whole trace"), Ink::secondary, Face::small);
  scene.rect(strip, Ink::raised, 0.5f, 2);
  for (size_t c = 0; c < columns;) {
    const int level = static_cast<int>(overview_[c] * 15 + 0.5f);
    size_t end = c + 1;
    while (end < columns && static_cast<int>(overview_[end] * 15 + 0.5f) == level) ++end;
    const float h = static_cast<float>(level) / 15 * (strip.h - 2);
    if (level > 0)
      scene.rect({strip.x + static_cast<float>(c), strip.bottom() - h, static_cast<float>(end - c), h}, Ink::secondary,
                 0.7f);
    c = end;
  }
  const auto to_x = [&](double v) { return strip.x + static_cast<float>((v - axis_.full_lo) / whole) * strip.w; };
  const float a = to_x(axis_.lo), b = std::max(to_x(axis_.hi), a + 3);
  if (a > strip.x) scene.rect({strip.x, strip.y, a - strip.x, strip.h}, Ink::base, 0.55f);
  if (b < strip.right()) scene.rect({b, strip.y, strip.right() - b, strip.h}, Ink::base, 0.55f);
  scene.outline({a, strip.y, b - a, strip.h}, Ink::accent, 1.5f, 2);
  scene.target(
      strip, {overview, 0}, Cursor::grab,
      tr("How busy the machine is over the whole trace, and the part that is seen below.\nPress or drag to move it."));
}

/// A flag in the axis for each, a line down where it begins, and a bar as long as what it keeps.
void LaneModel::draw_bookmarks(Scene& scene, Box header, float bottom) {
  for (size_t i = 0; i < bookmarks_.size(); ++i) {
    const Bookmark& b = bookmarks_[i];
    const float x = axis_.to_px(b.from), end = axis_.to_px(b.to);
    if (end < header.x || x > header.right()) continue;
    const float left = std::max(x, header.x), right = std::min(end, header.right());
    if (right - left > 1) scene.rect({left, header.bottom() - 3, right - left, 3}, Ink::warning, 0.9f);
    if (x >= header.x) {
      scene.line({x, header.y + 2}, {x, bottom}, Ink::warning, 1, 0.7f);
      scene.polygon({{x, header.y + 2}, {x + 9, header.y + 6}, {x, header.y + 10}}, Ink::warning);
    }
    const std::string time =
        b.to > b.from ? tr("{} for {}", format_ns(b.from), format_ns(b.to - b.from)) : format_ns(b.from);
    scene.target({left - 2, header.y, std::max(right - left, 12.f) + 2, header.h}, {bookmark, static_cast<int64_t>(i)},
                 Cursor::hand, b.note.empty() ? time : b.note + "\n" + time);
  }
}

void LaneModel::look_at(float x) {
  const double share = std::clamp<double>((x - overview_box_.x) / std::max(overview_box_.w, 1.f), 0, 1);
  const double middle = axis_.full_lo + share * (axis_.full_hi - axis_.full_lo), half = axis_.span() / 2;
  axis_.show(middle - half, middle + half);
}

void LaneModel::draw_path_strip(Scene& scene, Box strip) {
  scene.text({8, strip.y, gutter_ - 12, strip.h}, story_of_.empty() ? tr("critical path") : tr("{} path", story_of_),
             Ink::secondary, Face::small);
  each_seen(story_->path, axis_, origin_, [&](float a, float b, size_t i, size_t count) {
    const PathPiece& p = story_->path[i];
    const Ink ink = ink_of_piece(p.what);
    const Box box{a, strip.y + 1, std::max(b - a - (b - a > 4 ? 1.f : 0.f), 1.f), strip.h - 2};
    scene.rect(box, ink, p.what == PathPiece::What::between ? 0.5f : 1, box.w > 8 ? 2 : 0);
    if (p.what == PathPiece::What::nothing) scene.hatch(box, Ink::secondary, 0.5f);
    const std::string name =
        tracing::piece_name(p.what, p.event == kNone ? std::string_view() : trace_->event_name(p.event));
    if (count == 1 && box.w > 24 && p.what != PathPiece::What::nothing &&
        text_width(name, Face::small) * 0.7f < box.w - 6)
      scene.text({box.x + 4, box.y, box.w - 6, box.h}, name, on_fill(ink), Face::small);
    scene.target(box, {piece, static_cast<int64_t>(i)}, Cursor::hand,
                 (count > 1 ? tr("{} pieces, the longest of them:", count) + "\n" : std::string()) + name + "\n" +
                     tr("{} on the critical path", format_ns(static_cast<double>(p.to - p.from))));
  });
}

void LaneModel::draw_gap_strip(Scene& scene, Box strip) {
  scene.text({8, strip.y, gutter_ - 12, strip.h}, story_of_.empty() ? tr("GPU idle") : tr("{} GPU idle", story_of_),
             Ink::secondary, Face::small);
  each_seen(story_->gaps, axis_, origin_, [&](float a, float b, size_t i, size_t count) {
    const Gap& g = story_->gaps[i];
    const Ink ink = ink_of_gap(g.reason);
    const Box box{a, strip.y + 1, std::max(b - a - (b - a > 4 ? 1.f : 0.f), 1.f), strip.h - 2};
    scene.rect(box, ink, 0.9f, box.w > 8 ? 2 : 0);
    if (count == 1 && text_width(gap_words(g.reason), Face::small) < box.w - 6)
      scene.text({box.x + 4, box.y, box.w - 6, box.h}, gap_words(g.reason), on_fill(ink), Face::small);
    scene.target(box, {gap, static_cast<int64_t>(i)}, Cursor::hand,
                 (count > 1 ? tr("{} gaps, the longest of them:", count) + "\n" : std::string()) +
                     tr("The GPU stands still for {}: {}", format_ns(static_cast<double>(g.to - g.from)),
                        tracing::because(g.reason)));
  });
}

/// A line under what is on the path, and from each piece to the next.
void LaneModel::draw_path(Scene& scene) const {
  bool has_last = false;
  Point last;
  each_seen(story_->path, axis_, origin_, [&](float a, float b, size_t i, size_t) {
    const PathPiece& p = story_->path[i];
    const bool has_lane = p.event != kNone && (p.what == PathPiece::What::gpu || p.what == PathPiece::What::cpu ||
                                               p.what == PathPiece::What::wait);
    Box row;
    if (!has_lane || !box_of(trace_->lane_of(p.event), row) || behind_pins(trace_->lane_of(p.event), row)) return;
    const float y = row.bottom() - 2;
    if (has_last && last.y != y) scene.line(last, {a, y}, Ink::accent, 1.5f, 0.9f);
    scene.rect({a, y - 1, std::max(b - a, 1.f), 3}, Ink::accent);
    last = {b, y};
    has_last = true;
  });
}

}  // namespace tenon::views
