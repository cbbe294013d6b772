#include "views/shell/workbench.h"

#include <QFileInfo>
#include <QTime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "engine/model/templates.h"
#include "views/shared/format.h"

namespace tenon::views {

using projects::MetricRow;
using projects::Project;
using projects::RunDriver;
using projects::RunStatus;
using projects::TrainOptions;

struct Workbench::Opened {
  std::shared_ptr<Project> project;
  ProjectModel::Contents contents;
  nlohmann::json recipe, window;
};

namespace {
int64_t batch_of(const nlohmann::json& recipe) {
  // A file says what it likes: what is no number counts as not said.
  for (const char* at : {"/data/batch_size", "/data.batch_size"}) {
    const nlohmann::json::json_pointer path(at);
    if (recipe.is_object() && recipe.contains(path) && recipe[path].is_number_integer()) return std::max<int64_t>(recipe[path].get<int64_t>(), 1);
  }
  return 1;
}
bool active(RunStatus::State s) { return s == RunStatus::State::starting || s == RunStatus::State::running || s == RunStatus::State::paused; }
}  // namespace

Workbench::Workbench(QObject* parent) : QObject(parent), window_state_(std::make_shared<const nlohmann::json>()) {
  qRegisterMetaType<Selection>("tenon::views::Selection");
  tick_.setInterval(100);  // live views change at most ten times a second
  connect(&tick_, &QTimer::timeout, this, &Workbench::tick);
  save_timer_.setSingleShot(true);
  save_timer_.setInterval(300);
  connect(&save_timer_, &QTimer::timeout, this, &Workbench::save_model);
  save_again_.setSingleShot(true);
  save_again_.setInterval(3000);
  connect(&save_again_, &QTimer::timeout, this, [this] {
    if (unsaved_) save_model();
  });
  connect(&jobs, &Jobs::failed, this, &Workbench::fail);
  connect(&files, &Jobs::failed, this, &Workbench::fail);
  connect(&jobs, &Jobs::changed, this, &Workbench::state_changed);
  connect(&jobs, &Jobs::changed, this, [this] {
    if (nan.state() != NanModel::State::searching || jobs.has("nan") || !jobs.idle()) return;
    nan.reset();  // the search was cancelled
    emit step_changed();
  });
  connect(&files, &Jobs::changed, this, &Workbench::state_changed);

  for (CanvasModel* m : std::initializer_list<CanvasModel*>{&builder, &training_model, &tensor, &autograd, &memory, &timeline, &nan})
    m->on_select = [this](const Selection& s) { bus.select(s); };
  builder.on_edit = [this] {
    unsaved_ = project_ != nullptr;
    if (project_) save_timer_.start();
    emit state_changed();
  };
  tensor.on_need_stats = [this](int index) {
    const auto record = links_.record();
    if (!record || index < 0 || index >= static_cast<int>(record->tensors.size())) return;
    Tensor value = record->tensors[index].value;
    jobs.start(
        "stats", "Statistics", [value](const Jobs::Report&, const std::atomic<bool>& cancelled) { return std::any(tensor_stats(value, 48, &cancelled)); },
        [this, index, record](std::any r) {
          if (record == links_.record()) tensor.set_stats(index, std::any_cast<TensorStats>(r));  // an index belongs to its step
        },
        {}, true);
  };
  bus.listen([this](const Selection& s) {
    if (s.kind == Selection::Kind::run && s.id != shown_run_) show_run(s.id);
    if (s.kind == Selection::Kind::step) load_step(s.id);
    if (s.kind == Selection::Kind::checkpoint)
      if (const auto* c = project_model.checkpoint(s.id)) {
        if (c->run != shown_run_) show_run(c->run);
        if (c->step > 0) load_step(c->step);
      }
    builder.set_selection(s);
    training_model.set_selection(s);
    tensor.set_selection(s);
    autograd.set_selection(s);
    memory.set_selection(s);
    timeline.set_selection(s);
    nan.set_selection(s);
    emit selection_changed(s);
    emit state_changed();
  });
}

Workbench::~Workbench() {
  tick_.stop();
  if (unsaved_ && project_) {
    try {
      project_->set_model(builder.spec());  // an edit of the last moment is kept, also one whose job has not had its turn
    } catch (const std::exception& e) {
      qWarning("The last edit of the model could not be saved: %s", e.what());
    }
  }
}

void Workbench::log(const QString& line, bool bad) {
  QString time = fixed_clock_ ? QString() : QTime::currentTime().toString("HH:mm:ss  ");
  emit logged(time + line, bad);
}

void Workbench::fail(const QString& title, const QString& message, const QString& hint) {
  log(title + ": " + message, true);
  emit problem(title, message, hint);
}

void Workbench::caught(const QString& where, const QString& message, const QString& hint) {
  if (unsaved_ && project_) {
    save_timer_.stop();
    save_model();
  }
  fail("A fault inside Tenon", QString("%1 (%2)").arg(message, where),
       hint.isEmpty() ? QString("%1Please report this with the lines of the log.")
                            .arg(driver_ ? "The project is being saved and training goes on. " : project_ ? "The project is being saved. " : "")
                      : hint);
}

bool Workbench::idle() const { return jobs.idle() && files.idle() && !save_timer_.isActive(); }

void Workbench::open(const QString& path, bool start_training) {
  files.start(
      "open", "Open " + QFileInfo(path).fileName(),
      [path](const Jobs::Report&, const std::atomic<bool>&) {
        auto result = std::make_shared<Opened>();
        result->project = Project::open(path.toStdString());
        result->contents = ProjectModel::read(*result->project);
        result->recipe = result->project->recipe();
        result->window = result->project->window_state("window");
        return std::any(result);
      },
      [this, path, start_training](std::any r) {
        file_ = path;
        opened(std::any_cast<std::shared_ptr<Opened>>(r), start_training);
      });
}

void Workbench::create(const QString& path, const std::string& template_name) {
  files.start(
      "create", "Make " + QFileInfo(path).fileName(),
      [path, template_name](const Jobs::Report&, const std::atomic<bool>&) {
        const Beginning b = begin(find_template(template_name), "", path.toStdString());
        Project::create(path.toStdString(), b.model, b.recipe.to_json());
        return std::any();
      },
      [this, path](std::any) { open(path); });
}

void Workbench::opened(std::shared_ptr<Opened> result, bool start_training) {
  if (unsaved_) {
    save_timer_.stop();
    save_model();  // of the project that is left
    unsaved_ = false;
  }
  save_again_.stop();
  save_failed_ = false;
  let_go();
  tick_.stop();
  status_ = {};
  jobs.cancel_tag("step");
  jobs.cancel_tag("nan");
  project_ = result->project;
  window_state_ = std::make_shared<const nlohmann::json>(std::move(result->window));
  batch_ = batch_of(result->recipe);
  builder.set_spec(result->contents.model, batch_);
  project_model.set_status({});  // what it knew was of a run of the last project
  project_model.set(std::move(result->contents));
  set_links({});
  nan.reset();
  shown_run_ = 0;
  training_model.set_run("", 0);
  log("Opened " + file_);
  emit project_changed();
  // The window may have come back to the run it was left with.
  if (!shown_run_ && !project_model.contents().runs.empty()) show_run(project_model.contents().runs.back().id);
  emit state_changed();
  if (start_training) train();
  else tell_interrupted();
}

/// After a crash: what of the last run was kept, and the way on. One before the last was left for another.
void Workbench::tell_interrupted() {
  const auto& contents = project_model.contents();
  if (contents.runs.empty() || contents.runs.back().status != "interrupted") return;
  const projects::RunInfo& r = contents.runs.back();
  auto text = [](int64_t n) { return QString::fromStdString(format_grouped(n)); };
  const auto& kept = contents.checkpoints.back();
  QString message = QString("the program ended while it trained. Kept: every metric up to step %1").arg(text(r.steps));
  if (kept.empty()) message += ", and the seed it started from. Resume begins it anew.";
  else {
    message += kept.size() == 1 ? QString(" and the checkpoint of step %1").arg(text(kept.back().step))
                                : QString(" and %1 checkpoints, the last of step %2").arg(kept.size()).arg(text(kept.back().step));
    if (kept.back().step >= r.total_steps) message += ". Resume brings it to its end.";
    else if (kept.back().step >= r.steps) message += ". Resume goes on from there.";
    else if (kept.back().step + 1 == r.steps) message += QString(". Resume trains step %1 again, bit for bit, and goes on.").arg(text(r.steps));
    else message += QString(". Resume trains steps %1 to %2 again, bit for bit, and goes on.").arg(text(kept.back().step + 1), text(r.steps));
  }
  const QString title = QString::fromStdString(r.name) + " was interrupted at step " + text(r.steps);
  log(title + ": " + message);
  if (!can_go_on(r.id)) return;
  // Another project may have a run of the same number.
  std::weak_ptr<Project> project = project_;
  auto holds = [this, id = r.id, project] { return project.lock() == project_ && can_go_on(id); };
  emit notice({title, message, "Resume", [this, id = r.id, holds] {
                 if (holds()) go_on(id);
               }, holds});
}

void Workbench::refresh_project() {
  if (!project_) return;
  auto project = project_;
  files.start(
      "project", "Read the project",
      [project](const Jobs::Report&, const std::atomic<bool>&) { return std::any(std::make_shared<ProjectModel::Contents>(ProjectModel::read(*project))); },
      [this, project](std::any r) {
        if (project != project_) return;  // another one was opened meanwhile
        project_model.set(std::move(*std::any_cast<std::shared_ptr<ProjectModel::Contents>>(r)));
        emit project_changed();
      },
      {}, true);
}

int64_t Workbench::shown_steps() const {
  if (driver_ && status_.run == shown_run_) return status_.step;
  const auto* r = shown();
  return r ? r->steps : 0;
}

void Workbench::show_run(int64_t id) {
  if (id == shown_run_ || (!project_model.run(id) && id != status_.run)) return;
  shown_run_ = id;
  set_links({});
  nan.reset();
  const auto* r = shown();
  training_model.set_run(r ? r->name : "", r ? r->total_steps : 0);
  load_metrics();
  emit run_changed();
  emit state_changed();
}

void Workbench::load_metrics() {
  if (!project_ || !shown_run_) return;
  auto project = project_;
  int64_t run = shown_run_;
  files.start(
      "metrics", "Read the curves",
      [project, run](const Jobs::Report&, const std::atomic<bool>& cancelled) {
        auto rows = std::make_shared<std::vector<MetricRow>>();
        for (const std::string& name : project->metric_names(run)) {
          if (cancelled) break;
          for (const auto& p : project->metric(run, name)) rows->push_back({name, p});
        }
        return std::any(rows);
      },
      [this, run](std::any r) {
        if (run != shown_run_) return;
        const auto* info = shown();
        training_model.set_run(info ? info->name : status_.name, info ? info->total_steps : status_.total_steps);
        training_model.add(*std::any_cast<std::shared_ptr<std::vector<MetricRow>>>(r));
        if (driver_ && status_.run == run) training_model.add(live_rows_);  // what came while the file was read
        training_model.set_selection(bus.current());
        emit run_changed();
      },
      {}, true);
}

void Workbench::set_links(const Links& links) {
  links_ = links;
  builder.set_step(links);
  timeline.set_step(links);
  memory.set_step(links);
  autograd.set_step(links);
  tensor.set_step(links);
  if (links && links.record()->nan) nan.set_found(links);
  Selection s = bus.current();
  s.source.clear();
  builder.set_selection(s);
  timeline.set_selection(s);
  memory.set_selection(s);
  autograd.set_selection(s);
  tensor.set_selection(s);
  emit step_changed();
  emit state_changed();
}

void Workbench::load_step(int64_t step) {
  if (!project_ || !shown_run_ || step < 1) return;
  if (links_ && links_.record()->step == step && links_.record()->run == (shown() ? shown()->name : "")) return;
  auto project = project_;
  int64_t run = shown_run_;
  wanted_step_ = step;
  jobs.start(
      "step", QString("Replay step %1").arg(QString::fromStdString(format_grouped(step))),
      [project, run, step](const Jobs::Report& report, const std::atomic<bool>&) { return std::any(projects::record_step(*project, run, step, report)); },
      [this, project, run](std::any r) {
        if (project != project_ || run != shown_run_) return;  // something else is shown by now
        set_links(Links(std::any_cast<std::shared_ptr<const tracing::StepRecord>>(r)));
      },
      [this](const QString& message, const QString& hint) {
        fail("The step could not be replayed", message, hint);
        emit step_changed();
      });
  emit step_changed();
}

void Workbench::find_nan() {
  if (!project_ || !shown_run_) return;
  auto project = project_;
  int64_t run = shown_run_;
  std::string name = shown() ? shown()->name : "";
  nan.set_searching();
  emit step_changed();
  jobs.start(
      "nan", "Search for the first value that is not finite",
      [project, run](const Jobs::Report& report, const std::atomic<bool>&) { return std::any(projects::find_nan(*project, run, report)); },
      [this, name, project, run](std::any r) {
        if (project != project_ || run != shown_run_) return;
        auto record = std::any_cast<std::shared_ptr<const tracing::StepRecord>>(r);
        if (!record) {
          nan.set_clean(name);
          emit step_changed();
          return;
        }
        wanted_step_ = record->step;
        if (!record->nan) {
          nan.reset();
          fail("The replayed step is finite, the run's was not", "the data or the program has changed since the run", {});
        }
        set_links(Links(record));
        if (record->nan && record->nan->seq) bus.select(Selection::op(record->nan->seq, "nan"));
      },
      [this](const QString& message, const QString& hint) {
        nan.reset();
        emit step_changed();
        fail("The search failed", message, hint);
      });
}

void Workbench::train(const TrainOptions& options) {
  if (driver_ && status_.state == RunStatus::State::paused) return resume();
  start_driver(options, false);
}

bool Workbench::can_go_on(int64_t run) const {
  const auto* r = project_model.run(run);
  return r && !driver_ && project_ && !project_->read_only() && !files.has("train") &&
         (r->status == "interrupted" || (r->id == status_.run && (r->status == "running" || r->status == "paused")) || (r->steps < r->total_steps && (r->status == "stopped" || r->status == "failed")));
}

void Workbench::go_on(int64_t run) {
  if (!can_go_on(run)) return;
  start_driver({.resume = project_model.run(run)->name}, false);
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
      [project, options](const Jobs::Report&, const std::atomic<bool>&) { return std::any(std::shared_ptr<RunDriver>(RunDriver::start(project, options))); },
      [this, then_step, project](std::any r) {
        auto driver = std::any_cast<std::shared_ptr<RunDriver>>(r);
        if (project != project_) {  // another project was opened meanwhile: this run ends with a checkpoint
          files.start("left run", "Finish the run", [driver](const Jobs::Report&, const std::atomic<bool>&) mutable {
            driver.reset();
            return std::any();
          }, [](std::any) {}, {}, true);
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
  set_links({});
  nan.reset();
  training_model.set_run(status_.name, status_.total_steps);
  log(QString("Training %1%2").arg(QString::fromStdString(status_.name),
                                   status_.step > 0 ? QString(" from step %1").arg(QString::fromStdString(format_grouped(status_.step))) : QString()));
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
  std::vector<MetricRow> rows;
  driver_->drain(rows);
  live_rows_.insert(live_rows_.end(), rows.begin(), rows.end());
  if (status_.run == shown_run_) {
    training_model.add(rows);
    if (status_.step != before.step || status_.state != before.state) training_model.set_status(status_);
  }
  project_model.set_status(status_);
  tell_blocked(before);
  if (status_.nan && !before.nan)
    log(QString("%1 stopped being finite at step %2").arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.nan_step))), true);
  if (status_.state != before.state || status_.step != before.step || !rows.empty()) emit status_changed();
  if (status_.state != before.state || status_.blocked != before.blocked) emit state_changed();
  if (status_.epoch != before.epoch) refresh_project();  // checkpoints come with epochs
  if (active(status_.state)) return;
  tick_.stop();
  driver_->drain(rows);
  QString name = QString::fromStdString(status_.name);
  if (status_.state == RunStatus::State::failed) fail(name + " failed", QString::fromStdString(status_.error), {});
  else log(QString("%1 %2 at step %3").arg(name, status_.state == RunStatus::State::finished ? "finished" : "stopped", QString::fromStdString(format_grouped(status_.step))));
  let_go();
  emit status_changed();
  emit state_changed();
}

