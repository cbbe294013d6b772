#include "views/shell/workbench.h"

#include <QFileInfo>
#include <QTime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "projects/time_travel.h"
#include "views/shared/format.h"

namespace tenon::views {

using projects::MetricRow;
using projects::Project;

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
    if (recipe.is_object() && recipe.contains(path) && recipe[path].is_number_integer())
      return std::max<int64_t>(recipe[path].get<int64_t>(), 1);
  }
  return 1;
}
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

  for (CanvasModel* m :
       std::initializer_list<CanvasModel*>{&builder, &training_model, &tensor, &autograd, &memory, &timeline, &nan})
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
        "stats", "Statistics",
        [value](const Jobs::Report&, const std::atomic<bool>& cancelled) {
          return std::any(tensor_stats(value, 48, &cancelled));
        },
        [this, index, record](std::any r) {
          if (record == links_.record())
            tensor.set_stats(index, std::any_cast<TensorStats>(r));  // an index belongs to its step
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
      project_->set_model(
          builder.spec());  // an edit of the last moment is kept, also one whose job has not had its turn
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
                            .arg(driver_    ? "The project is being saved and training goes on. "
                                 : project_ ? "The project is being saved. "
                                            : "")
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
  if (start_training)
    train();
  else
    tell_interrupted();
}

void Workbench::refresh_project() {
  if (!project_) return;
  auto project = project_;
  files.start(
      "project", "Read the project",
      [project](const Jobs::Report&, const std::atomic<bool>&) {
        return std::any(std::make_shared<ProjectModel::Contents>(ProjectModel::read(*project)));
      },
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
      [project, run, step](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::any(projects::record_step(*project, run, step, report));
      },
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
      [project, run](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::any(projects::find_nan(*project, run, report));
      },
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
          fail("The replayed step is finite, the run's was not", "the data or the program has changed since the run",
               {});
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
        if (project != project_ || !std::exchange(save_failed_, true))
          fail("The model could not be saved", message, hint);
      },
      true);
}

}  // namespace tenon::views
