// The run that trains: begun, gone on with, looked at ten times a second, let go of.
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "views/shared/format.h"
#include "views/shell/workbench.h"

namespace tenon::views {

using projects::MetricRow;
using projects::Project;
using projects::RunDriver;
using projects::RunStatus;
using projects::TrainOptions;

namespace {
bool active(RunStatus::State s) {
  return s == RunStatus::State::starting || s == RunStatus::State::running || s == RunStatus::State::paused;
}
}  // namespace

/// After a crash: what of the last run was kept, and the way on. One before the last was left for another.
void Workbench::tell_interrupted() {
  const auto& contents = contents_;
  if (contents.runs.empty() || contents.runs.back().status != "interrupted") return;
  const projects::RunInfo& r = contents.runs.back();
  auto text = [](int64_t n) { return QString::fromStdString(format_grouped(n)); };
  const auto& kept = contents.checkpoints.back();
  QString message = QString("the program ended while it trained. Kept: every metric up to step %1").arg(text(r.steps));
  if (kept.empty())
    message += ", and the seed it started from. Resume begins it anew.";
  else {
    message += kept.size() == 1 ? QString(" and the checkpoint of step %1").arg(text(kept.back().step))
                                : QString(" and %1 checkpoints, the last of step %2")
                                      .arg(text(static_cast<int64_t>(kept.size())), text(kept.back().step));
    if (kept.back().step >= r.total_steps)
      message += ". Resume brings it to its end.";
    else if (kept.back().step >= r.steps)
      message += ". Resume goes on from there.";
    else if (kept.back().step + 1 == r.steps)
      message += QString(". Resume trains step %1 again, bit for bit, and goes on.").arg(text(r.steps));
    else
      message += QString(". Resume trains steps %1 to %2 again, bit for bit, and goes on.")
                     .arg(text(kept.back().step + 1), text(r.steps));
  }
  const QString title = QString::fromStdString(r.name) + " was interrupted at step " + text(r.steps);
  log(title + ": " + message);
  if (!can_go_on(r.id)) return;
  // Another project may have a run of the same number.
  std::weak_ptr<Project> project = project_;
  auto holds = [this, id = r.id, project] { return project.lock() == project_ && can_go_on(id); };
  emit notice({title, message, "Resume",
               [this, id = r.id, holds] {
                 if (holds()) go_on(id);
               },
               holds});
}

void Workbench::train(const TrainOptions& options) {
  if (driver_ && status_.state == RunStatus::State::paused) return resume();
  start_driver(options, false);
}

bool Workbench::can_go_on(int64_t run) const {
  const auto* r = contents_.run(run);
  return r && !driver_ && project_ && !project_->read_only() && !files.has("train") &&
         (r->status == "interrupted" || (r->id == status_.run && (r->status == "running" || r->status == "paused")) ||
          (r->steps < r->total_steps && (r->status == "stopped" || r->status == "failed")));
}

void Workbench::go_on(int64_t run) {
  if (!can_go_on(run)) return;
  start_driver({.resume = contents_.run(run)->name}, false);
}

void Workbench::start_driver(TrainOptions options, bool then_step) {
  if (!project_ || driver_ || files.has("train")) return;
  if (save_timer_.isActive()) {
    save_timer_.stop();
    save_model();  // jobs of one queue run in order: the run starts with the model that is seen
  }
  options.start_paused = options.start_paused || then_step;
  auto project = project_;
  files.start(
      "train", "Start training",
      [project, options](const Jobs::Report&, const std::atomic<bool>&) {
        return std::shared_ptr<RunDriver>(RunDriver::start(project, options));
      },
      [this, then_step, project](std::shared_ptr<RunDriver> driver) {
        if (project != project_) {  // another project was opened meanwhile: this run ends with a checkpoint
          files.start(
              "left run", "Finish the run",
              [driver](const Jobs::Report&, const std::atomic<bool>&) mutable { driver.reset(); }, [] {}, {}, true);
          return;
        }
        adopt(std::move(driver));
        if (then_step) driver_->step_once();
      },
      [this](const QString& message, const QString& hint) { fail("Training could not start", message, hint); });
  emit state_changed();
}

void Workbench::adopt(std::shared_ptr<RunDriver> driver) {
  driver_ = std::move(driver);
  stopping_ = false;
  status_ = driver_->status();
  live_rows_.clear();
  shown_run_ = status_.run;
  show_step({});
  training_model.set_run(status_.name, status_.total_steps);
  log(QString("Training %1%2")
          .arg(QString::fromStdString(status_.name),
               status_.step > 0 ? QString(" from step %1").arg(QString::fromStdString(format_grouped(status_.step)))
                                : QString()));
  tick_.start();
  refresh_project();
  load_metrics();
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
  if (status_.run == shown_run_) {
    training_model.add(rows);
    if (status_.step != before.step || status_.state != before.state) training_model.set_status(status_);
  }
  tell_blocked(before);
  if (status_.nan && !before.nan)
    log(QString("%1 stopped being finite at step %2")
            .arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.nan_step))),
        true);
  if (status_.state != before.state || status_.step != before.step || !rows.empty()) emit status_changed();
  if (status_.state != before.state || status_.blocked != before.blocked) emit state_changed();
  if (status_.epoch != before.epoch) refresh_project();  // checkpoints come with epochs
  if (active(status_.state)) return;
  tick_.stop();
  driver_->drain(rows);
  QString name = QString::fromStdString(status_.name);
  if (status_.state == RunStatus::State::failed)
    fail(name + " failed", QString::fromStdString(status_.error), {});
  else
    log(QString("%1 %2 at step %3")
            .arg(name, status_.state == RunStatus::State::finished ? "finished" : "stopped",
                 QString::fromStdString(format_grouped(status_.step))));
  let_go();
  emit status_changed();
  emit state_changed();
}

