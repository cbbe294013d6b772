// The project's file may be open elsewhere too: in another window, on the command line. What they do there is seen
// here; so is what others do to the files that are open beside it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/mapped_pages.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shell/workbench.h"

namespace tenon::views {

using projects::RunInfo;

namespace {
bool is_at_work(const RunInfo& r) { return r.status == "running" || r.status == "paused"; }
}  // namespace

void Workbench::look_at_file() {
  if (!project_ || files.has("others") || files.has("train")) return;
  struct Seen {
    int64_t version = 0;
    std::optional<ProjectContents> contents;  ///< where anything changed
  };
  files.start(
      "others", tr("Look for what others changed"),
      // A process that was killed changes nothing, but its run does not train any longer.
      [project = project_, before = others_seen_, read = trained_elsewhere() != nullptr](const Jobs::Report&,
                                                                                         const std::atomic<bool>&) {
        Seen seen{project->version_of_others(), {}};
        if (read || seen.version != before) seen.contents = ProjectContents::read(*project);
        return seen;
      },
      [this, project = project_, edits = recipe_edits_](Seen seen) {
        if (project != project_ || !seen.contents) return;
        others_seen_ = seen.version;
        const RunInfo before = shown() ? *shown() : RunInfo();
        take(std::move(*seen.contents), edits);
        const RunInfo* now = shown();
        if (!now && shown_run_ && shown_run_ != status_.run) {  // deleted elsewhere
          shown_run_ = contents_.runs.empty() ? 0 : contents_.runs.back().id;
          select(shown_run_ ? Selection::run(shown_run_, "others") : Selection());
          show_again();
        } else if (now && !trains(now->id)) {
          if (now->name != before.name || now->total_steps != before.total_steps)
            show_again();
          else if (now->steps != before.steps || now->status != before.status)
            load_metrics();
          if (now->status != before.status) emit run_changed();
        }
        if (!shown_run_ && !contents_.runs.empty()) show_run(contents_.runs.back().id);
        emit state_changed();
      },
      [](const QString&, const QString&) {}, true);  // a file that is gone is told of by whatever needs it
}

/// A script that saves its weights once more writes over what is open here.
void Workbench::look_at_documents() {
  const std::vector<std::string> cut = cut_files();
  for (const std::string& path : cut) {
    const auto shown =
        std::find_if(documents_.begin(), documents_.end(), [&](const Document& d) { return d.path == path; });
    std::error_code gone;
    // A file that is as long as when it was opened is whole: who found less was still reading what lay there before.
    const bool whole =
        shown != documents_.end() && shown->key && std::filesystem::file_size(path, gone) >= shown->key->bytes && !gone;
    if (shown != documents_.end() && !whole)
      tell_changed(shown->id, true);
    else if (shown == documents_.end())
      fail(tr("%1 was cut short").arg(QString::fromStdString(path)),
           tr("Another program did so while it was read here: what is missing of it counts as zeros."),
           tr("Do what read it again, once it is whole."));
  }
  if (documents_.empty() || files.has("beside")) return;
  std::vector<std::pair<int, traces::FileKey>> asked;
  for (const Document& d : documents_)
    if (d.key) asked.emplace_back(d.id, *d.key);
  files.start(
      "beside", tr("Look for what others changed"),
      [asked](const Jobs::Report&, const std::atomic<bool>&) {
        std::vector<std::pair<int, bool>> changed;  // and whether it is shorter than it was
        for (const auto& [id, key] : asked) {
          std::error_code gone;  // what is gone is still open here, as it was
          const auto bytes = std::filesystem::file_size(key.path, gone);
          if (!gone && !traces::unchanged(key)) changed.emplace_back(id, bytes < key.bytes);
        }
        return changed;
      },
      [this](const std::vector<std::pair<int, bool>>& changed) {
        for (const auto& [id, shorter] : changed) {
          const Document* d = document(id);
          tell_changed(id, shorter && d && d->kind == Document::Kind::model);
        }
      },
      [](const QString&, const QString&) {}, true);
}

/// `cut`: a look at it finds no more what was there. Told once of a document, whose key, which says how it was, goes;
/// and once more where it is cut after it was changed.
void Workbench::tell_changed(int id, bool cut) {
  const auto d = std::find_if(documents_.begin(), documents_.end(), [id](const Document& one) { return one.id == id; });
  if (d == documents_.end() || d->cut || (!d->key && !cut)) return;
  d->key.reset();
  d->cut = cut;
  const QString path = QString::fromStdString(d->path), title = QString::fromStdString(d->title);
  log(tr("%1 was changed by another program").arg(path));
  // Of a model only what lies where is kept; its values are looked up when they are asked for.
  const QString what = cut ? tr("It was cut short: what is missing of it counts as zeros.")
                       : d->kind == Document::Kind::model
                           ? tr("Values that are looked at now may be new ones or old ones.")
                           : tr("What is shown is as it was read.");
  emit notice({tr("Another program changed %1").arg(title), what, tr("Open it again"),
               [this, id, path] {
                 close_document(id);
                 open(path);
               },
               [this, id] { return document(id) != nullptr; }});
}

/// A run of this project that another process or another window trains. One that was trained here, and could not write
/// its end, is none.
const RunInfo* Workbench::trained_elsewhere() const {
  for (const RunInfo& r : contents_.runs)
    if (is_at_work(r) && !trained_here_.contains(r.id)) return &r;
  return nullptr;
}

/// Two runs at once share the machine: that is asked for first. True where it was, and `train` waits for the answer.
bool Workbench::ask_to_train_beside(const QString& title, std::function<void()> train) {
  const RunInfo* other = trained_elsewhere();
  if (beside_others_ || !other) return false;
  const QString name = QString::fromStdString(other->name);
  std::weak_ptr<projects::Project> project = project_;
  auto holds = [this, project] { return project.lock() == project_ && !driver_ && trained_elsewhere(); };
  emit notice({title, tr("%1 trains in another window or program. Two at once share this machine's cores.").arg(name),
               tr("Train beside it"),
               [this, holds, train = std::move(train)] {
                 if (!holds()) return;
                 beside_others_ = true;
                 train();
                 beside_others_ = false;
               },
               holds});
  return true;
}

/// The recipe as the file has it.
void Workbench::take_recipe(Recipe recipe) {
  file_recipe_ = recipe;
  if (recipe == contents_.recipe) return;
  contents_.recipe = std::move(recipe);
  builder.set_batch(contents_.recipe.integer("data.batch_size"));
  emit recipe_changed();
}

/// The model as the file has it; an edit that is not saved yet goes before it.
void Workbench::take_model(const ModelSpec& model) {
  if (unsaved_ || model == contents_.model) return;
  contents_.model = model;
  if (model == builder.spec()) return;
  if (!builder.replace(views::tr("the change made elsewhere"), model)) return;
  save_timer_.stop();
  unsaved_ = false;
  log(tr("The model was changed elsewhere; undo brings back the one from before"));
}

void Workbench::tell_replaced_model() {
  const auto theirs = edits_->replaced_model();
  if (!theirs) return;
  std::weak_ptr<projects::Project> project = project_;
  auto holds = [this, project, theirs = *theirs] { return project.lock() == project_ && !(builder.spec() == theirs); };
  emit notice({tr("The model was edited elsewhere at the same time"), tr("The project holds the one you see here."),
               tr("Take the other"),
               [this, holds, theirs = *theirs] {
                 if (holds()) builder.replace(views::tr("take the model edited elsewhere"), theirs);
               },
               holds});
}

}  // namespace tenon::views
