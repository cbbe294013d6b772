#include "views/training/training_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/train/recipe.h"
#include "views/shared/format.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using projects::MetricRow;

namespace {
/// The quantity a metric measures: the last part of its name, without a split's prefix ("eval/loss", "test_loss" ->
/// "loss").
std::string quantity(const std::string& metric) {
  std::string q = metric.substr(metric.find_last_of("/.") == std::string::npos ? 0 : metric.find_last_of("/.") + 1);
  for (const char* split : {"train_", "test_", "eval_", "val_", "validation_"})
    if (q.starts_with(split)) return q.substr(std::string(split).size());
  return q;
}
int importance(const std::string& q) {
  static const std::vector<std::string> order{
      "loss",          "accuracy",           "lr",           "learning_rate", "grad_norm",
      "gradient_norm", "samples_per_second", "memory_bytes", "live_bytes",    "peak_bytes"};
  for (size_t i = 0; i < order.size(); ++i)
    if (q == order[i]) return static_cast<int>(i);
  return 100;
}
}  // namespace

void TrainingModel::set_run(const std::string& name, int64_t total_steps) {
  run_ = name;
  total_steps_ = total_steps;
  series_.clear();
  last_step_ = 0;
  hover_ = -1;
  selected_ = -1;
  status_ = {};
  axis_.min_span = 4;
  grow();
  axis_.fit();
  changed();
}

void TrainingModel::add(const std::vector<MetricRow>& rows) {
  if (rows.empty()) return;
  for (const MetricRow& row : rows) {
    Series& s = series_[row.name];
    if (!s.empty() && row.point.step <= s.step(s.size() - 1))
      s.truncate(row.point.step - 1);  // a resumed run writes its tail again
    s.append(row.point.step, row.point.value);
    last_step_ = std::max(last_step_, row.point.step);
  }
  grow();
  changed();
}

void TrainingModel::set_status(const projects::RunStatus& s) {
  status_ = s;
  if (s.total_steps > 0 && s.total_steps != total_steps_) {
    total_steps_ = s.total_steps;
    grow();
  }
  changed();
}

std::vector<TrainingModel::Change> TrainingModel::changes_of(const projects::RunInfo& run) {
  std::vector<Change> changes;
  if (run.changes.empty()) return changes;
  Recipe before = Recipe::from_json(run.recipe);
  for (const projects::RecipeChange& c : run.changes) {
    Recipe after = Recipe::from_json(c.recipe);
    changes.push_back({c.step, difference_text(differences(before, after))});
    before = std::move(after);
  }
  return changes;
}

void TrainingModel::set_changes(std::vector<Change> changes) {
  const auto same = [](const Change& a, const Change& b) { return a.step == b.step && a.text == b.text; };
  if (std::equal(changes.begin(), changes.end(), changes_.begin(), changes_.end(), same)) return;
  changes_ = std::move(changes);
  changed();
}

void TrainingModel::toggle_baseline() {
  bool off = baseline_name_ == run_;
  baseline_name_ = off ? std::string() : run_;
  baseline_ = off ? std::map<std::string, Series>() : series_;
  changed();
}

void TrainingModel::set_compared(std::vector<Compared> runs) {
  compared_ = std::move(runs);
  const bool fitted = axis_.fitted();
  grow();
  if (fitted) axis_.fit();
  changed();
}

/// A young run fills most of the plot: its end doubles now and then until it is the end of the training, rather than
/// creeping all the time.
void TrainingModel::grow() {
  int64_t end = 64;
  while (end * 9 < last_step_ * 10) end *= 2;
  if (total_steps_ > 0 && end > total_steps_ * 3 / 4) end = total_steps_;
  for (const Compared& c : compared_)
    for (const auto& [name, s] : c.series)
      if (!s.empty()) end = std::max(end, s.step(s.size() - 1));
  axis_.set_full(0, static_cast<double>(std::max({end, last_step_, int64_t{1}})));
}

