#include "views/training/training_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/train/recipe.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using projects::MetricRow;

void TrainingModel::set_run(const std::string& name, int64_t total_steps) {
  run_ = name;
  total_steps_ = total_steps;
  epoch_ = {};
  series_.clear();
  smoothed_.clear();
  last_step_ = 0;
  hover_ = -1;
  selected_ = -1;
  status_ = {};
  grow();
  axis_.fit();
  changed();
}

void TrainingModel::set_epoch(const projects::EpochLength& epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  if (over_ == Over::step || over_ == Over::time) return;
  grow();
  axis_.fit();
  changed();
}

void TrainingModel::set_series(std::map<std::string, Series> series) {
  series_ = std::move(series);
  smoothed_.clear();
  last_step_ = 0;
  for (const auto& [name, s] : series_)
    if (!s.empty()) last_step_ = std::max(last_step_, s.step(s.size() - 1));
  grow();
  changed();
}

void TrainingModel::add(const std::vector<MetricRow>& rows) {
  if (rows.empty()) return;
  for (const MetricRow& row : rows) {
    Series& s = series_[row.name];
    if (!s.empty() && row.point.step <= s.step(s.size() - 1)) {
      s.truncate(row.point.step - 1);  // a resumed run writes its tail again
      smoothed_.erase(row.name);
    }
    s.append(row.point.step, row.point.value, row.point.wall);
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

std::vector<TrainingModel::Change> TrainingModel::changes_of(const projects::RunInfo& run, const std::string& surgery) {
  std::vector<Change> changes;
  if (!surgery.empty()) changes.push_back({run.branch.step, surgery});
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

std::vector<TrainingModel::Mark> TrainingModel::marks_of(const std::vector<WatchHit>& hits) {
  std::vector<Mark> marks;
  for (const WatchHit& h : hits) {
    if (!h.begins || h.action == WatchAction::count) continue;
    if (marks.empty() || marks.back().step != h.step) marks.push_back({h.step, {}});
    marks.back().text += (marks.back().text.empty() ? "" : "\n") + h.text();
  }
  return marks;
}

void TrainingModel::set_marks(std::vector<Mark> marks) {
  const auto same = [](const Mark& a, const Mark& b) { return a.step == b.step && a.text == b.text; };
  if (std::equal(marks.begin(), marks.end(), marks_.begin(), marks_.end(), same)) return;
  marks_ = std::move(marks);
  changed();
}

void TrainingModel::toggle_baseline(int64_t run) {
  const bool off = baseline_.id == run;
  set_baseline(off ? Compared{} : Compared{run_, series_, epoch_, run, last_step_});
}

void TrainingModel::set_baseline(Compared run) {
  baseline_ = std::move(run);
  changed();
}

void TrainingModel::set_compared(std::vector<Compared> runs) {
  compared_ = std::move(runs);
  const bool fitted = axis_.fitted();
  grow();
  if (fitted) axis_.fit();
  changed();
}

const Series* TrainingModel::clock() const {
  const Series* most = nullptr;
  for (const auto& [name, s] : series_)
    if (!most || s.size() > most->size()) most = &s;
  return most;
}

Over TrainingModel::shown_over() const {
  return CurveScale{over_, epoch_}.knows(std::max<int64_t>(last_step_, 1)) ? over_ : Over::step;
}

int TrainingModel::left_out() const {
  int n = 0;
  for (const Compared& c : compared_)
    for (const auto& [name, s] : c.series)
      if (c.run != run_ && !s.empty() && !scale(c).knows(s.step(s.size() - 1))) {
        ++n;
        break;
      }
  return n;
}

double TrainingModel::x_of(int64_t step) const {
  const CurveScale at = scale();
  if (at.over != Over::time) return at.of(step);
  const Series* s = clock();
  return s && !s->empty() ? s->seconds(s->nearest(step)) : 0;
}

int64_t TrainingModel::step_at(double x) const {
  const CurveScale at = scale();
  if (at.over == Over::step) return std::llround(x);
  const Series* s = clock();
  return s && !s->empty() ? s->step(s->nearest_by(x, at.at(*s))) : 0;
}

/// A young run fills most of the plot: its end doubles now and then until it is the end of the training, rather than
/// creeping all the time.
void TrainingModel::grow() {
  const CurveScale at = scale();
  double end = 0;
  if (at.over == Over::time) {  // when it will be done is not known before it is
    const double last = x_of(last_step_);
    end = 1;
    while (end * 9 < last * 10) end *= 2;
    if (last_step_ >= total_steps_ && last > 0) end = last;
    axis_.min_span = end / static_cast<double>(std::max<int64_t>(last_step_, 16)) * 4;
  } else {
    int64_t steps = 64;
    while (steps * 9 < last_step_ * 10) steps *= 2;
    if (total_steps_ > 0 && steps > total_steps_ * 3 / 4) steps = total_steps_;
    steps = std::max({steps, last_step_, int64_t{1}});
    end = at.knows(steps) ? at.of(steps) : at.of(std::max<int64_t>(last_step_, 1));
    axis_.min_span = 4 * end / static_cast<double>(steps);
  }
  for (const Compared& c : compared_)
    for (const auto& [name, s] : c.series)
      if (!s.empty() && scale(c).knows(s.step(s.size() - 1))) end = std::max(end, scale(c).of(s, s.size() - 1));
  axis_.set_full(0, end);
}

void TrainingModel::set_selection(const Selection& s) {
  if (s.kind == Selection::Kind::step) selected_ = s.id;
  changed();
}
void TrainingModel::told() {
  if (on_state) on_state();
  changed();
}
void TrainingModel::set_smoothing(double weight) {
  smoothing_ = std::clamp(weight, 0.0, 0.99);
  told();
}

void TrainingModel::set_over(Over over) {
  if (over == over_) return;
  const bool fitted = axis_.fitted();
  const int64_t from = step_at(axis_.lo), to = step_at(axis_.hi);
  over_ = over;
  grow();
  axis_.fit();
  if (!fitted) axis_.show(x_of(from), x_of(to));
  told();
}

void TrainingModel::set_charts(Charts charts) {
  if (charts == charts_) return;
  charts_ = std::move(charts);
  focus_ = -1;
  told();
}
void TrainingModel::set_log(const std::string& chart, bool log) {
  charts_.set_log(chart, log);
  told();
}

nlohmann::json TrainingModel::state() const {
  nlohmann::json state{{"smoothing", smoothing_}, {"over", over_name(over_)}, {"charts", charts_.to_json()}};
  if (baseline_.id) state["baseline"] = baseline_.id;
  return state;
}

void TrainingModel::set_state(const nlohmann::json& state) {
  const auto at = [&](const char* key) { return state.is_object() ? state.value(key, nlohmann::json()) : state; };
  const nlohmann::json smoothing = at("smoothing"), over = at("over"), baseline = at("baseline");
  baseline_ = {};
  if (baseline.is_number_integer()) baseline_.id = baseline.get<int64_t>();
  smoothing_ = smoothing.is_number() ? std::clamp(smoothing.get<double>(), 0.0, 0.99) : kUsualSmoothing;
  set_charts(Charts::from_json(at("charts")));
  set_over(over.is_string() ? parse_over(over.get<std::string>()).value_or(Over::step) : Over::step);
  told();
}

void TrainingModel::show(double from, double to) {
  if (to > from)
    axis_.show(from, to);
  else
    axis_.fit();
  changed();
}

std::vector<std::string> TrainingModel::metrics() const {
  std::vector<std::string> out;
  for (const auto& [name, s] : series_) out.push_back(name);
  return out;
}

std::vector<Chart> TrainingModel::arranged() const {
  std::vector<Chart> out = charts_.arrange(metrics());
  for (Chart& c : out)  // what is measured most often first
    std::stable_sort(c.metrics.begin(), c.metrics.end(),
                     [&](const auto& a, const auto& b) { return series_.at(a).size() > series_.at(b).size(); });
  return out;
}
std::vector<std::string> TrainingModel::groups() const {
  std::vector<std::string> out;
  for (const Chart& c : arranged()) out.push_back(c.title);
  return out;
}

Table TrainingModel::table() const {
  Table t;
  t.columns = {{tr("Metric")},       {tr("Last"), true},       {tr("Lowest"), true}, {tr("Highest"), true},
               {tr("Points"), true}, {tr("Not finite"), true}, {tr("Chart")}};
  for (const Chart& c : charts_.arrange(metrics(), true))
    for (const std::string& m : c.metrics) {
      const Series& s = series_.at(m);
      auto sum = s.summary(0, s.size());
      double last = s.value(s.size() - 1);
      t.rows.push_back(
          {{{m, 0, {}, Ink::none},
            {format_metric(m, last), last, format_exact(last), Ink::none},
            Table::Cell::number(sum.min, sum.finite ? format_metric(m, sum.min) : "–"),
            Table::Cell::number(sum.max, sum.finite ? format_metric(m, sum.max) : "–"),
            Table::Cell::number(static_cast<double>(s.size()), format_grouped(static_cast<int64_t>(s.size()))),
            Table::Cell::number(static_cast<double>(sum.bad), format_grouped(sum.bad)),
            {charts_.hidden(c.title) ? tr("{} (hidden)", c.title) : c.title, 0, {}, Ink::none}},
           {}});
    }
  return t;
}

std::string TrainingModel::summary() const {
  if (run_.empty()) return tr("Training: no run is open");
  std::string text =
      tr("Training of {}: step {} of {}", run_, format_grouped(last_step_), format_grouped(total_steps_));
  const bool chosen = selected_ >= 1 && selected_ <= last_step_;
  if (chosen) text += tr("; chosen: {}", tr("step {}", format_grouped(selected_)));
  // Of the plot that the keys are on, else of the loss.
  const auto all = arranged();
  for (size_t i = 0; i < all.size(); ++i)
    if (focus_ < 0 ? all[i].title == "loss" : static_cast<int>(i) == focus_)
      for (const std::string& m : all[i].metrics)
        if (const Series& s = series_.at(m); !s.empty())
          text += ", " + m + " " + format_metric(m, s.value(chosen ? s.nearest(selected_) : s.size() - 1));
  if (marks_.size() == 1) text += tr("; a watch marked step {}", format_grouped(marks_[0].step));
  if (marks_.size() > 1)
    text += tr("; watches marked {} steps, the last one is {}", format_grouped(static_cast<int64_t>(marks_.size())),
               format_grouped(marks_.back().step));
  if (shown_over() != Over::step) text += tr("; over {}", tr(over_name(shown_over())));
  return text;
}

}  // namespace tenon::views
