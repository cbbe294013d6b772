// The run that trains: begun, gone on with, looked at ten times a second, let go of.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "views/shared/add_missing.h"
#include "views/shared/format.h"
#include "views/shell/workbench.h"

namespace tenon::views {

using projects::MetricRow;
using projects::Project;
using projects::RunDriver;
using projects::RunStatus;
using projects::TrainOptions;

/// After a crash: what of the last run was kept, and the way on. One before the last was left for another.
void Workbench::tell_interrupted() {
  const auto& contents = contents_;
  if (contents.runs.empty() || contents.runs.back().status != "interrupted") return;
  const projects::RunInfo& r = contents.runs.back();
  auto text = [](int64_t n) { return QString::fromStdString(format_grouped(n)); };
  const auto& kept = contents.checkpoints.back();
  QString message;
  if (kept.empty())
    message = tr("the program ended while it trained. Kept: every metric up to step %1, and the seed it started from. "
                 "Resume begins it anew.")
                  .arg(text(r.steps));
  else {
    message = kept.size() == 1
                  ? tr("the program ended while it trained. Kept: every metric up to step %1 and the checkpoint of "
                       "step %2.")
                        .arg(text(r.steps), text(kept.back().step))
                  : tr("the program ended while it trained. Kept: every metric up to step %1 and %2 checkpoints, the "
                       "last of step %3.")
                        .arg(text(r.steps), text(static_cast<int64_t>(kept.size())), text(kept.back().step));
    message += " ";
    if (kept.back().step >= r.total_steps)
      message += tr("Resume brings it to its end.");
    else if (kept.back().step >= r.steps)
      message += tr("Resume goes on from there.");
    else if (kept.back().step + 1 == r.steps)
      message += tr("Resume trains step %1 again, bit for bit, and goes on.").arg(text(r.steps));
    else
      message += tr("Resume trains steps %1 to %2 again, bit for bit, and goes on.")
                     .arg(text(kept.back().step + 1), text(r.steps));
  }
  const QString title = tr("%1 was interrupted at step %2").arg(QString::fromStdString(r.name), text(r.steps));
  log(title + ": " + message);
  if (!can_go_on(r.id)) return;
  // Another project may have a run of the same number.
  std::weak_ptr<Project> project = project_;
  auto holds = [this, id = r.id, project] { return project.lock() == project_ && can_go_on(id); };
  emit notice({title, message, tr("Resume"),
               [this, id = r.id, holds] {
                 if (holds()) go_on(id);
               },
               holds});
}

void Workbench::train(const TrainOptions& options) {
  if (driver_ && !sweeping_ && !options.from.empty() && options.from == status_.name) {
    next_ = options;  // it begins once the run that it is a branch of has stopped
    return stop();
  }
  if (driver_ && status_.state == RunStatus::State::paused) return resume();
  if (!project_ || driver_ || ask_to_train_beside(tr("Not started yet"), [this, options] { train(options); })) return;
  start_driver(options, false);
}

bool Workbench::model_fits() const { return builder.errors().empty(); }

bool Workbench::can_go_on(int64_t run) const {
  const auto* r = contents_.run(run);
  return r && !driver_ && project_ && !project_->read_only() && !files.has("train") &&
         (r->status == "interrupted" || (r->id == status_.run && (r->status == "running" || r->status == "paused")) ||
          (r->steps < r->total_steps && (r->status == "stopped" || r->status == "failed" || r->status == "pruned")));
}

void Workbench::go_on(int64_t run) {
  if (!can_go_on(run) || ask_to_train_beside(tr("Not resumed yet"), [this, run] { go_on(run); })) return;
  // What a sweep has not judged yet goes on as its trial.
  for (const projects::SweepInfo& s : contents_.sweeps)
    for (const projects::TrialInfo& t : s.trials)
      if (t.run == run && t.state == "open") return resume_sweep(s.id);
  start_driver({.resume = contents_.run(run)->name}, false);
}

/// Jobs of one queue run in order: a run that is started next has the model that is seen.
void Workbench::save_edits() {
  if (!save_timer_.isActive()) return;
  save_timer_.stop();
  save_model();
}

void Workbench::start_driver(TrainOptions options, bool then_step) {
  if (!project_ || driver_ || files.has("train")) return;
  save_edits();
  options.start_paused = options.start_paused || then_step;
  start_driver(
      options.from.empty()
          ? tr("Start training")
          : tr("Go back to step %1 of %2")
                .arg(QString::fromStdString(format_grouped(options.from_step)), QString::fromStdString(options.from)),
      [project = project_, options](const Jobs::Report& report) mutable {
        options.replaying = report;
        return std::shared_ptr<RunDriver>(RunDriver::start(project, options));
      },
      then_step);
}

void Workbench::start_driver(const QString& title, std::function<std::shared_ptr<RunDriver>(const Jobs::Report&)> make,
                             bool then_step) {
  auto project = project_;
  files.start(
      "train", title,
      [make = std::move(make)](const Jobs::Report& report, const std::atomic<bool>&) { return make(report); },
      [this, then_step, project, sweep = sweeping_](std::shared_ptr<RunDriver> driver) {
        if (!driver) {
          if (project == project_ && sweep == sweeping_) no_further_trial();
          return;
        }
        // Another project was opened meanwhile, or the sweep was stopped: this run ends with a checkpoint.
        if (project != project_ || sweep != sweeping_) {
          files.start(
              "left run", tr("Finish the run"),
              [driver](const Jobs::Report&, const std::atomic<bool>&) mutable { driver.reset(); },
              [this] { refresh_project(); }, {}, true);
          return;
        }
        if (driver_) return train_beside(std::move(driver));
        adopt(std::move(driver));
        if (then_step) driver_->step_once();
      },
      [this, project](const QString& message, const QString& hint) {
        if (project == project_) stop();
        fail(tr("Training could not start"), message, hint);
        emit state_changed();
      });
  emit state_changed();
}

void Workbench::tell_begins(const RunDriver& driver) {
  const RunStatus s = driver.status();
  trained_here_.insert(s.run);
  log(driver.remarks());
  log(s.step > 0 ? tr("Training %1 from step %2")
                       .arg(QString::fromStdString(s.name), QString::fromStdString(format_grouped(s.step)))
                 : tr("Training %1").arg(QString::fromStdString(s.name)));
}

void Workbench::tell_ended(const RunStatus& s) {
  const QString name = QString::fromStdString(s.name);
  const QString step = QString::fromStdString(format_grouped(s.step)), why = QString::fromStdString(s.error);
  if (s.state == RunStatus::State::failed && !sweeping_)
    fail(tr("%1 failed").arg(name), why, {});
  else if (s.state == RunStatus::State::finished && !s.error.empty())
    log(tr("%1 stopped early at step %2: %3").arg(name, step, why));
  else if (!s.error.empty())  // of a sweep, whose other trials go on
    log(name + ": " + why, s.state == RunStatus::State::failed);
  else
    log((s.state == RunStatus::State::finished  ? tr("%1 finished at step %2")
         : s.state == RunStatus::State::stopped ? tr("%1 stopped at step %2")
         : s.state == RunStatus::State::failed  ? tr("%1 failed at step %2")
                                                : tr("%1 pruned at step %2"))
            .arg(name, step));
  for (const std::string& line : s.planned) log(name + ": " + QString::fromStdString(line));
}

void Workbench::adopt(std::shared_ptr<RunDriver> driver) {
  stopping_ = false;
  tell_begins(*driver);
  lead({driver, driver->status(), {}});
}

/// The run that the window trains from now on.
void Workbench::lead(Trained run) {
  driver_ = std::move(run.driver);
  // While a sweep goes from trial to trial one may look at an earlier one.
  const bool follows = !sweeping_ || sweep_begins_ || shown_run_ == status_.run || !shown();
  sweep_begins_ = false;
  status_ = std::move(run.status);
  status_.paused_by.clear();  // it may be held by a watch already: the first tick tells that
  live_rows_ = std::move(run.rows);
  if (status_.parent && std::find(picked_.begin(), picked_.end(), status_.parent) == picked_.end()) {
    std::vector<int64_t> beside = picked_;  // a branch is seen over its parent
    beside.push_back(status_.parent);
    pick(std::move(beside));
  }
  live_hits_.clear();
  live_events_ = std::move(run.events);
  if (follows) {
    shown_run_ = status_.run;
    show_step({});
    show_watch_hits({});
    show_events({});
    training_model.set_run(status_.name, status_.total_steps);
  }
  tick_.start();
  refresh_project();
  if (follows) load_metrics();
  emit run_changed();
  emit status_changed();
  emit state_changed();
}

void Workbench::tick() {
  if (!driver_) return;
  RunStatus before = status_;
  status_ = driver_->status();
  contents_.follow(status_);
  std::vector<MetricRow> rows;
  driver_->drain(rows);
  live_rows_.insert(live_rows_.end(), rows.begin(), rows.end());
  follow_watches(before);
  follow_events(*driver_, status_, live_events_);
  if (status_.run == shown_run_) {
    training_model.add(rows);
    if (status_.step != before.step || status_.state != before.state) training_model.set_status(status_);
  }
  tell_blocked(before);
  tell_changes(before);
  if (status_.nan && !before.nan)
    log(tr("%1 stopped being finite at step %2")
            .arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.nan_step))),
        true);
  const bool news_beside = follow_beside();
  if (status_.state != before.state || status_.step != before.step || !rows.empty() || news_beside)
    emit status_changed();
  if (status_.state != before.state || status_.blocked != before.blocked) emit state_changed();
  if (status_.epoch != before.epoch) refresh_project();  // checkpoints come with epochs
  if (projects::is_active(status_.state)) {
    if (sweeping_ && room_for_another()) train_next_trial();
    return;
  }
  tick_.stop();
  driver_->drain(rows);
  tell_ended(status_);
  const RunStatus::State how = status_.state;
  let_go(std::move(driver_), status_);
  driver_.reset();
  if (!beside_.empty()) {
    Trained next = std::move(beside_.front());
    beside_.erase(beside_.begin());
    lead(std::move(next));
  }
  if (sweeping_) trial_ended(how);
  if (auto next = std::exchange(next_, std::nullopt)) start_driver(std::move(*next), false);
  emit status_changed();
  emit state_changed();
}

