#include "views/shell/workbench.h"

#include <QDir>
#include <QFileInfo>
#include <QTime>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/templates/templates.h"
#include "engine/train/own_data.h"
#include "projects/time_travel.h"
#include "tracing/record/step_record.h"
#include "views/frame/view_def.h"
#include "views/shared/add_missing.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/settings.h"

namespace tenon::views {

using projects::MetricRow;
using projects::Project;

struct Workbench::Opened {
  Document::Kind kind = Document::Kind::project;
  std::shared_ptr<Project> project;
  ProjectContents contents;
  nlohmann::json window;
  QString file;
  int64_t others = 0;
};

Workbench::Workbench(QObject* parent)
    : Bench(parent),
      builder(model<BuilderModel>()),
      training_model(model<TrainingModel>()),
      window_state_(std::make_shared<const nlohmann::json>()) {
  tick_.setInterval(100);  // live views change at most ten times a second
  connect(&tick_, &QTimer::timeout, this, &Workbench::tick);
  save_timer_.setSingleShot(true);
  save_timer_.setInterval(300);
  connect(&save_timer_, &QTimer::timeout, this, &Workbench::save_model);
  save_again_.setSingleShot(true);
  save_again_.setInterval(3000);
  connect(&save_again_, &QTimer::timeout, this, [this] {
    if (unsaved_) save_model();
    if (recipe_unsaved_) save_recipe();
  });
  look_.setInterval(1000);
  connect(&look_, &QTimer::timeout, this, &Workbench::look_at_file);
  connect(&look_beside_, &QTimer::timeout, this, &Workbench::look_at_documents);
  look_beside_.start(1000);
  connect(&jobs, &Jobs::failed, this, &Workbench::fail);
  connect(&files, &Jobs::failed, this, &Workbench::fail);
  connect(&jobs, &Jobs::changed, this, &Workbench::state_changed);
  connect(&jobs, &Jobs::changed, this, [this] {
    if (beginning_ && !takes_over_ && !jobs.has(reading_tag(*beginning_))) reading_cancelled();
  });
  more_.setInterval(200);
  connect(&more_, &QTimer::timeout, this, &Workbench::see_more);
  connect(&files, &Jobs::changed, this, &Workbench::state_changed);

  builder.on_edit = [this] {
    unsaved_ = project_ != nullptr;
    if (project_) save_timer_.start();
    emit state_changed();
  };
  builder.on_selected = [this] { emit state_changed(); };
  bus.listen([this](const Selection& s) {
    if (s) show_document(s.document);
    const Document* d = document(s.document);
    if (const int rank = d && s.kind == Selection::Kind::event ? d->rank_of(s.id) : -1; rank >= 0)
      choose_rank(s.document, static_cast<size_t>(rank));
    if (s.kind == Selection::Kind::run && s.id != shown_run_) show_run(s.id);
    if (s.kind == Selection::Kind::step) load_step(s.id);
    if (s.kind == Selection::Kind::checkpoint)
      if (const auto* c = contents_.checkpoint(s.id)) {
        if (c->run != shown_run_) show_run(c->run);
        if (c->step > 0) load_step(c->step);
      }
    for (const auto& m : models()) m->set_selection(s);
    emit selection_changed(s);
    emit state_changed();
  });
}

Workbench::~Workbench() {
  tick_.stop();
  save_last_edits();
}

void Workbench::log(const QString& line, bool bad) {
  QString time = fixed_clock_ ? QString() : QTime::currentTime().toString("HH:mm:ss  ");
  emit logged(time + line, bad);
}

void Workbench::log(const std::vector<data::Remark>& remarks) {
  for (const data::Remark& r : remarks) log(QString::fromStdString(r.line()), r.kind == data::Remark::Kind::warning);
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
  fail(tr("A fault inside Tenon"), QString("%1 (%2)").arg(message, where),
       !hint.isEmpty() ? hint
       : driver_       ? tr("The project is being saved and training goes on. Please report this with the lines of the "
                                  "log.")
       : project_      ? tr("The project is being saved. Please report this with the lines of the log.")
                       : tr("Please report this with the lines of the log."));
}

bool Workbench::idle() const { return jobs.idle() && files.idle() && !save_timer_.isActive(); }

void Workbench::open(const QString& given, bool start_training) {
  const QString path = QDir::cleanPath(given);
  files.start(
      kOpening + path, tr("Open %1").arg(QFileInfo(path).fileName()),
      [path](const Jobs::Report&, const std::atomic<bool>&) {
        auto result = std::make_shared<Opened>();
        result->kind = document_kind(path.toStdString());
        if (result->kind != Document::Kind::project) return result;
        result->project = Project::open(path.toStdString());
        result->others = result->project->version_of_others();
        result->contents = ProjectContents::read(*result->project);
        result->window = result->project->window_state("window");
        return result;
      },
      [this, path, start_training](std::shared_ptr<Opened> result) {
        if (result->kind != Document::Kind::project) return read(path, result->kind);
        result->file = path;
        opened(std::move(result), start_training);
      },
      [this, path](const QString& message, const QString& hint) {
        fail(tr("Open %1").arg(QFileInfo(path).fileName()), message, hint);
        emit open_failed();
      });
}

namespace {
/// Data that are not read without a word more make a project, too: what is wrong stands on their page, beside what can
/// be done. Throws Error where no kind of data is known.
Beginning begin_from(const std::string& data) {
  try {
    SuitedBeginning suited = begin_for(data, {});
    suited.beginning.note = tr("Begun with the template {}, which suits {}", suited.templates.front(), data);
    return suited.beginning;
  } catch (const Error& e) {
    Beginning b = begin_empty();
    b.recipe = naming_data(b.recipe, data);
    b.note = e.message();
    return b;
  }
}
}  // namespace

void Workbench::create(const QString& path, const std::string& template_name, const QString& data) {
  files.start(
      "create", tr("Make %1").arg(QFileInfo(path).fileName()),
      [path, template_name, data = data.toStdString()](const Jobs::Report&, const std::atomic<bool>&) {
        const Beginning b = !template_name.empty() ? begin(find_template(template_name), data, path.toStdString())
                            : data.empty()         ? begin_empty()
                                                   : begin_from(data);
        Project::create(path.toStdString(), b.model, b.recipe.to_json());
        return std::pair(b.note, b.remarks);
      },
      [this, path, of_data = template_name.empty() && !data.isEmpty()](
          const std::pair<std::string, std::vector<data::Remark>>& told) {
        if (!told.first.empty()) log(QString::fromStdString(told.first));
        log(told.second);
        if (of_data) {
          const auto once = std::make_shared<QMetaObject::Connection>();
          *once = connect(this, &Bench::project_changed, this, [this, once, file = QDir::cleanPath(path)] {
            if (file_ != file) return;
            disconnect(*once);
            ask("view.data");
          });
        }
        open(path);
      });
}

void Workbench::leave_project() {
  if (project_) emit leaving();
  if (unsaved_) {
    save_timer_.stop();
    save_model();  // of the project that is left
    unsaved_ = false;
  }
  if (recipe_unsaved_) save_recipe();
  recipe_unsaved_ = false;
  save_again_.stop();
  look_.stop();
  sweeping_ = 0;
  save_failed_ = recipe_save_failed_ = false;
  let_go_of_all();
  tick_.stop();
  status_ = {};
  jobs.cancel_tag("step");
  jobs.cancel_tag("nan");
}

void Workbench::show_project(std::shared_ptr<Project> project, ProjectContents contents) {
  drop_beginning({});
  bus.forget_document(Document::kProject);  // runs, steps and ops of the project that was left
  filters_.forget(Document::kProject);
  project_ = std::move(project);
  contents_ = std::move(contents);
  trained_here_.clear();
  edits_ = project_ ? std::make_shared<projects::SharedEdits>(project_) : nullptr;
  file_recipe_ = contents_.recipe;
  builder.set_spec(contents_.model, contents_.recipe.integer("data.batch_size"));
  pick({});
  show_document(Document::kProject);
  show_step({});
  tell_filter();
  shown_run_ = 0;
  training_model.set_run("", 0);
  show_watch_hits({});
  show_events({});
  results_.reset();
  emit results_changed();
  quantized_.reset();
  emit quantized_changed();
  jobs.cancel_tag(kQuantizePlan);
  quantize_plan_.reset();
  emit quantize_plan_changed();
}

void Workbench::close_project() {
  if (!project_) return;
  leave_project();
  log(tr("Closed %1").arg(file_));
  file_.clear();
  window_state_ = std::make_shared<const nlohmann::json>();
  show_project(nullptr, {});
  emit project_changed();
  emit recipe_changed();
  emit run_changed();
  emit status_changed();
  emit state_changed();
  if (documents_.empty()) return;
  select(Selection::of_document(documents_.back().id));
  show_document(documents_.back().id);  // it may have been what was selected before the project
}

void Workbench::opened(std::shared_ptr<Opened> result, bool start_training) {
  leave_project();
  file_ = result->file;
  window_state_ = std::make_shared<const nlohmann::json>(std::move(result->window));
  show_project(result->project, std::move(result->contents));
  log(tr("Opened %1").arg(file_));
  others_seen_ = result->others;
  look_.start();
  emit project_changed();
  emit recipe_changed();
  if (!contents_.recipe_fault.empty())
    fail(tr("The recipe cannot be read"), QString::fromStdString(contents_.recipe_fault),
         tr("Nothing can be trained until it is: load the plug-in that it needs, or start from the defaults in "
            "Recipe."));
  // The window may have come back to the run it was left with.
  if (!shown_run_ && !contents_.runs.empty()) show_run(contents_.runs.back().id);
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
      "project", tr("Read the project"),
      [project](const Jobs::Report&, const std::atomic<bool>&) { return ProjectContents::read(*project); },
      [this, project, edits = recipe_edits_](ProjectContents contents) {
        if (project == project_) take(std::move(contents), edits);  // else another one was opened meanwhile
      },
      {}, true);
}