/// A full disk holds the run; it goes on by itself once there is room.
void Workbench::tell_blocked(const RunStatus& before) {
  if (status_.blocked == before.blocked && status_.blocked_hint == before.blocked_hint) return;
  if (status_.blocked.empty()) {
    if (active(status_.state) && !stopping_)
      log(QString("There is room on the disk again: %1 goes on").arg(QString::fromStdString(status_.name)));
    return;
  }
  const QString title =
      QString("%1 waits at step %2")
          .arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.step)));
  const QString message = QString::fromStdString(status_.blocked) +
                          ". Nothing is lost: it goes on by itself as soon as there is room.\n" +
                          QString::fromStdString(status_.blocked_hint);
  if (before.blocked.empty()) log(title + ": " + message, true);
  emit notice({title, message, "Try again",
               [this] {
                 if (driver_) driver_->retry();
               },
               [this] { return driver_ && !status_.blocked.empty(); }});
}

/// Its last transaction may still be on the way, and the end of a driver waits for it: that happens on the file thread.
void Workbench::let_go() {
  auto driver = std::move(driver_);
  driver_.reset();
  if (!driver) return;
  auto held = std::make_shared<std::shared_ptr<RunDriver>>(std::move(driver));
  auto lost = std::make_shared<QString>();  // what a run that waited for room on the disk could not save, told only now
  const bool waited = active(status_.state) && !status_.blocked.empty();
  const QString name = QString::fromStdString(status_.name);
  files.start(
      QString("end %1").arg(status_.run), "Finish the run",
      [held, waited, lost](const Jobs::Report&, const std::atomic<bool>&) {
        if (waited) {
          (*held)->stop();
          (*held)->wait();
          *lost = QString::fromStdString((*held)->status().error);
        }
        held->reset();
      },
      [this, name, lost] {
        if (!lost->isEmpty()) fail(name + " failed", *lost, {});
        refresh_project();
        load_metrics();
      },
      {}, true);
}

void Workbench::pause() {
  if (driver_) driver_->pause();
}
void Workbench::resume() {
  if (driver_) driver_->resume();
}
void Workbench::step_once() {
  if (driver_)
    driver_->step_once();
  else
    start_driver({}, true);
}
void Workbench::stop() {
  stopping_ = true;
  if (driver_) driver_->stop();
}
void Workbench::checkpoint() {
  if (driver_) driver_->checkpoint();
}

}  // namespace tenon::views