void TrainingModel::set_selection(const Selection& s) {
  if (s.kind == Selection::Kind::step) selected_ = s.id;
  changed();
}
void TrainingModel::set_smoothing(double weight) {
  smoothing_ = std::clamp(weight, 0.0, 0.99);
  changed();
}
void TrainingModel::set_log(const std::string& group, bool log) {
  log_[group] = log;
  changed();
}
bool TrainingModel::log(const std::string& group) const {
  auto at = log_.find(group);
  return at != log_.end() && at->second;
}
void TrainingModel::show_steps(double from, double to) {
  if (to > from)
    axis_.show(from, to);
  else
    axis_.fit();
  changed();
}
void TrainingModel::fit() { show_steps(0, 0); }

std::vector<TrainingModel::Group> TrainingModel::grouped() const {
  std::vector<Group> out;
  for (const auto& [name, s] : series_) {
    std::string q = quantity(name);
    auto at = std::find_if(out.begin(), out.end(), [&](const Group& g) { return g.title == q; });
    if (at == out.end()) {
      out.push_back({q, {}});
      at = out.end() - 1;
    }
    at->metrics.push_back(name);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Group& a, const Group& b) { return importance(a.title) < importance(b.title); });
  for (Group& g : out)  // what is measured most often first
    std::stable_sort(g.metrics.begin(), g.metrics.end(),
                     [&](const auto& a, const auto& b) { return series_.at(a).size() > series_.at(b).size(); });
  return out;
}
std::vector<std::string> TrainingModel::groups() const {
  std::vector<std::string> out;
  for (const Group& g : grouped()) out.push_back(g.title);
  return out;
}

TrainingModel::Range TrainingModel::range(const Group& g) const {
  Range r{1e300, -1e300, log(g.title)};
  auto take = [&](const Series& s) {
    if (s.empty()) return;
    auto sum = s.summary(s.lower(static_cast<int64_t>(std::floor(axis_.lo))),
                         s.lower(static_cast<int64_t>(std::ceil(axis_.hi)) + 1));
    if (!sum.finite) return;
    r.lo = std::min(r.lo, sum.min);
    r.hi = std::max(r.hi, sum.max);
  };
  for (const auto& m : g.metrics) take(series_.at(m));
  for (const auto& m : g.metrics)
    if (auto at = baseline_.find(m); at != baseline_.end()) take(at->second);
  for (const Compared& c : compared_)
    for (const auto& m : g.metrics)
      if (auto at = c.series.find(m); at != c.series.end()) take(at->second);
  if (r.hi < r.lo) r = {0, 1, false};
  if (r.log && r.hi <= 0) r.log = false;
  if (r.log) {
    double smallest = r.hi;  // of the positive values; the rest sits on the axis
    for (const auto& m : g.metrics)
      for (size_t i = 0; i < series_.at(m).size(); ++i)
        if (double v = series_.at(m).value(i); v > 0 && std::isfinite(v)) smallest = std::min(smallest, v);
    r.lo = std::log10(smallest);
    r.hi = std::log10(r.hi);
    double pad = std::max((r.hi - r.lo) * 0.06, 0.02);
    r.lo -= pad;
    r.hi += pad;
    return r;
  }
  if (g.title == "accuracy" && r.hi <= 1.0) {  // zero is not where accuracy is read; one is
    double pad = std::max((r.hi - r.lo) * 0.08, 0.005);
    return {std::max(0.0, r.lo - pad), std::min(1.0, r.hi + pad), false};
  }
  if (r.lo > 0) r.lo = 0;
  double pad = std::max((r.hi - r.lo) * 0.06, 1e-12);
  r.hi += pad;
  if (r.lo < 0) r.lo -= pad;
  return r;
}