/// What its watches began to see, and a pause that one of them asked for.
void Workbench::follow_watches(const RunStatus& before) {
  std::vector<WatchHit> hits;
  driver_->drain(hits);
  std::erase_if(hits, [](const WatchHit& h) { return !h.begins; });
  for (const WatchHit& h : hits)
    if (h.action != WatchAction::count) log(tr("Watch: %1").arg(QString::fromStdString(h.text())));
  live_hits_.insert(live_hits_.end(), hits.begin(), hits.end());
  if (status_.run == shown_run_ && !hits.empty()) {
    std::vector<WatchHit> all = watch_hits_;
    add_missing(all, hits);
    show_watch_hits(std::move(all));
  }
  if (status_.paused_by.empty() || status_.paused_by == before.paused_by) return;
  const int64_t step = status_.step;
  emit notice({tr("%1 is paused by a watch").arg(QString::fromStdString(status_.name)),
               QString::fromStdString(status_.paused_by),
               tr("Go to step %1").arg(QString::fromStdString(format_grouped(step))),
               [this, step, run = status_.run] {
                 if (shown_run_ != run) select(Selection::run(run, "watch"));
                 select(Selection::step(step, "watch"));
               },
               [this, by = status_.paused_by] { return driver_ && status_.paused_by == by; }});
}

