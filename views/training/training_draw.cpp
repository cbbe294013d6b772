// The picture of the charts: their frames, axes and words. The lines are in training_curves.cpp, state and intents in
// training_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/training/training_model.h"

namespace tenon::views {

namespace {
constexpr float kPad = 12, kTitle = 24, kLeft = 58, kBottom = 20, kAxisTitle = 14, kGap = 14;
constexpr float kRoomForTitles = 130;  ///< of a plot
constexpr float kButtons = 58;         ///< at the right of a plot's head

/// What the values of a plot's axis are counted in, where its labels do not say so.
std::string unit_of(const std::string& q) {
  if (q == "samples_per_second") return "samples/s";
  if (q == "tokens_per_second") return "tokens/s";
  if (q == "nats_per_byte") return "nats/byte";
  if (q == "gpu_utilization") return "%";
  if (q == "gpu_watts") return "W";
  if (q == "gpu_celsius") return "°C";
  return {};
}
/// A metric within its chart: the split's name ("eval/loss" -> "eval"), or the metric itself where it has none or
/// stands beside others.
std::string series_name(const std::string& metric, const std::string& q) {
  if (q.empty()) return metric;
  if (metric == q) return "train";
  std::string s = metric.substr(0, metric.size() - q.size());
  while (!s.empty() && (s.back() == '/' || s.back() == '_' || s.back() == '.')) s.pop_back();
  return s.empty() ? metric : s;
}
std::string chart_title(const Chart& c) {
  for (const std::string& m : c.metrics)
    if (quantity_of(m) == c.title) return quantity_title(c.title);
  return c.title;
}
}  // namespace

void TrainingModel::draw_y(Scene& scene, const Chart& c, const Range& r, Box area) {
  const std::string& q = c.quantity;
  bool bytes = !r.log && (q.find("bytes") != std::string::npos || q.find("memory") != std::string::npos);
  // Lines of text with air between them; closer, where the chart would have fewer than four.
  const double most = std::max({2.f, area.h / 28, std::min(4.f, area.h / 20)});
  Ticks t = bytes ? byte_ticks(r.lo, r.hi, most) : nice_ticks(r.lo, r.hi, most);
  if (r.log) {
    t.step = std::max(1.0, std::ceil(t.step));
    t.first = std::ceil(r.lo);
    t.count = static_cast<int>(std::floor((r.hi - t.first) / t.step)) + 1;
    if (t.count < 2) t = nice_ticks(r.lo, r.hi, 3);  // less than a decade: round logarithms would show none
  }
  for (int i = 0; i < t.count; ++i) {
    double v = t.at(i);
    float y = area.bottom() - static_cast<float>((v - r.lo) / (r.hi - r.lo)) * area.h;
    if (y < area.y + 3 || y > area.bottom() + 1) continue;
    scene.line({area.x, y}, {area.right(), y}, Ink::grid);
    double shown = r.log ? std::pow(10, v) : std::fabs(v) < t.step / 1e6 ? 0 : v;
    std::string text = shown == 0        ? "0"
                       : q == "accuracy" ? fmt::format("{:.{}f} %", shown * 100, t.step < 0.01 ? 1 : 0)
                                         : format_metric(q, shown);
    if (q == "samples_per_second") text = format_count(shown);
    if (shown != 0 && !r.log && !unit_of(q).empty() && q.starts_with("gpu_")) text = format_value(shown);
    // 0.0005 among 0.001 and 0.0015: the numbers of an axis are written alike.
    if (!r.log && shown != 0 && std::fabs(shown) < 1e-3 && std::max(std::fabs(r.lo), std::fabs(r.hi)) >= 1e-3)
      text = fmt::format("{:.6f}", shown);
    scene.text({area.x - kLeft, y - 8, kLeft - 6, 16}, without_zeros(text), Ink::secondary, Face::mono_small,
               Align::right);
  }
}

void TrainingModel::draw_x(Scene& scene, Box area, bool titled) {
  const Over over = shown_over();
  const float room = over == Over::samples ? 100 : 80;
  const CurveTicks t = curve_ticks(over, axis_, std::max(2, static_cast<int>(area.w / room)));
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  for (int i = 0; i < t.ticks.count; ++i) {
    const double tick = t.ticks.at(i), v = tick * t.unit;
    const bool whole = over == Over::step || over == Over::samples;
    if (v < axis_.lo || v > axis_.hi || (whole && tick != std::floor(tick))) continue;
    std::string text = t.label(tick);
    float w = text_width(text, Face::mono_small) + 6, left = area.x - w / 2;
    float x = std::clamp(axis_.to_px(v) - w / 2, left, std::max(left, area.right() - w));
    scene.line({axis_.to_px(v), area.bottom()}, {axis_.to_px(v), area.bottom() + 4}, Ink::secondary);
    scene.text({x, area.bottom() + 4, w, 16}, text, Ink::secondary, Face::mono_small, Align::center);
  }
  if (titled)
    scene.text({area.x, area.bottom() + kBottom - 2, area.w, kAxisTitle},
               hover_ >= 0 ? place_text(over, x_of(hover_), hover_) : t.caption, Ink::secondary, Face::small,
               Align::center);
}

void TrainingModel::name_compared(Scene& scene, const Chart& c, float x, float y, float right) {
  const auto draws = [&](const Compared& k) {
    return std::find_if(c.metrics.begin(), c.metrics.end(), [&](const auto& m) {
      const auto s = k.series.find(m);
      return s != k.series.end() && !s->second.empty() && k.run != run_ &&
             scale(k).knows(s->second.step(s->second.size() - 1));
    });
  };
  const float more = text_width("+999", Face::small) + 8;
  for (size_t k = 0; k < compared_.size(); ++k) {
    const auto metric = draws(compared_[k]);
    if (metric == c.metrics.end()) continue;
    const Series& s = compared_[k].series.at(*metric);
    const CurveScale at = scale(compared_[k]);
    // Beside the shown run where that is, whatever step of its own it had come to there.
    const size_t i = hover_ >= 0 ? s.nearest_by(x_of(hover_), at.at(s)) : s.size() - 1;
    const std::string value = format_metric(*metric, s.value(i));
    const float lw = text_width(compared_[k].run, Face::small) + 6,
                vw = std::max(64.f, text_width(value, Face::mono_small) + 4);
    if (x + 14 + lw + vw > right - more) {
      std::string names;
      int left = 0;
      for (; k < compared_.size(); ++k)
        if (draws(compared_[k]) != c.metrics.end() && ++left <= 30) names += "\n" + compared_[k].run;
      if (left > 30) names += "\n…";
      std::string about = tr("{} more runs:", left) + names;
      if (column_ > 1) about += "\n" + tr("Of every {} pixels the lowest and the highest is drawn.", column_);
      if (x + more > right) return;
      scene.text({x, y, more, kTitle - 4}, fmt::format("+{}", left), Ink::secondary, Face::small);
      scene.target({x, y, more, kTitle - 4}, {}, Cursor::arrow, about);
      return;
    }
    scene.rect({x, y + 6, 8, 8}, compared_ink(static_cast<int>(k)), 1, 4);
    scene.text({x + 13, y, lw, kTitle - 4}, compared_[k].run, Ink::secondary, Face::small);
    scene.text({x + 13 + lw, y, vw, kTitle - 4}, value, std::isfinite(s.value(i)) ? Ink::text : Ink::bad_text,
               Face::mono_small);
    scene.target({x, y, 13 + lw + vw, kTitle - 4}, {}, Cursor::arrow,
                 tr("{} of {} at {}: {}", *metric, compared_[k].run, place_text(at.over, at.of(s, i), s.step(i)),
                    format_exact(s.value(i))));
    x += 13 + lw + vw + 6;
  }
}

/// What stands on the upright axis, over it; then the read-out of each series at the hovered (or the last) step.
void TrainingModel::draw_header(Scene& scene, const Chart& c, Box box) {
  const auto number = static_cast<int64_t>(areas_.size()) - 1;
  const CurveScale at = scale();
  std::string title = chart_title(c);
  if (const std::string unit = unit_of(c.quantity); !unit.empty()) title += ", " + unit;
  const float right = box.right() - (still_ ? 6 : kButtons);
  float x = box.x + 2, tw = std::min(text_width(title, Face::body) + 10, std::max(right - x, 0.f));
  scene.text({x, box.y, tw, kTitle - 2}, title, Ink::text, Face::body);
  if (number == focus_) scene.rect({x, box.y + kTitle - 3, tw - 10, 2}, Ink::accent);
  if (!still_) {
    const Box toggle{right + 2, box.y + 1, 30, 18}, hide{box.right() - 22, box.y + 1, 18, 18};
    const bool is_log = log(c.title);
    scene.outline(toggle, is_log ? Ink::accent : Ink::line, 1, 3);
    scene.text(toggle, tr("log"), is_log ? Ink::accent : Ink::secondary, Face::small, Align::center);
    scene.target(toggle, {log_toggle, number}, Cursor::hand,
                 is_log ? tr("Linear scale (L)") : tr("Logarithmic scale (L)"));
    scene.text(hide, "×", Ink::secondary, Face::body, Align::center);
    scene.target(hide, {hide_button, number}, Cursor::hand, tr("Hide this chart (H); Charts brings it back"));
  }
  x += tw + 4;
  for (size_t i = 0; i < c.metrics.size(); ++i) {
    const Series& s = series_.at(c.metrics[i]);
    size_t k = hover_ >= 0 ? s.nearest(hover_) : s.size() - 1;
    std::string label =
        c.metrics.size() > 1 || c.metrics[i] != c.title ? series_name(c.metrics[i], c.quantity) : std::string();
    std::string value = format_metric(c.metrics[i], s.value(k));
    float lw = label.empty() ? 0 : text_width(label, Face::small) + 6,
          vw = std::max(64.f, text_width(value, Face::mono_small) + 4);
    if (x + 14 + lw + vw > right) break;
    scene.rect({x, box.y + 6, 8, 8}, series_ink(static_cast<int>(i)), 1, 2);
    if (lw > 0) scene.text({x + 13, box.y, lw, kTitle - 4}, label, Ink::secondary, Face::small);
    scene.text({x + 13 + lw, box.y, vw, kTitle - 4}, value, std::isfinite(s.value(k)) ? Ink::text : Ink::bad_text,
               Face::mono_small);
    scene.target(
        {x, box.y, 13 + lw + vw, kTitle - 4}, {}, Cursor::arrow,
        tr("{} at {}: {}", c.metrics[i], place_text(at.over, at.of(s, k), s.step(k)), format_exact(s.value(k))));
    x += 13 + lw + vw + 6;
  }
  name_compared(scene, c, x, box.y, right);
}

void TrainingModel::draw_plot(Scene& scene, const Chart& c, Box box) {
  const bool titled = box.h >= kRoomForTitles;
  Box area{box.x + kLeft, box.y + kTitle, box.w - kLeft - 8, box.h - kTitle - kBottom - (titled ? kAxisTitle : 0)};
  axis_.x = area.x;
  axis_.w = area.w;
  areas_.emplace_back(area, c.title);
  const Range r = range(c);
  draw_header(scene, c, box);
  draw_y(scene, c, r, area);
  draw_x(scene, area, titled);
  scene.target(area, {plot, static_cast<int64_t>(areas_.size()) - 1}, Cursor::cross);
  scene.clip({area.x - 4, area.y - 4, area.w + 8, area.h + 8});
  draw_curves(scene, c, r, area);
  draw_changes(scene, area);
  draw_watch_marks(scene, area);
  draw_marks(scene, c, r, area);
  if (dragging_ && moved_)
    scene.rect({std::min(press_x_, drag_x_), area.y, std::fabs(drag_x_ - press_x_), area.h}, Ink::accent, 0.15f);
  scene.unclip();
}

void TrainingModel::draw(Scene& scene) {
  areas_.clear();
  if (series_.empty()) return;
  Size size = scene.size();
  auto all = arranged();
  if (all.empty()) {
    scene.text({kPad, 0, std::max(size.w - 2 * kPad, 0.f), size.h},
               tr("Every chart is hidden. Charts… brings them back."), Ink::secondary, Face::body, Align::center);
    return;
  }
  float w = size.w - 2 * kPad, h = size.h - 2 * kPad;
  int n = static_cast<int>(all.size());
  int columns = std::clamp(static_cast<int>(w / 330), 1, 3);
  // The first plot takes the whole width where there is room for it to be the picture, the rest share the rows below.
  bool lead = h > 420 && n > 2;
  int rest = lead ? n - 1 : n, rows = std::max(1, (rest + columns - 1) / columns);
  float lead_h = lead ? std::max(h * 0.42f, 160.f) : 0, rest_h = h - lead_h - (lead ? kGap : 0);
  while (rows > 1 && (rest_h - kGap * static_cast<float>(rows - 1)) / static_cast<float>(rows) < 92)
    --rows;  // what does not fit is in the table
  float each_h = (rest_h - kGap * static_cast<float>(rows - 1)) / static_cast<float>(rows);
  columns = std::min(columns, std::max(rest, 1));
  float each_w = (w - kGap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  all.resize(static_cast<size_t>(std::min(n, (lead ? 1 : 0) + rows * columns)));
  column_ = coarseness(all, each_w);
  size_t at = 0;
  if (lead) draw_plot(scene, all[at++], {kPad, kPad, w, lead_h});
  for (int i = 0; at < all.size(); ++i, ++at) {
    float x = kPad + static_cast<float>(i % columns) * (each_w + kGap);
    float y = kPad + (lead ? lead_h + kGap : 0) + static_cast<float>(i / columns) * (each_h + kGap);
    draw_plot(scene, all[at], {x, y, each_w, each_h});
  }
}

}  // namespace tenon::views