bool TrainingModel::pointer(const PointerEvent& e) {
  auto over = [&](float x, float y) {
    return std::find_if(areas_.begin(), areas_.end(), [&](const auto& a) { return a.first.contains(x, y); });
  };
  auto at = over(e.x, e.y);
  if (e.type == PointerEvent::Type::leave) {
    bool was = hover_ >= 0;
    hover_ = -1;
    return was;
  }
  if (at != areas_.end()) {
    axis_.x = at->first.x;
    axis_.w = at->first.w;
  }
  auto step_at = [&](float x) {
    return std::clamp<int64_t>(std::llround(axis_.to_value(x)), 0, std::max<int64_t>(last_step_, 0));
  };
  switch (e.type) {
    case PointerEvent::Type::press: {
      if (e.button != Button::left) return false;
      Hit hit = last_.hit_at(e.x, e.y);
      if (hit.kind == log_toggle) {
        auto names = groups();
        if (hit.id < static_cast<int64_t>(names.size())) set_log(names[hit.id], !log(names[hit.id]));
        return true;
      }
      dragging_ = at != areas_.end();
      moved_ = false;
      press_x_ = drag_x_ = e.x;
      return dragging_;
    }
    case PointerEvent::Type::move: {
      int64_t before = hover_;
      hover_ = at != areas_.end() ? step_at(e.x) : -1;
      if (dragging_) {
        drag_x_ = e.x;
        if (std::fabs(e.x - press_x_) > 5) moved_ = true;
        return true;
      }
      return hover_ != before;
    }
    case PointerEvent::Type::release: {
      if (!dragging_) return false;
      dragging_ = false;
      if (moved_)
        show_steps(axis_.to_value(std::min(press_x_, e.x)), axis_.to_value(std::max(press_x_, e.x)));
      else if (last_step_ > 0)
        select(Selection::step(std::max<int64_t>(step_at(e.x), 1), "training"));
      return true;
    }
    case PointerEvent::Type::double_click:
      fit();
      return true;
    default:
      return false;
  }
}

bool TrainingModel::wheel(const WheelEvent& e) {
  for (const auto& [area, name] : areas_)
    if (area.contains(e.x, e.y)) {
      axis_.x = area.x;
      axis_.w = area.w;
      return axis_.wheel(e);
    }
  return false;
}

bool TrainingModel::key(const KeyEvent& e) {
  if (axis_.key(e)) return true;
  const auto plots = static_cast<int>(grouped().size());
  if ((e.key == "Up" || e.key == "Down") && plots > 0) {
    focus_ = std::clamp(focus_ + (e.key == "Down" ? 1 : -1), 0, plots - 1);
    return true;
  }
  if (e.key == "L" && focus_ >= 0 && focus_ < plots) {
    const std::string group = groups()[static_cast<size_t>(focus_)];
    set_log(group, !log(group));
    return true;
  }
  if ((e.key == "Return" || e.key == "Enter" || e.key == "Home" || e.key == "End") && last_step_ > 0) {
    const bool here = selected_ >= 1 && (e.key == "Return" || e.key == "Enter");
    select(Selection::step(e.key == "Home" ? 1 : here ? selected_ : last_step_, "training"));
    return true;
  }
  if ((e.key == "Left" || e.key == "Right") && last_step_ > 0) {
    int64_t from = selected_ < 0 ? last_step_ : selected_;
    select(Selection::step(
        std::clamp<int64_t>(from + (e.key == "Right" ? 1 : -1) * (e.mods.shift ? 10 : 1), 1, last_step_), "training"));
    return true;
  }
  return false;
}

Table TrainingModel::table() const {
  Table t;
  t.columns = {{"Metric"}, {"Last", true}, {"Lowest", true}, {"Highest", true}, {"Points", true}, {"Not finite", true}};
  for (const Group& g : grouped())
    for (const std::string& m : g.metrics) {
      const Series& s = series_.at(m);
      auto sum = s.summary(0, s.size());
      double last = s.value(s.size() - 1);
      t.rows.push_back(
          {{{m, 0, {}, Ink::none},
            {format_metric(m, last), last, format_exact(last), Ink::none},
            Table::Cell::number(sum.min, sum.finite ? format_metric(m, sum.min) : "–"),
            Table::Cell::number(sum.max, sum.finite ? format_metric(m, sum.max) : "–"),
            Table::Cell::number(static_cast<double>(s.size()), format_grouped(static_cast<int64_t>(s.size()))),
            Table::Cell::number(static_cast<double>(sum.bad), format_grouped(sum.bad))},
           {}});
    }
  return t;
}