/// `edits`: recipe_edits_ when it was read.
void Workbench::take(ProjectContents contents, int edits) {
  Recipe recipe = contents.recipe;
  ModelSpec model = contents.model;
  const bool older = edits != recipe_edits_ || recipe_unsaved_;  // what was read than what is seen
  contents.recipe = std::move(contents_.recipe);
  if (older) contents.recipe_fault = std::move(contents_.recipe_fault);
  contents.model = std::move(contents_.model);
  contents_ = std::move(contents);
  // What was read is older than what the run's driver says, until the file has its end.
  if (driver_ || files.has(QString("end %1").arg(status_.run))) contents_.follow(status_);
  for (const Trained& t : beside_) contents_.follow(t.status);
  if (!older) take_recipe(std::move(recipe));
  take_model(model);
  emit project_changed();
}

void Workbench::show_run(int64_t id) {
  if (id == shown_run_ || (!contents_.run(id) && id != status_.run)) return;
  shown_run_ = id;
  show_again();
}

/// The run that is shown is another one, or has another name, or is gone.
void Workbench::show_again() {
  show_step({});
  const auto* r = shown();
  training_model.set_run(r ? r->name : "", r ? r->total_steps : 0);
  show_watch_hits({});
  show_events({});
  load_metrics();
  emit run_changed();
  emit state_changed();
}

