// Files: what is opened, made, imported and copied, and the page to begin with.
#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenuBar>
#include <QProcess>
#include <QRegularExpression>
#include <QStatusBar>
#include <QToolBar>
#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "engine/templates/templates.h"
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
  add("file.new", "New from a template…", "Ctrl+N", "add", 0, [this] { choose_template(); });
  add("file.new_empty", "New empty project…", "Ctrl+Shift+N", "new", 0, [this] { begin_project({}); });
  add("file.open", "Open…", "Ctrl+O", "project", 1, [this] { choose_file(); });
  add("file.recent", "Open recent…", "Ctrl+Shift+O", "recent", 1, [this] { choose_recent(); });
  add(
      "file.start", "Start page", "", "home", 1,
      [this] {
        start_aside_ = false;
        refresh_start();
      },
      [this] { return nothing_open(); });
  add(
      "file.window", "Another window on this project", "", "window", 1, [this] { open_another_window(); }, project);
  add(
      "file.import", "Import…", "Ctrl+I", "import", 2, [this] { choose_import(); },
      [this] { return bench_.has_project() && !bench_.project()->read_only(); });
  add(
      "file.copy", "Save a copy…", "Ctrl+Shift+S", "copy", 2, [this] { choose_copy(); }, project);
  add(
      "file.close", "Close the project", "", "close", 3, [this] { bench_.close_project(); }, project);
}

void MainWindow::choose_file() {
  QString path =
      QFileDialog::getOpenFileName(this, "Open a project or a trace", bench_.file(),
                                   "Projects and traces (*.tenon *.json *.gz *.zst *.zip);;Tenon projects (*.tenon);;"
                                   "Traces (*.json *.gz *.zst *.zip);;All files (*)");
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
  bench_.fail("The other window did not open", program + " could not be started",
              QString("Start one in a terminal: tenon %1").arg(bench_.file()));
}

void MainWindow::choose_recent() {
  auto files = [this](const QString& typed) {
    std::vector<Picker::Item> items;
    for (const settings::RecentFile& recent : settings::recent()) {
      const QString path = QString::fromStdString(recent.path);
      if (fuzzy_score(typed.toStdString(), recent.path) < 0) continue;
      items.push_back({QFileInfo(path).fileName(), QFileInfo(path).absolutePath(), QString::fromStdString(recent.kind),
                       [this, path] { bench_.open(path); }});
    }
    return items;
  };
  picker_->open("Open a file again", files, [](const QString& typed) -> QStringList {
    const auto known = settings::recent().size();
    if (known == 0) return {"No file was opened yet. File › Open… (Ctrl+O) opens the first."};
    return {QString("Nothing fits “%1” among the %2 files opened last.").arg(typed).arg(known),
            "Type letters of the file's name or folder, in their order; File › Open… finds any file."};
  });
}

void MainWindow::choose_template() {
  picker_->open(
      "Start a project from a template",
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
            add(t.name + " with my data…", "You choose: " + t.own_data.what,
                [this, name = t.name] { choose_data(name); });
        }
        std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        std::vector<Picker::Item> items;
        for (auto& [score, item] : found) items.push_back(std::move(item));
        return items;
      },
      [](const QString& typed) -> QStringList {
        return {QString("Nothing fits “%1” among the %2 templates.").arg(typed).arg(templates().size()),
                "Type letters of a template's name or of what it does, in their order."};
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
  const QString title = "The data: " + QString::fromStdString(own.what);
  const QString folder = bench_.has_project() ? QFileInfo(bench_.file()).dir().path() : QDir::currentPath();
  const QString data = own.place == Template::OwnData::Place::file
                           ? QFileDialog::getOpenFileName(this, title, folder)
                           : QFileDialog::getExistingDirectory(this, title, folder);
  if (!data.isEmpty()) begin_project(template_name, data);
}

void MainWindow::begin_project(const std::string& template_name, const QString& data) {
  const QString name = template_name.empty() ? "model" : QString::fromStdString(template_name);
  const QDir folder = bench_.has_project() ? QFileInfo(bench_.file()).dir() : QDir::current();
  // Nothing is ever replaced by a new project: a name that is taken is told of.
  const QString path =
      ask_where("Where the project goes", folder.filePath(name + ".tenon"), {"Tenon projects (*.tenon)"}, false);
  if (!path.isEmpty()) bench_.create(path, template_name, data);
}

void MainWindow::choose_copy() {
  if (!bench_.has_project()) return;
  const QFileInfo project(bench_.file());
  const QString path =
      ask_where("Save a copy of the project", project.dir().filePath(project.completeBaseName() + "-copy.tenon"),
                {"Tenon projects (*.tenon)"});
  // The dialog has asked where the file is there; one that comes to be meanwhile is not replaced.
  if (!path.isEmpty()) bench_.save_copy(path, QFileInfo::exists(path));
}

void MainWindow::choose_import() {
  const QString path = QFileDialog::getOpenFileName(
      this, "Import a trace or a memory snapshot into the project", QFileInfo(bench_.file()).dir().path(),
      "Traces and memory snapshots (*.json *.gz *.zst *.zip *.pickle *.pkl);;All files (*)");
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
