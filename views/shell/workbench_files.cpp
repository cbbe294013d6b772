// Whole files beside the project, as jobs: a copy of it, and what is imported.
#include <QFileInfo>

#include "engine/formats/onnx/feed.h"
#include "projects/copy.h"
#include "projects/file_import.h"
#include "projects/model_import.h"
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
      "copy", tr("Save what was edited"), [](const Jobs::Report&, const std::atomic<bool>&) {},
      [this, project = project_, path, replaces] {
        jobs.start(
            "copy " + path, tr("Save a copy as %1").arg(QFileInfo(path).fileName()),
            [from = project->path(), to = path.toStdString(), replaces](const Jobs::Report& report,
                                                                        const std::atomic<bool>&) {
              return projects::copy_project(from, to, replaces, report);
            },
            [this, project, path](int64_t bytes) {
              if (project == project_)
                tell_done(tr("Saved a copy"), path.toStdString() + ", " + format_bytes(static_cast<double>(bytes)));
            },
            [this](const QString& message, const QString& hint) { fail(tr("The copy was not saved"), message, hint); },
            false, Jobs::Unit::bytes);
      },
      {}, true);
}

void Workbench::create_from_model(const QString& path, const QString& model, const QString& sizes) {
  const QString name = QFileInfo(model).fileName();
  jobs.start(
      "build " + path, tr("Open %1 in the builder").arg(name),
      [path = path.toStdString(), model = model.toStdString(), sizes = sizes.toStdString()](const Jobs::Report& report,
                                                                                            const std::atomic<bool>&) {
        return projects::project_from_onnx(path, model, formats::parse_sizes(sizes), {}, report);
      },
      [this, path, name](const projects::ModelImport& made) {
        QString text = tr("%1: %2.").arg(path, QString::fromStdString(made.text()));
        for (const std::string& note : made.notes) text += " " + QString::fromStdString(note);
        log(text);
        open(path);
        emit notice({tr("%1 is a project").arg(name), text, {}, {}, [this, path] { return file_ == path; }, true});
      },
      [this, name](const QString& message, const QString& hint) {
        fail(tr("%1 was not opened in the builder").arg(name), message, hint);
      });
}

void Workbench::import_file(const QString& path) {
  if (!project_) return;
  auto project = project_;
  const QString name = QFileInfo(path).fileName();
  jobs.start(
      "import " + path, tr("Import %1").arg(name),
      [project, path = path.toStdString()](const Jobs::Report& report, const std::atomic<bool>&) {
        return projects::add_file(*project, 0, projects::look_at(path, report));
      },
      [this, project](const projects::ImportedFile& in) {
        if (project != project_) return;
        refresh_project();
        tell_done(tr("Imported"), in.text() + (in.sentence.empty() ? "" : ". " + in.sentence));
      },
      [this, name](const QString& message, const QString& hint) {
        fail(tr("%1 was not imported").arg(name), message, hint);
      },
      false, Jobs::Unit::bytes);
}

}  // namespace tenon::views
