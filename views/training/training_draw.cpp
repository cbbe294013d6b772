// The picture of the curves; state and intents are in training_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/shared/format.h"
#include "views/shared/meaning.h"
#include "views/training/training_model.h"

namespace tenon::views {

namespace {
constexpr float kPad = 12, kTitle = 24, kLeft = 58, kBottom = 20, kAxisTitle = 14, kGap = 14;
constexpr float kRoomForTitles = 130;  ///< of a plot

std::string words(const std::string& q) {
  if (q == "lr") return "Learning rate";
  if (q == "grad_norm") return "Gradient norm";
  if (q == "samples_per_second" || q == "tokens_per_second") return "Throughput";
  if (q == "live_bytes" || q == "memory_bytes") return "Live memory";
  if (q == "peak_bytes") return "Peak memory";
  std::string t = q;
  std::replace(t.begin(), t.end(), '_', ' ');
  if (!t.empty()) t[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(t[0])));
  return t;
}
/// What the values of a plot's axis are counted in, where its labels do not say so.
std::string unit_of(const std::string& q) {
  if (q == "samples_per_second") return "samples/s";
  if (q == "tokens_per_second") return "tokens/s";
  if (q == "nats_per_byte") return "nats/byte";
  return {};
}
/// A metric within its plot: the split's name ("eval/loss" -> "eval"), or the metric itself where it has none.
std::string series_name(const std::string& metric, const std::string& q) {
  if (metric == q) return "train";
  std::string s = metric.substr(0, metric.size() - q.size());
  while (!s.empty() && (s.back() == '/' || s.back() == '_' || s.back() == '.')) s.pop_back();
  return s.empty() ? metric : s;
}
}  // namespace

void TrainingModel::draw_y(Scene& scene, const Group& g, const Range& r, Box area) {
  bool bytes = !r.log && (g.title.find("bytes") != std::string::npos || g.title.find("memory") != std::string::npos);
  int most = std::max(2, static_cast<int>(area.h / 28));
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
    std::string text = shown == 0              ? "0"
                       : g.title == "accuracy" ? fmt::format("{:.{}f} %", shown * 100, t.step < 0.01 ? 1 : 0)
                                               : format_metric(g.title, shown);
    if (g.title == "samples_per_second") text = format_count(shown);
    scene.text({area.x - kLeft, y - 8, kLeft - 6, 16}, without_zeros(text), Ink::secondary, Face::mono_small,
               Align::right);
  }
}

void TrainingModel::draw_x(Scene& scene, Box area, bool titled) {
  Ticks t = nice_ticks(axis_.lo, axis_.hi, std::max(2, static_cast<int>(area.w / 80)));
  t.step = std::max(t.step, 1.0);
  scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::secondary);
  for (int i = 0; i < t.count; ++i) {
    double v = t.at(i);
    if (v > axis_.hi || v != std::floor(v)) continue;
    std::string text = format_grouped(static_cast<int64_t>(v));
    float w = text_width(text, Face::mono_small) + 6, left = area.x - w / 2;
    float x = std::clamp(axis_.to_px(v) - w / 2, left, std::max(left, area.right() - w));
    scene.line({axis_.to_px(v), area.bottom()}, {axis_.to_px(v), area.bottom() + 4}, Ink::secondary);
    scene.text({x, area.bottom() + 4, w, 16}, text, Ink::secondary, Face::mono_small, Align::center);
  }
  if (titled)
    scene.text({area.x, area.bottom() + kBottom - 2, area.w, kAxisTitle}, "Step", Ink::secondary, Face::small,
               Align::center);
}

void TrainingModel::draw_changes(Scene& scene, Box area) {
  for (const Change& c : changes_) {
    const float x = axis_.to_px(static_cast<double>(c.step) + 0.5);  // between the steps that it parts
    if (x < area.x || x > area.right()) continue;
    scene.line({x, area.y}, {x, area.bottom()}, Ink::warning, 1, 0.8f);
    scene.rect({x - 3, area.y, 6, 6}, Ink::warning, 1, 3);
    scene.target({x - 5, area.y, 10, 14}, {}, Cursor::arrow,
                 fmt::format("after step {}: {}", format_grouped(c.step), c.text));
  }
}

