// Files: what is opened, made, imported and copied, and the page to begin with.
#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenuBar>
#include <QProcess>
#include <QRegularExpression>
#include <QStatusBar>
#include <QToolBar>
#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "engine/formats/model_file.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/templates/templates.h"
#include "projects/model_import.h"
#include "views/shared/format.h"
#include "views/shared/settings.h"
#include "views/shell/help_panel.h"
#include "views/shell/main_window.h"
#include "views/shell/start_page.h"
#include "views/shell/tour.h"

namespace tenon::views {

void MainWindow::add_file_commands() {
  auto project = [this] { return bench_.has_project(); };
  auto add = [this](const char* id, const char* title, const char* keys, const char* icon, int section,
                    std::function<void()> run, std::function<bool()> enabled = {}) {
    commands_.add({.id = id,
                   .title = title,
                   .menu = "File",
                   .keys = keys,
                   .icon = icon,
                   .run = std::move(run),
                   .enabled = std::move(enabled),
                   .section = section});
  };
  add("file.new", tr_later("New from a template…"), "Ctrl+N", "add", 0, [this] { choose_template(); });
  add("file.new_empty", tr_later("New empty project…"), "Ctrl+Shift+N", "new", 0, [this] { begin_project({}); });
  const auto own_data = [this](bool folder) { return [this, folder] { choose_own_data(folder); }; };
  add("file.new_file", tr_later("New project for a file of data…"), "", "table", 0, own_data(false));
  add("file.new_folder", tr_later("New project for a folder of data…"), "", "table", 0, own_data(true));
  add("file.open", tr_later("Open…"), "Ctrl+O", "project", 1, [this] { choose_file(); });
  add("file.open_folder", tr_later("Open a folder of traces…"), "", "project", 1, [this] { choose_folder(); });
  add("file.recent", tr_later("Open recent…"), "Ctrl+Shift+O", "recent", 1, [this] { choose_recent(); });
  add(
      "file.start", tr_later("Start page"), "", "home", 1,
      [this] {
        start_aside_ = false;
        refresh_start();
      },
      [this] { return nothing_open(); });
  add(
      "file.window", tr_later("Another window on this project"), "", "window", 1, [this] { open_another_window(); },
      project);
  add(
      "file.import", tr_later("Import…"), "Ctrl+I", "import", 2, [this] { choose_import(); },
      [this] { return bench_.has_project() && !bench_.project()->read_only(); });
  add(
      "file.build", tr_later("Open the model in the builder…"), "", "model", 2, [this] { choose_build(); },
      [this] {
        const Document* d = bench_.shown_document();
        return d && d->model && formats::is_runnable(d->model->kind);
      });
  add(
      "file.copy", tr_later("Save a copy…"), "Ctrl+Shift+S", "copy", 2, [this] { choose_copy(); }, project);
  add(
      "file.close_document", tr_later("Close the file that is shown"), "", "close", 3,
      [this] { bench_.close_document(bench_.shown_document()->id); },
      [this] { return bench_.shown_document() != nullptr; });
  add(
      "file.close", tr_later("Close the project"), "", "close", 3, [this] { bench_.close_project(); }, project);
}

void MainWindow::choose_file() {
  // What a file is its content says, whatever its name.
  const QString traces = "*.json *.gz *.zst *.zip", snapshots = "*.pickle *.pkl",
                models = "*.onnx *.safetensors *.gguf *.pt *.pth *.pt2 *.torchscript *.ckpt *.bin *.npy *.npz";
  const QStringList paths = QFileDialog::getOpenFileNames(
      this, tr("Open projects, traces, memory snapshots or model files"), bench_.file(),
      tr("All that can be opened (*.tenon %1 %2 %3);;Tenon projects (*.tenon);;Traces (%1);;"
         "Memory snapshots (%2);;Model files (%3);;All files (*)")
          .arg(traces, snapshots, models));
  for (const QString& path : paths) bench_.open(path);
}

/// The ranks of one session, as one document.
void MainWindow::choose_folder() {
  const QDir folder = bench_.has_project() ? QFileInfo(bench_.file()).dir() : QDir::current();
  const QString path =
      QFileDialog::getExistingDirectory(this, tr("Open a folder with a trace of each rank"), folder.path());
  if (!path.isEmpty()) bench_.open(path);
}

/// A process of its own: what ends one window leaves the other. Both follow what the other does to the file.
void MainWindow::open_another_window() {
  const QString program = QCoreApplication::applicationFilePath();
  const QStringList given = QCoreApplication::arguments();
  QStringList arguments;
  for (int i = 1; i + 1 < given.size(); ++i)
    if (given[i] == "--plugin") arguments << given[i] << given[i + 1];
  arguments << QFileInfo(bench_.file()).absoluteFilePath();
  if (QProcess::startDetached(program, arguments)) return;
  bench_.fail(tr("The other window did not open"), tr("%1 could not be started").arg(program),
              tr("Start one in a terminal: tenon %1").arg(bench_.file()));
}

void MainWindow::choose_recent() {
  auto files = [this](const QString& typed) {
    std::vector<Picker::Item> items;
    for (const settings::RecentFile& recent : settings::recent()) {
      const QString path = QString::fromStdString(recent.path);
      if (fuzzy_score(typed.toStdString(), recent.path) < 0) continue;
      items.push_back({QFileInfo(path).fileName(), QFileInfo(path).absolutePath(), tr(recent.kind.c_str()),
                       [this, path] { bench_.open(path); }});
    }
    return items;
  };
  picker_->open(tr("Open a file again"), files, [](const QString& typed) -> QStringList {
    const auto known = settings::recent().size();
    if (known == 0) return {tr("No file was opened yet. File › Open… (Ctrl+O) opens the first.")};
    return {tr("Nothing fits “%1” among the %2 files opened last.").arg(typed).arg(known),
            tr("Type letters of the file's name or folder, in their order; File › Open… finds any file.")};
  });
}

void MainWindow::choose_template() {
  picker_->open(
      tr("Start a project from a template"),
      [this](const QString& typed) {
        // By what was typed: a name that holds it stands before one whose description does.
        const std::string words = typed.toStdString();
        std::vector<std::pair<int, Picker::Item>> found;
        auto add = [&](const std::string& name, const std::string& about, std::function<void()> run) {
          const int score = std::max(2 * fuzzy_score(words, name), fuzzy_score(words, about));
          if (score >= 0)
            found.push_back({score, {QString::fromStdString(name), QString::fromStdString(about), {}, std::move(run)}});
        };
        for (const Template& t : templates()) {
          add(t.name, t.title, [this, name = t.name] { begin_project(name); });
          if (t.own_data.place != Template::OwnData::Place::none)
            add(views::tr("{} with my data…", t.name), views::tr("You choose: {}", t.own_data.what),
                [this, name = t.name] { choose_data(name); });
        }
        std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        std::vector<Picker::Item> items;
        for (auto& [score, item] : found) items.push_back(std::move(item));
        return items;
      },
      [](const QString& typed) -> QStringList {
        return {tr("Nothing fits “%1” among the %2 templates.").arg(typed).arg(templates().size()),
                tr("Type letters of a template's name or of what it does, in their order.")};
      },
      {}, {-1, -1}, 720);
}

QString MainWindow::ask_where(const QString& title, const QString& offered, const QStringList& kinds, bool replaces) {
  QFileDialog dialog(this, title, QFileInfo(offered).dir().path());
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setOption(QFileDialog::DontConfirmOverwrite, !replaces);
  dialog.setNameFilters(kinds);
  // "CSV (*.csv)" ends a name without an end in "csv", before the dialog asks whether a file is to be replaced.
  auto suffix = [](const QString& kind) { return kind.section("(*.", 1).section(QRegularExpression("[ )]"), 0, 0); };
  dialog.setDefaultSuffix(suffix(kinds.first()));
  connect(&dialog, &QFileDialog::filterSelected, &dialog,
          [&dialog, suffix](const QString& kind) { dialog.setDefaultSuffix(suffix(kind)); });
  dialog.selectFile(QFileInfo(offered).fileName());
  if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return {};
  return dialog.selectedFiles().first();
}

/// Which file or folder of one's own a new project of a template learns from.
void MainWindow::choose_data(const std::string& template_name) {
  const Template::OwnData& own = find_template(template_name).own_data;
  const QString title = tr("The data: %1").arg(QString::fromStdString(own.what));
  const QString folder = bench_.has_project() ? QFileInfo(bench_.file()).dir().path() : QDir::currentPath();
  const QString data = own.place == Template::OwnData::Place::file
                           ? QFileDialog::getOpenFileName(this, title, folder)
                           : QFileDialog::getExistingDirectory(this, title, folder);
  if (!data.isEmpty()) begin_project(template_name, data);
}

void MainWindow::choose_own_data(bool folder) {
  const QString at = bench_.has_project() ? QFileInfo(bench_.file()).dir().path() : QDir::currentPath();
  const QString data = folder ? QFileDialog::getExistingDirectory(this, tr("The folder of the data"), at)
                              : QFileDialog::getOpenFileName(this, tr("The file of the data"), at);
  if (!data.isEmpty()) begin_project({}, data);
}

void MainWindow::begin_project(const std::string& template_name, const QString& data) {
  const QString name = !template_name.empty() ? QString::fromStdString(template_name)
                       : data.isEmpty()       ? "model"
                                              : QFileInfo(data).completeBaseName();
  const QDir folder = bench_.has_project() ? QFileInfo(bench_.file()).dir() : QDir::current();
  // Nothing is ever replaced by a new project: a name that is taken is told of.
  const QString path = ask_where(tr("Where the project goes"), folder.filePath(name + ".tenon"),
                                 {tr("Tenon projects (*.tenon)")}, false);
  if (!path.isEmpty()) bench_.create(path, template_name, data);
}

/// A project of the ONNX model that is shown.
void MainWindow::choose_build() {
  const Document* d = bench_.shown_document();
  if (!d || !d->model) return;
  const QFileInfo model(QString::fromStdString(d->path));
  // Sizes that the file leaves open are asked for; the batch may stay so.
  QString sizes;
  const formats::ModelFile::Value* input = d->model->inputs.empty() ? nullptr : &d->model->inputs.front();
  const auto open = [](int64_t size) { return size < 0; };
  if (input && !input->shape.empty() && std::any_of(input->shape.begin() + 1, input->shape.end(), open)) {
    bool told = false;
    sizes = QInputDialog::getText(this, tr("Open in the builder"),
                                  tr("The sizes of one sample of %1, which is %2:")
                                      .arg(QString::fromStdString(input->name), QString::fromStdString(input->type)),
                                  QLineEdit::Normal, "3x224x224", &told);
    if (!told) return;
  }
  const QString path =
      ask_where(tr("Where the project goes"), model.dir().filePath(model.completeBaseName() + ".tenon"),
                {tr("Tenon projects (*.tenon)")}, false);
  if (!path.isEmpty()) bench_.create_from_model(path, model.filePath(), sizes);
}

void MainWindow::choose_copy() {
  if (!bench_.has_project()) return;
  const QFileInfo project(bench_.file());
  const QString path =
      ask_where(tr("Save a copy of the project"), project.dir().filePath(project.completeBaseName() + "-copy.tenon"),
                {tr("Tenon projects (*.tenon)")});
  // The dialog has asked where the file is there; one that comes to be meanwhile is not replaced.
  if (!path.isEmpty()) bench_.save_copy(path, QFileInfo::exists(path));
}

void MainWindow::choose_import() {
  const QString path = QFileDialog::getOpenFileName(
      this, tr("Import a trace or a memory snapshot into the project"), QFileInfo(bench_.file()).dir().path(),
      tr("Traces and memory snapshots (*.json *.gz *.zst *.zip *.pickle *.pkl);;All files (*)"));
  if (!path.isEmpty()) bench_.import_file(path);
}

void MainWindow::forget_file(const QString& path) {
  keep([&path] { settings::forget_recent(path.toStdString()); });
  start_->refresh();
}

void MainWindow::refresh_start() {
  if (!nothing_open()) start_aside_ = false;
  const bool shown = nothing_open() && !start_aside_;
  start_->set_touring(tour_->running());
  const bool held = start_->isAncestorOf(focusWidget());
  const bool changes = shown == start_->isHidden();
  if (changes) {
    start_->setVisible(shown);
    if (shown) start_->refresh();
  }
  // What lies under the page does not take the keys.
  for (Dock* d : docks_) d->setEnabled(!shown || d->isFloating());
  if (changes && held && !shown) focus_view();
  if (shown) fit_start();
  commands_.refresh();
}

/// Over all docks, under the bars.
void MainWindow::fit_start() {
  int top = menuBar()->geometry().bottom() + 1;
  for (QToolBar* bar : findChildren<QToolBar*>(QString(), Qt::FindDirectChildrenOnly))
    if (!bar->isHidden()) top = std::max(top, bar->geometry().bottom() + 1);
  start_->setGeometry(0, top, width(), std::max(0, statusBar()->geometry().top() - top));
  start_->raise();  // bars of tabs come later than it
  if (!help_->isHidden()) help_->raise();
  if (!picker_->isHidden()) picker_->raise();
}

}  // namespace tenon::views