std::string TrainingModel::summary() const {
  if (run_.empty()) return "Training: no run is open";
  std::string text =
      fmt::format("Training of {}: step {} of {}", run_, format_grouped(last_step_), format_grouped(total_steps_));
  const bool chosen = selected_ >= 1 && selected_ <= last_step_;
  if (chosen) text += "; chosen: step " + format_grouped(selected_);
  // Of the plot that the keys are on, else of the loss.
  const auto all = grouped();
  for (size_t i = 0; i < all.size(); ++i)
    if (focus_ < 0 ? all[i].title == "loss" : static_cast<int>(i) == focus_)
      for (const std::string& m : all[i].metrics)
        if (const Series& s = series_.at(m); !s.empty())
          text += ", " + m + " " + format_metric(m, s.value(chosen ? s.nearest(selected_) : s.size() - 1));
  return text;
}

float TrainingModel::y_of(double v, const Range& r, const Box& area) const {
  double t = r.log ? (v > 0 ? std::log10(v) : r.lo) : v;
  return area.bottom() - static_cast<float>(std::clamp((t - r.lo) / (r.hi - r.lo), -0.5, 1.5)) * area.h;
}

void TrainingModel::draw_series(Scene& scene, const Series& s, const Range& r, Box area, Ink ink, bool quiet,
                                bool dense) {
  int columns = static_cast<int>(area.w);
  double per = axis_.span() / columns;
  auto x_of = [&](double step) { return axis_.to_px(step); };
  size_t a = s.lower(static_cast<int64_t>(std::floor(axis_.lo))),
         b = s.lower(static_cast<int64_t>(std::ceil(axis_.hi)) + 1);
  if (a > 0) --a;
  if (b < s.size()) ++b;
  float alpha = quiet ? 0.35f : 1, width = quiet ? 1.f : 1.6f;
  std::vector<Point> line;
  if (b - a <= static_cast<size_t>(columns) * 2) {
    for (size_t i = a; i < b; ++i) {
      if (!std::isfinite(s.value(i))) {  // a gap where there is no number, and a lone point between gaps stays a dot
        if (line.size() == 1) scene.rect({line[0].x - 2, line[0].y - 2, 4, 4}, ink, alpha, 2);
        scene.polyline(line, ink, width, alpha);
        line.clear();
        continue;
      }
      line.push_back({x_of(static_cast<double>(s.step(i))), y_of(s.value(i), r, area)});
      if (!dense && static_cast<double>(columns) / axis_.span() * static_cast<double>(s.step(b - 1) - s.step(a)) >
                        8.0 * static_cast<double>(b - a))
        scene.rect({line.back().x - 2.5f, line.back().y - 2.5f, 5, 5}, ink, alpha, 2.5f);
    }
    if (line.size() == 1) scene.rect({line[0].x - 2, line[0].y - 2, 4, 4}, ink, alpha, 2);
    scene.polyline(line, ink, width, alpha);
    return;
  }
  // More points than pixels: lowest and highest of each pixel column, so that no spike is lost.
  for (const auto& c : s.columns(axis_.lo, axis_.hi + per, columns + 1)) {
    if (!c.finite) continue;
    float x = x_of(static_cast<double>(c.first_step + c.last_step) / 2);
    line.push_back({x, y_of(c.first, r, area)});
    if (c.max != c.first) line.push_back({x, y_of(c.max, r, area)});
    if (c.min != c.max) line.push_back({x, y_of(c.min, r, area)});
    line.push_back({x, y_of(c.last, r, area)});
  }
  scene.polyline(line, ink, 1, alpha);
}

}  // namespace tenon::views