void TrainingModel::draw_marks(Scene& scene, const Group& g, const Range& r, Box area) {
  // Values that are no numbers stand on the axis in red: never hidden, never a gap without a reason.
  for (const std::string& m : g.metrics) {
    const Series& s = series_.at(m);
    int columns = static_cast<int>(area.w / 3);
    auto sums = s.columns(axis_.lo, axis_.hi + 1, columns);
    for (int c = 0; c < columns; ++c) {
      if (!sums[c].bad) continue;
      float x = area.x + (static_cast<float>(c) + 0.5f) * area.w / static_cast<float>(columns);
      scene.rect({x - 1, area.bottom() - 8, 2, 8}, Ink::bad);
      scene.target({x - 3, area.bottom() - 10, 6, 12}, {plot, 0}, Cursor::hand,
                   fmt::format("{}: {} values of steps {} to {} are not finite", m, sums[c].bad, sums[c].first_step,
                               sums[c].last_step));
    }
  }
  auto upright = [&](int64_t step, Ink ink, float width) {
    float x = axis_.to_px(static_cast<double>(step));
    if (step >= 0 && x >= area.x && x <= area.right()) scene.line({x, area.y}, {x, area.bottom()}, ink, width);
  };
  upright(selected_, Ink::text, 2);  // a curve has the colour of the accent
  upright(hover_, Ink::secondary, 1);
  int64_t at = hover_ >= 0 ? hover_ : selected_;
  if (at < 0) return;
  for (size_t i = 0; i < g.metrics.size(); ++i) {
    const Series& s = series_.at(g.metrics[i]);
    size_t k = s.nearest(at);
    if (!std::isfinite(s.value(k)) || static_cast<double>(s.step(k)) < axis_.lo ||
        static_cast<double>(s.step(k)) > axis_.hi)
      continue;
    float x = axis_.to_px(static_cast<double>(s.step(k))), y = y_of(s.value(k), r, area);
    scene.rect({x - 4, y - 4, 8, 8}, Ink::panel, 1, 4);
    scene.rect({x - 3, y - 3, 6, 6}, series_ink(static_cast<int>(i)), 1, 3);
  }
}

void TrainingModel::draw_compared(Scene& scene, const Group& g, const Range& r, Box area) {
  for (size_t k = 0; k < compared_.size(); ++k)
    for (const std::string& m : g.metrics)
      if (auto at = compared_[k].series.find(m); at != compared_[k].series.end() && compared_[k].run != run_)
        draw_series(scene, at->second, r, area, compared_ink(static_cast<int>(k)), false, at->second.size() > 60);
}

void TrainingModel::name_compared(Scene& scene, const Group& g, float x, float y, float right) {
  for (size_t k = 0; k < compared_.size(); ++k) {
    const Compared& c = compared_[k];
    const auto metric =
        std::find_if(g.metrics.begin(), g.metrics.end(), [&](const auto& m) { return c.series.count(m) > 0; });
    if (metric == g.metrics.end() || c.run == run_) continue;
    const Series& s = c.series.at(*metric);
    const size_t at = hover_ >= 0 ? s.nearest(hover_) : s.size() - 1;
    const std::string value = format_metric(*metric, s.value(at));
    const float lw = text_width(c.run, Face::small) + 6, vw = std::max(64.f, text_width(value, Face::mono_small) + 4);
    if (x + 14 + lw + vw > right) break;
    scene.rect({x, y + 6, 8, 8}, compared_ink(static_cast<int>(k)), 1, 4);
    scene.text({x + 13, y, lw, kTitle - 4}, c.run, Ink::secondary, Face::small);
    scene.text({x + 13 + lw, y, vw, kTitle - 4}, value, std::isfinite(s.value(at)) ? Ink::text : Ink::bad_text,
               Face::mono_small);
    scene.target(
        {x, y, 13 + lw + vw, kTitle - 4}, {}, Cursor::arrow,
        fmt::format("{} of {} at step {}: {}", *metric, c.run, format_grouped(s.step(at)), format_exact(s.value(at))));
    x += 13 + lw + vw + 6;
  }
}

