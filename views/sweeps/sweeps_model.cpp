#include "views/sweeps/sweeps_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/number.h"
#include "projects/sweep.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"

namespace tenon::views {

using projects::RunInfo;
using projects::SweepInfo;
using projects::TrialInfo;

void SweepsModel::set_sweep(const SweepInfo* sweep, const std::vector<RunInfo>& runs) {
  if (!sweep || id() != sweep->id) importance_ = {};
  sweep_.reset();
  plan_.reset();
  fault_.clear();
  runs_.clear();
  if (sweep) {
    sweep_ = *sweep;
    try {
      plan_ = projects::plan_of(*sweep);
    } catch (const std::exception& e) {  // of a plug-in that is not here
      fault_ = e.what();
    }
    for (const TrialInfo& t : sweep->trials) runs_[t.run];
    for (const RunInfo& r : runs)
      if (const auto at = runs_.find(r.id); at != runs_.end()) at->second = {r.name, r.status, r.steps, r.total_steps};
    std::erase_if(runs_, [](const auto& r) { return r.second.name.empty(); });  // not begun, or deleted
    range_ = range();
    const TrialInfo* found = plan_ ? projects::best_trial(*sweep_, *plan_) : nullptr;
    best_ = found ? found->number : 0;
  }
  changed();
}

void SweepsModel::set_statuses(std::vector<projects::RunStatus> statuses) {
  statuses_ = std::move(statuses);
  changed();
}

void SweepsModel::set_importance(projects::Importance importance) {
  importance_ = std::move(importance);
  changed();
}

void SweepsModel::set_selection(const Selection& s) {
  selected_ = s.kind == Selection::Kind::run ? s.id : 0;
  changed();
}

bool SweepsModel::is_over() const { return sweep_ && plan_ && projects::is_over(*sweep_, *plan_); }

const SweepsModel::Run* SweepsModel::run_of(const TrialInfo& t) const {
  const auto at = runs_.find(t.run);
  return at == runs_.end() ? nullptr : &at->second;
}

const projects::RunStatus* SweepsModel::live(const TrialInfo& t) const {
  const auto at = std::find_if(statuses_.begin(), statuses_.end(),
                               [&](const auto& s) { return t.run && s.run == t.run && projects::is_active(s.state); });
  return at == statuses_.end() ? nullptr : &*at;
}

const TrialInfo* SweepsModel::best() const { return best_ ? &sweep_->trials[static_cast<size_t>(best_) - 1] : nullptr; }

std::string SweepsModel::state_of(const TrialInfo& t) const {
  if (t.state != "open") return t.state;
  if (const auto* now = live(t)) return projects::status_word(now->state);
  const Run* r = run_of(t);
  return r ? r->status == "running" || r->status == "paused" ? "waits" : r->status : "waits";
}

std::string SweepsModel::said() const {
  if (!sweep_) return tr("No sweep");
  if (!plan_) return sweep_->name + ": " + fault_;
  std::string text = tr("{} of {} trials · {}", sweep_->trials.size(), plan_->runs, projects::name(plan_->method));
  if (const TrialInfo* first = best())
    text += " · " +
            (plan_->direction > 0 ? tr("highest {} {}", plan_->metric, format_metric(plan_->metric, first->value))
                                  : tr("lowest {} {}", plan_->metric, format_metric(plan_->metric, first->value))) +
            " (" + tr("trial {}", first->number) + ")";
  return text;
}

std::string SweepsModel::summary() const {
  std::string text = said();
  if (!sweep_ || !plan_) return text;
  for (const TrialInfo& t : sweep_->trials) {
    if (!t.run || t.run != selected_) continue;
    text += "; " + tr("trial {}", t.number) + ", " + state_word(state_of(t));
    for (const auto& [key, value] : projects::settings_of(t)) text += ", " + key + " = " + value;
    if (std::isfinite(t.value)) text += ": " + format_metric(plan_->metric, t.value);
  }
  return text;
}

Table SweepsModel::table() const {
  Table t;
  t.wide = true;
  if (!plan_) return t;
  t.columns = {{tr("Trial"), true}, {tr("Run")}, {tr("State")}, {tr("Steps"), true}};
  for (const auto& k : plan_->space.keys()) {
    const bool number = k.kind != projects::SearchKey::Kind::values || k.numbers;
    t.columns.push_back({k.key, number, k.text()});
  }
  t.columns.push_back({plan_->metric, true, tr("the best value of the run")});
  t.columns.push_back({tr("Why it ended")});
  for (const TrialInfo& trial : sweep_->trials) {
    const Run* run = run_of(trial);
    const std::string state = state_of(trial);
    Table::Row row;
    if (run) row.selection = Selection::run(trial.run, "sweeps");
    const Ink ink = ink_of_state(state);
    const auto* now = live(trial);
    const int64_t steps = now ? now->step : run ? run->steps : 0;
    row.cells = {Table::Cell::number(static_cast<double>(trial.number), std::to_string(trial.number)),
                 {run ? run->name : "–", 0, trial.number == best_ ? tr("the best so far") : std::string(),
                  trial.number == best_ ? Ink::good : Ink::none},
                 {state_word(state), 0, trial.error, ink},
                 run ? Table::Cell::number(static_cast<double>(steps),
                                           format_grouped(steps) + " / " + format_grouped(run->total))
                     : Table::Cell{"–", -1, {}, Ink::none}};
    const auto settings = projects::settings_of(trial);
    for (const auto& k : plan_->space.keys())
      for (const auto& [key, value] : settings)
        if (key == k.key) row.cells.push_back({value, number_of(value).value_or(0), key + " = " + value, Ink::none});
    if (std::isfinite(trial.value)) {
      row.cells.push_back(Table::Cell::number(trial.value, format_metric(plan_->metric, trial.value)));
      row.cells.back().tip = format_exact(trial.value);
    } else {
      row.cells.push_back({"–", plan_->direction > 0 ? -1e308 : 1e308, {}, Ink::none});
    }
    row.cells.push_back({trial.error.substr(0, trial.error.find('\n')), 0, trial.error, Ink::none});
    t.rows.push_back(std::move(row));
  }
  return t;
}

void SweepsModel::select_trial(int64_t number) {
  if (!sweep_) return;
  for (const TrialInfo& t : sweep_->trials)
    if (t.number == number && run_of(t)) select(Selection::run(t.run, "sweeps"));
}

bool SweepsModel::pointer(const PointerEvent& e) {
  if (e.type != PointerEvent::Type::press || e.button != Button::left) return false;
  const Hit hit = last().hit_at(e.x, e.y);
  if (hit.kind != trial) return false;
  select_trial(hit.id);
  return true;
}

/// The arrows go from trial to trial.
bool SweepsModel::key(const KeyEvent& e) {
  if (!sweep_ || (e.key != "Left" && e.key != "Right")) return false;
  const auto& all = sweep_->trials;
  const auto at = std::find_if(all.begin(), all.end(), [&](const TrialInfo& t) { return t.run && t.run == selected_; });
  const int64_t step = e.key == "Left" ? -1 : 1, count = static_cast<int64_t>(all.size());
  int64_t i = at == all.end() ? (step > 0 ? -1 : count) : at - all.begin();
  for (i += step; i >= 0 && i < count; i += step)
    if (run_of(all[static_cast<size_t>(i)])) {
      select_trial(all[static_cast<size_t>(i)].number);
      return true;
    }
  return false;
}

}  // namespace tenon::views
