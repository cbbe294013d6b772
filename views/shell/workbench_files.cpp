// Whole files beside the project, as jobs: a copy of it, and what is imported.
#include <QFileInfo>

#include "projects/copy.h"
#include "projects/file_import.h"
#include "views/shared/format.h"
#include "views/shell/workbench.h"

namespace tenon::views {

void Workbench::save_copy(const QString& path, bool replaces) {
  if (!project_) return;
  if (unsaved_) {
    save_timer_.stop();
    save_model();
  }
  // Behind the saves, which wait in that queue: then the copy holds what is seen.
  files.start(
      "copy", "Save what was edited", [](const Jobs::Report&, const std::atomic<bool>&) {},
      [this, project = project_, path, replaces] {
        jobs.start(
            "copy " + path, "Save a copy as " + QFileInfo(path).fileName(),
            [from = project->path(), to = path.toStdString(), replaces](const Jobs::Report& report,
                                                                        const std::atomic<bool>&) {
              return projects::copy_project(from, to, replaces, report);
            },
            [this, project, path](int64_t bytes) {
              if (project == project_)
                tell_done("Saved a copy", path.toStdString() + ", " + format_bytes(static_cast<double>(bytes)));
            },
            [this](const QString& message, const QString& hint) { fail("The copy was not saved", message, hint); },
            false, Jobs::Unit::bytes);
      },
      {}, true);
}

void Workbench::import_file(const QString& path) {
  if (!project_) return;
  auto project = project_;
  const QString name = QFileInfo(path).fileName();
  jobs.start(
      "import " + path, "Import " + name,
      [project, path = path.toStdString()](const Jobs::Report& report, const std::atomic<bool>&) {
        return projects::add_file(*project, 0, projects::look_at(path, report));
      },
      [this, project](const projects::ImportedFile& in) {
        if (project != project_) return;
        refresh_project();
        tell_done("Imported", in.text() + (in.sentence.empty() ? "" : ". " + in.sentence));
      },
      [this, name](const QString& message, const QString& hint) { fail(name + " was not imported", message, hint); },
      false, Jobs::Unit::bytes);
}

}  // namespace tenon::views