/// A full disk holds the run; it goes on by itself once there is room.
void Workbench::tell_blocked(const RunStatus& before) {
  if (status_.blocked == before.blocked && status_.blocked_hint == before.blocked_hint) return;
  if (status_.blocked.empty()) {
    if (active(status_.state) && !stopping_) log(QString("There is room on the disk again: %1 goes on").arg(QString::fromStdString(status_.name)));
    return;
  }
  const QString title = QString("%1 waits at step %2").arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.step)));
  const QString message = QString::fromStdString(status_.blocked) + ". Nothing is lost: it goes on by itself as soon as there is room.\n" +
                          QString::fromStdString(status_.blocked_hint);
  if (before.blocked.empty()) log(title + ": " + message, true);
  emit notice({title, message, "Try again", [this] {
                 if (driver_) driver_->retry();
               }, [this] { return driver_ && !status_.blocked.empty(); }});
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
        return std::any();
      },
      [this, name, lost](std::any) {
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
  if (driver_) driver_->step_once();
  else start_driver({}, true);
}
void Workbench::stop() {
  stopping_ = true;
  if (driver_) driver_->stop();
}
void Workbench::checkpoint() {
  if (driver_) driver_->checkpoint();
}

void Workbench::save_model() {
  if (!project_) return;
  auto project = project_;
  ModelSpec spec = builder.spec();
  files.start(
      "save", "Save the model",
      [project, spec](const Jobs::Report&, const std::atomic<bool>&) {
        project->set_model(spec);
        return std::any();
      },
      [this, project, spec](std::any) {
        if (project != project_) return;
        if (spec == builder.spec()) unsaved_ = false;
        if (std::exchange(save_failed_, false)) log("The model is saved now");
      },
      [this, project](const QString& message, const QString& hint) {
        if (project == project_ && !project->read_only()) save_again_.start();  // a full disk has room again one day
        if (project != project_ || !std::exchange(save_failed_, true)) fail("The model could not be saved", message, hint);
      },
      true);
}

}  // namespace tenon::views
