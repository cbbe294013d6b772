// What is done to a run as a whole, and to the recipe of one that has begun.
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/train/session.h"
#include "views/shared/format.h"
#include "views/shell/workbench.h"

namespace tenon::views {

using projects::Project;
using projects::RunInfo;
using projects::RunStatus;

namespace {
using Settings = std::vector<std::pair<std::string, std::string>>;

/// What takes a begun run from one recipe to another, as far as that may be.
Settings changes_to(const Recipe& from, const Recipe& to) {
  Settings set;
  for (const KeyDifference& d : differences(from, to))
    if (!d.to.empty() && TrainingSession::may_change(d.key)) set.emplace_back(d.key, d.to);
  return set;
}

/// The keys that a begun run keeps although the recipe says something else.
QString kept(const Recipe& from, const Recipe& to) {
  QStringList keys;
  for (const KeyDifference& d : differences(from, to))
    if (!TrainingSession::may_change(d.key)) keys << QString::fromStdString(d.key);
  return keys.join(", ");
}

bool has_checkpoint(const ProjectContents& c, int64_t run) {
  for (size_t i = 0; i < c.runs.size(); ++i)
    if (c.runs[i].id == run) return !c.checkpoints[i].empty();
  return false;
}

std::optional<Recipe> recipe_of(const RunInfo& r) {
  try {
    return Recipe::from_json(r.recipe_after(r.steps));
  } catch (const Error&) {  // of a plug-in that is not here
    return {};
  }
}
}  // namespace

std::optional<Recipe> Workbench::training_recipe() const {
  if (!driver_) return {};
  return driver_->recipe();
}

void Workbench::change_training() {
  if (!driver_) return;
  const Recipe from = driver_->recipe();
  try {
    if (const Settings set = changes_to(from, recipe()); !set.empty()) driver_->change(set);
  } catch (const Error& e) {
    return fail(tr("The run's recipe was not changed"), QString::fromStdString(e.message()),
                QString::fromStdString(e.hint()));
  }
  if (const QString keys = kept(from, recipe()); !keys.isEmpty())
    log(tr("%1 keeps what it began with: %2").arg(QString::fromStdString(status_.name), keys));
  emit recipe_changed();
}

/// A change is told once it holds.
void Workbench::tell_changes(const RunStatus& before) {
  if (status_.refused != before.refused && !status_.refused.empty())
    fail(tr("The run's recipe was not changed"), QString::fromStdString(status_.refused), {});
  if (status_.changes == before.changes || !driver_) return;
  log(tr("%1 goes on with another recipe after step %2")
          .arg(QString::fromStdString(status_.name), QString::fromStdString(format_grouped(status_.step))));
  refresh_project();
  emit recipe_changed();
}

bool Workbench::can_continue(int64_t run) const {
  const RunInfo* r = contents_.run(run);
  if (!r || driver_ || !project_ || project_->read_only() || files.has("train") || !contents_.recipe_fault.empty())
    return false;
  const bool ended =
      r->status == "finished" || r->status == "stopped" || r->status == "failed" || r->status == "interrupted";
  if (!ended || !has_checkpoint(contents_, run)) return false;
  const auto from = recipe_of(*r);
  return from && !changes_to(*from, recipe()).empty();
}

void Workbench::continue_run(int64_t run) {
  if (!can_continue(run) || ask_to_train_beside(tr("Not continued yet"), [this, run] { continue_run(run); })) return;
  const RunInfo& r = *contents_.run(run);
  const Recipe from = *recipe_of(r);
  if (const QString keys = kept(from, recipe()); !keys.isEmpty())
    log(tr("%1 keeps what it began with: %2").arg(QString::fromStdString(r.name), keys));
  start_driver({.resume = r.name, .set = changes_to(from, recipe())}, false);
}

/// Writes into the project's file, away from the UI thread; `done` finds what it holds then.
void Workbench::write(const QString& title, std::function<void(Project&)> work, std::function<void()> done) {
  if (!project_) return;
  files.start(
      "edit " + title, title,
      [project = project_, work = std::move(work)](const Jobs::Report&, const std::atomic<bool>&) {
        work(*project);
        return ProjectContents::read(*project);
      },
      [this, project = project_, done = std::move(done), edits = recipe_edits_](ProjectContents contents) {
        if (project != project_) return;
        take(std::move(contents), edits);
        done();
      },
      [this, title](const QString& message, const QString& hint) {
        fail(tr("%1: not done").arg(title), message, hint);
      },
      true);
}

void Workbench::describe_run(int64_t run, const QString& name, const QString& note, const QStringList& tags) {
  const RunInfo* r = contents_.run(run);
  if (!r) return;
  std::vector<std::string> all;
  for (const QString& t : tags) all.push_back(t.toStdString());
  write(
      tr("Words of %1").arg(QString::fromStdString(r->name)),
      [run, name = name.trimmed().toStdString(), was = r->name, note = note.trimmed().toStdString(), all](Project& p) {
        if (name != was) p.rename_run(run, name);
        p.describe_run(run, note, all);
      },
      [this, run] {
        if (run == shown_run_) show_again();
      });
}

void Workbench::delete_runs(const std::vector<int64_t>& runs) {
  std::vector<int64_t> gone;
  for (const int64_t run : runs)
    if (contents_.run(run) && !trains(run)) gone.push_back(run);
  if (gone.empty()) return;
  const QString name =
      gone.size() == 1 ? QString::fromStdString(contents_.run(gone[0])->name) : tr("%1 runs").arg(gone.size());
  write(
      tr("Delete %1").arg(name), [gone](Project& p) { p.delete_runs(gone); },
      [this, gone, name] {
        auto is_gone = [&gone](int64_t run) { return std::find(gone.begin(), gone.end(), run) != gone.end(); };
        std::vector<int64_t> left = picked_;
        if (std::erase_if(left, is_gone)) pick(left);
        if (is_gone(shown_run_)) {
          shown_run_ = contents_.runs.empty() ? 0 : contents_.runs.back().id;
          select(shown_run_ ? Selection::run(shown_run_, "delete") : Selection());
          show_again();
        }
        tell_deleted((gone.size() == 1 ? tr("%1 was deleted") : tr("%1 were deleted")).arg(name),
                     gone.size() == 1
                         ? tr("Its steps stay in the file; Run › Bring back what was deleted… finds it also later.")
                         : tr("Their steps stay in the file; "
                              "Run › Bring back what was deleted… finds it also later."),
                     [this, gone] { restore_runs(gone); }, [this, first = gone[0]] { return !contents_.run(first); });
      });
}

void Workbench::tell_deleted(const QString& said, const QString& what_stays, std::function<void()> restore,
                             std::function<bool()> gone) {
  log(said);
  std::weak_ptr<Project> project = project_;
  emit notice({said, what_stays, tr("Bring back"), std::move(restore),
               [this, project, gone = std::move(gone)] { return project.lock() == project_ && gone(); }, true});
}

void Workbench::restore_runs(const std::vector<int64_t>& runs) {
  write(
      runs.size() == 1 ? tr("Bring a run back") : tr("Bring runs back"), [runs](Project& p) { p.undelete_runs(runs); },
      [this, last = runs.back()] { select(Selection::run(last, "restore")); });
}

}  // namespace tenon::views
