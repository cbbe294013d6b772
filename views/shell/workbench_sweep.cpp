// A sweep in the window: its trials are trainings as any other. The first of those at work is the run that the window
// trains; where the plan has several side by side, the others train beside it.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "projects/sweep.h"
#include "views/shell/workbench.h"

namespace tenon::views {

using projects::RunDriver;
using projects::RunStatus;

void Workbench::begin_sweep(const std::string& name, const projects::Settings& keys, const std::vector<Attr>& attrs) {
  if (!project_ || driver_ || sweeping_ || files.has("train")) return;
  if (!builder.errors().empty())
    return fail(tr("The sweep could not begin"), tr("the model cannot be trained as it is"),
                tr("The builder shows its errors."));
  if (ask_to_train_beside(tr("The sweep has not begun yet"),
                          [this, name, keys, attrs] { begin_sweep(name, keys, attrs); }))
    return;
  save_edits();
  auto project = project_;
  files.start(
      "train", tr("Begin the sweep"),
      [project, name, keys, attrs](const Jobs::Report&, const std::atomic<bool>&) {
        return projects::begin_sweep(*project, name, keys, attrs);
      },
      [this, project](const projects::SweepInfo& sweep) {
        if (project != project_) return;
        log(tr("Sweep %1 begins").arg(QString::fromStdString(sweep.name)));
        contents_.sweeps.push_back(sweep);
        sweeping_ = sweep.id;
        sweep_begins_ = true;
        round_is_full_ = false;
        train_next_trial();
        emit project_changed();
      },
      [this](const QString& message, const QString& hint) {
        fail(tr("The sweep could not begin"), message, hint);
        emit state_changed();
      });
  emit state_changed();
}

void Workbench::resume_sweep(int64_t sweep) {
  if (!project_ || driver_ || sweeping_ || files.has("train") || !contents_.sweep(sweep)) return;
  if (ask_to_train_beside(tr("The sweep does not go on yet"), [this, sweep] { resume_sweep(sweep); })) return;
  log(tr("Sweep %1 goes on").arg(QString::fromStdString(contents_.sweep(sweep)->name)));
  sweeping_ = sweep;
  sweep_begins_ = true;
  round_is_full_ = false;
  train_next_trial();
}

void Workbench::stop_sweep() {
  if (!sweeping_) return;
  stop();
  emit state_changed();
}

void Workbench::rename_sweep(int64_t sweep, const std::string& name) {
  const auto* s = contents_.sweep(sweep);
  if (!s || s->name == name) return;
  write(
      tr("Rename %1").arg(QString::fromStdString(s->name)),
      [sweep, name](projects::Project& p) { p.rename_sweep(sweep, name); }, [] {});
}

void Workbench::delete_sweep(int64_t sweep) {
  const auto* s = contents_.sweep(sweep);
  if (!s || sweeping_ == sweep) return;
  const QString name = QString::fromStdString(s->name);
  write(
      tr("Delete %1").arg(name), [sweep](projects::Project& p) { p.delete_sweep(sweep); },
      [this, sweep, name] {
        tell_deleted(
            tr("%1 was deleted").arg(name),
            tr("Its runs stay among the runs; Run › Bring back what was deleted… finds it also later."),
            [this, sweep] { restore_sweep(sweep); }, [this, sweep] { return !contents_.sweep(sweep); });
      });
}

void Workbench::restore_sweep(int64_t sweep) {
  write(
      tr("Bring a sweep back"), [sweep](projects::Project& p) { p.undelete_sweep(sweep); }, [] {});
}

/// Chosen on the file thread, behind the end of the trial before it.
void Workbench::train_next_trial() {
  asked_after_ = ended_trials_;
  std::set<int64_t> runs;
  for (const RunStatus& s : statuses())
    if (projects::is_active(s.state)) runs.insert(s.run);
  start_driver(
      tr("Start the next trial"),
      [project = project_, sweep = sweeping_, runs](const Jobs::Report&) -> std::shared_ptr<RunDriver> {
        const std::set<int64_t> at_work = projects::trials_of(*project, sweep, runs);
        while (const auto trial = projects::next_trial(*project, sweep, at_work))
          if (auto driver = projects::start_trial(project, *trial)) return driver;
        return nullptr;
      },
      false);
}

bool Workbench::room_for_another() const {
  const projects::SweepInfo* sweep = contents_.sweep(sweeping_);
  return sweep && !stopping_ && !round_is_full_ && status_.state == RunStatus::State::running && !files.has("train") &&
         projects::room_for_another(projects::plan_of(*sweep), statuses());
}

void Workbench::train_beside(std::shared_ptr<RunDriver> driver) {
  tell_begins(*driver);
  const RunStatus status = driver->status();
  beside_.push_back({std::move(driver), status, {}});
  refresh_project();
  emit status_changed();
  emit state_changed();
}

/// Whether there is anything new.
bool Workbench::follow_beside() {
  bool news = false;
  for (size_t i = 0; i < beside_.size();) {
    Trained& t = beside_[i];
    const RunStatus before = std::exchange(t.status, t.driver->status());
    contents_.follow(t.status);
    std::vector<projects::MetricRow> rows;
    t.driver->drain(rows);
    t.rows.insert(t.rows.end(), rows.begin(), rows.end());
    follow_events(*t.driver, t.status, t.events);
    news = news || !rows.empty() || t.status.step != before.step || t.status.state != before.state;
    if (t.status.run == shown_run_) {
      training_model.add(rows);
      training_model.set_status(t.status);
    }
    if (projects::is_active(t.status.state)) {
      ++i;
      continue;
    }
    const Trained ended = std::move(t);
    beside_.erase(beside_.begin() + static_cast<std::ptrdiff_t>(i));
    round_is_full_ = false;
    ++ended_trials_;
    tell_ended(ended.status);
    let_go(ended.driver, ended.status);
  }
  return news;
}

/// Stopped by hand it waits to be resumed.
void Workbench::trial_ended(RunStatus::State how) {
  if (how == RunStatus::State::stopped) return stop();
  round_is_full_ = false;
  ++ended_trials_;
  if (!files.has("train")) train_next_trial();
}

/// The sweep had no trial to begin beside those that were at work when it was asked.
void Workbench::no_further_trial() {
  if (asked_after_ != ended_trials_) return train_next_trial();
  round_is_full_ = true;
  if (driver_) return;
  if (const auto* sweep = contents_.sweep(sweeping_))
    log(tr("Sweep %1 is finished").arg(QString::fromStdString(sweep->name)));
  sweeping_ = 0;
  refresh_project();
  emit state_changed();
}

}  // namespace tenon::views