void Workbench::follow_events(RunDriver& driver, const RunStatus& status, std::vector<projects::RunEvent>& live) {
  std::vector<projects::RunEvent> events;
  driver.drain(events);
  for (const projects::RunEvent& e : events)
    log(tr("%1, step %2: %3")
            .arg(QString::fromStdString(status.name), QString::fromStdString(format_grouped(e.step)),
                 QString::fromStdString(e.text)));
  live.insert(live.end(), events.begin(), events.end());
  if (status.run != shown_run_ || events.empty()) return;
  std::vector<projects::RunEvent> all = run_events_;
  add_missing(all, events);
  show_events(std::move(all));
}

/// A full disk holds the run; it goes on by itself once there is room.
void Workbench::tell_blocked(const RunStatus& before) {
  if (status_.blocked == before.blocked && status_.blocked_hint == before.blocked_hint) return;
  if (status_.blocked.empty()) {
    if (projects::is_active(status_.state) && !stopping_)
      log(tr("There is room on the disk again: %1 goes on").arg(QString::fromStdString(status_.name)));
    return;
  }
  const QString title =
      tr("%1 waits at step %2")
          .arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.step)));
  const QString message = QString::fromStdString(status_.blocked) + ". " +
                          tr("Nothing is lost: it goes on by itself as soon as there is room.") + "\n" +
                          QString::fromStdString(status_.blocked_hint);
  if (before.blocked.empty()) log(title + ": " + message, true);
  emit notice({title, message, tr("Try again"),
               [this] {
                 if (driver_) driver_->retry();
               },
               [this] { return driver_ && !status_.blocked.empty(); }});
}