void Workbench::load_metrics() {
  if (!project_ || !shown_run_) return;
  auto project = project_;
  int64_t run = shown_run_;
  files.start(
      "metrics", tr("Read the curves"),
      [project, run](const Jobs::Report&, const std::atomic<bool>& cancelled) {
        auto series = read_series(*project, run, cancelled);
        std::vector<WatchHit> hits = project->watch_hits(run);
        std::erase_if(hits, [](const WatchHit& h) { return !h.begins; });
        return std::tuple(std::move(series), std::move(hits), project->events(run));
      },
      [this,
       run](std::tuple<std::map<std::string, Series>, std::vector<WatchHit>, std::vector<projects::RunEvent>> read) {
        if (run != shown_run_) return;
        auto& [series, hits, events] = read;
        if (driver_ && status_.run == run) {  // what came while the file was read
          add_missing(hits, live_hits_);
          add_missing(events, live_events_);
        }
        for (const Trained& t : beside_)
          if (t.status.run == run) add_missing(events, t.events);
        show_watch_hits(std::move(hits));
        show_events(std::move(events));
        const auto* info = shown();
        const std::string& name = info ? info->name : status_.name;
        const int64_t total = info ? info->total_steps : status_.total_steps;
        // One that another window trains is read again and again: what of it is looked at stays.
        if (training_model.run() != name || training_model.total_steps() != total) training_model.set_run(name, total);
        training_model.set_series(std::move(series));
        // What came while the file was read.
        if (driver_ && status_.run == run) training_model.add(live_rows_);
        for (const Trained& t : beside_)
          if (t.status.run == run) training_model.add(t.rows);
        training_model.set_selection(bus.current());
        emit run_changed();
      },
      {}, true);
}

void Workbench::show_watch_hits(std::vector<WatchHit> hits) {
  if (hits == watch_hits_) return;
  watch_hits_ = std::move(hits);
  emit watch_hits_changed();
}

void Workbench::show_events(std::vector<projects::RunEvent> events) {
  if (events == run_events_) return;
  run_events_ = std::move(events);
  emit run_events_changed();
}

void Workbench::show_step(const Links& links) {
  links_ = links;
  Selection s = bus.current();
  s.source.clear();  // a view scrolls to what was selected in it, too
  for (const auto& m : models()) {
    m->set_step(links);
    m->set_selection(s);
  }
  emit step_changed();
  emit state_changed();
}

void Workbench::load_step(int64_t step) {
  if (!project_ || !shown_run_ || step < 1) return;
  if (links_ && links_.record()->step == step && links_.record()->sample < 0 &&
      links_.record()->run == (shown() ? shown()->name : ""))
    return;
  auto project = project_;
  int64_t run = shown_run_;
  jobs.start(
      "step", tr("Replay step %1").arg(QString::fromStdString(format_grouped(step))),
      [project, run, step](const Jobs::Report& report, const std::atomic<bool>&) {
        return projects::record_step(*project, run, step, report);
      },
      [this, project, run](const Links::Record& record) {
        if (project != project_ || run != shown_run_) return;  // something else is shown by now
        show_step(Links(record));
      },
      [this](const QString& message, const QString& hint) {
        fail(tr("The step could not be replayed"), message, hint);
        emit step_changed();
      });
  emit step_changed();
}

}  // namespace tenon::views