void TrainingModel::draw_plot(Scene& scene, const Group& g, Box box) {
  const bool titled = box.h >= kRoomForTitles;
  Box area{box.x + kLeft, box.y + kTitle, box.w - kLeft - 8, box.h - kTitle - kBottom - (titled ? kAxisTitle : 0)};
  axis_.x = area.x;
  axis_.w = area.w;
  areas_.emplace_back(area, g.title);
  Range r = range(g);

  // What stands on the upright axis, over it; then the read-out of each series at the hovered (or the last) step.
  std::string title = words(g.title);
  if (const std::string unit = unit_of(g.title); !unit.empty()) title += ", " + unit;
  float x = box.x + 2, tw = text_width(title, Face::body) + 10;
  scene.text({x, box.y, tw, kTitle - 2}, title, Ink::text, Face::body);
  if (static_cast<int>(areas_.size()) - 1 == focus_) scene.rect({x, box.y + kTitle - 3, tw - 10, 2}, Ink::accent);
  std::string log_text = "log";
  Box toggle{box.right() - 36, box.y + 1, 30, 18};
  bool is_log = log(g.title);
  if (!still_) {
    scene.outline(toggle, is_log ? Ink::accent : Ink::line, 1, 3);
    scene.text(toggle, log_text, is_log ? Ink::accent : Ink::secondary, Face::small, Align::center);
    scene.target(toggle, {log_toggle, static_cast<int64_t>(areas_.size()) - 1}, Cursor::hand,
                 is_log ? "Linear scale" : "Logarithmic scale");
  }
  x += tw + 4;
  for (size_t i = 0; i < g.metrics.size(); ++i) {
    const Series& s = series_.at(g.metrics[i]);
    size_t k = hover_ >= 0 ? s.nearest(hover_) : s.size() - 1;
    std::string label =
        g.metrics.size() > 1 || g.metrics[i] != g.title ? series_name(g.metrics[i], g.title) : std::string();
    std::string value = format_metric(g.metrics[i], s.value(k));
    float lw = label.empty() ? 0 : text_width(label, Face::small) + 6,
          vw = std::max(64.f, text_width(value, Face::mono_small) + 4);
    if (x + 14 + lw + vw > toggle.x) break;
    scene.rect({x, box.y + 6, 8, 8}, series_ink(static_cast<int>(i)), 1, 2);
    if (lw > 0) scene.text({x + 13, box.y, lw, kTitle - 4}, label, Ink::secondary, Face::small);
    scene.text({x + 13 + lw, box.y, vw, kTitle - 4}, value, std::isfinite(s.value(k)) ? Ink::text : Ink::bad_text,
               Face::mono_small);
    scene.target({x, box.y, 13 + lw + vw, kTitle - 4}, {}, Cursor::arrow,
                 fmt::format("{} at step {}: {}", g.metrics[i], format_grouped(s.step(k)), format_exact(s.value(k))));
    x += 13 + lw + vw + 6;
  }
  name_compared(scene, g, x, box.y, toggle.x);
  draw_y(scene, g, r, area);
  draw_x(scene, area, titled);
  scene.target(area, {plot, static_cast<int64_t>(areas_.size()) - 1}, Cursor::cross);
  scene.clip({area.x - 4, area.y - 4, area.w + 8, area.h + 8});
  for (const std::string& m : g.metrics)
    if (auto at = baseline_.find(m); at != baseline_.end() && baseline_name_ != run_)
      draw_series(scene, at->second, r, area, Ink::baseline, false, true);
  draw_compared(scene, g, r, area);
  for (size_t i = 0; i < g.metrics.size(); ++i) {
    const Series& s = series_.at(g.metrics[i]);
    bool smooth =
        smoothing_ > 0 && s.size() > 30 &&
        (g.title == "loss" || g.title == "accuracy" || g.title == "grad_norm" || g.title == "samples_per_second");
    draw_series(scene, s, r, area, series_ink(static_cast<int>(i)), smooth, s.size() > 60);
    if (!smooth) continue;
    // The smoothed line lies over the raw one, never instead of it.
    std::vector<double> smoothed = s.smoothed(smoothing_);
    std::vector<Point> line;
    size_t a = s.lower(static_cast<int64_t>(axis_.lo)), b = s.lower(static_cast<int64_t>(axis_.hi) + 1);
    size_t stride = std::max<size_t>(1, (b - a) / static_cast<size_t>(std::max(area.w, 1.f)));
    for (size_t k = a; k < b; k += stride)
      if (std::isfinite(smoothed[k]))
        line.push_back({axis_.to_px(static_cast<double>(s.step(k))), y_of(smoothed[k], r, area)});
    scene.polyline(line, series_ink(static_cast<int>(i)), 2);
  }
  draw_changes(scene, area);
  draw_marks(scene, g, r, area);
  if (dragging_ && moved_)
    scene.rect({std::min(press_x_, drag_x_), area.y, std::fabs(drag_x_ - press_x_), area.h}, Ink::accent, 0.15f);
  scene.unclip();
}

void TrainingModel::draw(Scene& scene) {
  areas_.clear();
  if (series_.empty()) return;
  Size size = scene.size();
  auto all = grouped();
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
  int at = 0;
  if (lead) draw_plot(scene, all[at++], {kPad, kPad, w, lead_h});
  for (int i = 0; at < n && i < rows * columns; ++i, ++at) {
    float x = kPad + static_cast<float>(i % columns) * (each_w + kGap);
    float y = kPad + (lead ? lead_h + kGap : 0) + static_cast<float>(i / columns) * (each_h + kGap);
    draw_plot(scene, all[at], {x, y, each_w, each_h});
  }
}

}  // namespace tenon::views