/// Its last transaction may still be on the way, and the end of a driver waits for it: that happens on the file thread.
void Workbench::let_go(std::shared_ptr<RunDriver> driver, const RunStatus& status) {
  if (!driver) return;
  auto held = std::make_shared<std::shared_ptr<RunDriver>>(std::move(driver));
  auto lost = std::make_shared<QString>();  // what a run that waited for room on the disk could not save, told only now
  const bool waited = projects::is_active(status.state) && !status.blocked.empty();
  const QString name = QString::fromStdString(status.name);
  files.start(
      QString("end %1").arg(status.run), tr("Finish the run"),
      [held, waited, lost](const Jobs::Report&, const std::atomic<bool>&) {
        if (waited) {
          (*held)->stop();
          (*held)->wait();
          *lost = QString::fromStdString((*held)->status().error);
        }
        held->reset();
      },
      [this, name, lost] {
        if (!lost->isEmpty()) fail(tr("%1 failed").arg(name), *lost, {});
        refresh_project();
        load_metrics();
      },
      {}, true);
}

void Workbench::let_go_of_all() {
  next_.reset();
  let_go(std::move(driver_), status_);
  driver_.reset();
  for (Trained& t : beside_) let_go(std::move(t.driver), t.status);
  beside_.clear();
}

std::vector<RunStatus> Workbench::statuses() const {
  std::vector<RunStatus> all = {status_};
  for (const Trained& t : beside_) all.push_back(t.status);
  return all;
}

bool Workbench::trains(int64_t run) const {
  return (driver_ && status_.run == run) ||
         std::any_of(beside_.begin(), beside_.end(), [run](const Trained& t) { return t.status.run == run; });
}

void Workbench::pause() {
  if (driver_) driver_->pause();
  for (Trained& t : beside_) t.driver->pause();
}
void Workbench::resume() {
  if (driver_) driver_->resume();
  for (Trained& t : beside_) t.driver->resume();
}
void Workbench::step_once() {
  if (driver_)
    driver_->step_once();
  else if (project_ && !ask_to_train_beside(tr("Not started yet"), [this] { step_once(); }))
    start_driver({}, true);
}
void Workbench::stop() {
  stopping_ = true;
  sweeping_ = 0;
  if (driver_) driver_->stop();
  for (Trained& t : beside_) t.driver->stop();
}
void Workbench::checkpoint() {
  if (driver_) driver_->checkpoint();
}

}  // namespace tenon::views
