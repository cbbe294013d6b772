#include "app/window/jobs.h"

#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <cstdio>

#include "app/window/start.h"
#include "core/error.h"
#include "views/frame/application.h"
#include "views/frame/picture.h"
#include "views/shared/settings.h"
#include "views/shell/main_window.h"

namespace tenon::app {

using namespace views;

namespace {
ThemeName theme_of(const std::string& name) {
  ThemeName theme = system_theme();
  parse_theme(QString::fromStdString(settings::text("theme")), theme);
  QString wanted = name.empty() ? qEnvironmentVariable("TENON_THEME") : QString::fromStdString(name);
  if (!wanted.isEmpty() && !parse_theme(wanted, theme))
    throw Error::usage("there is no theme \"" + wanted.toStdString() + "\"", "dark, light and contrast are the themes");
  return theme;
}
}  // namespace

int open_window(int argc, char** argv, const WindowRequest& options) {
  need_display();
  before_application();
  Application app(argc, argv);
  Workbench bench;
  app.on_exception = [&bench](const QString& where, const QString& message, const QString& hint) {
    bench.caught(where, message, hint);
  };
  const ThemeName theme = theme_of(options.theme);
  MainWindow window(bench, theme);
  window.use_settings();
  if (window.theme() != theme) window.set_theme(theme);  // what this start was told holds over the setting
  window.remember_files();
  if (options.train) window.set_layout("Train");
  window.show();
  for (const Error& e : options.problems)
    emit bench.problem(QObject::tr("A plug-in was left out"), QString::fromStdString(e.message()),
                       QString::fromStdString(e.hint()));
  for (const std::string& file : options.files) bench.open(QString::fromStdString(file), options.train);
  return QApplication::exec();
}

std::vector<PicturedView> pictured_views() {
  std::vector<PicturedView> all;
  for (const ViewDef& def : view_defs()) all.push_back({def.id, def.title, def.help.shows});
  return all;
}

int take_shot(const ShotRequest& options) {
  QStringList names;
  for (const ViewDef& def : view_defs()) names << def.id;
  names << "window";
  // "window/profile" is the whole window in a named layout, "results/curves" a page of a view.
  QString view = QString::fromStdString(options.view), layout = view.section('/', 1);
  view = view.section('/', 0, 0);
  const QString page = view == "window" ? "" : layout;
  bool known_layout = layout.isEmpty() || !page.isEmpty();
  for (const NamedLayout& l : named_layouts()) known_layout |= view == "window" && layout == QString(l.name).toLower();
  if (!names.contains(view) || !known_layout) {
    std::vector<std::string> all;
    for (const QString& n : names) all.push_back(n.toStdString());
    std::string near = near_names(options.view, all.data(), all.size());
    throw Error::usage(
        "there is no view \"" + options.view + "\"" + (near.empty() ? "" : " (" + near + ")"),
        "the views are " + names.join(", ").toStdString() + "; window/train is the window in the layout Train");
  }
  Selection selection = parse_selection(options.select);
  if (!options.select.empty() && !selection)
    throw Error::usage(
        "\"" + options.select + "\" selects nothing",
        "write op:12, tensor:3, grad:4, module:features.3, step:120 or range:0-1000; of a trace event:12; of a model "
        "file weight:fc.weight or node:12");
  if (options.width < 200 || options.height < 150 || options.width > 8000 || options.height > 8000)
    throw Error::usage(
        "a picture of " + std::to_string(options.width) + "x" + std::to_string(options.height) + " is not possible",
        "between 200x150 and 8000x8000");
  need_display();
  qputenv("QT_QPA_PLATFORM", "xcb");  // the offscreen platform cannot draw OpenGL widgets
  qputenv("QT_LOGGING_RULES", "qt.qpa.*=false");
  before_application();
  int argc = 1;
  char name[] = "tenon";
  char* argv[] = {name, nullptr};
  Application app(argc, argv);
  QApplication::setCursorFlashTime(0);
  Workbench bench;
  app.on_exception = [&bench](const QString& where, const QString& message, const QString& hint) {
    bench.caught(where, message, hint);
  };
  bench.set_fixed_clock(true);
  QString problem, hint;
  QObject::connect(&bench, &Workbench::problem, [&](const QString& title, const QString& message, const QString& h) {
    if (problem.isEmpty()) {
      problem = title + ": " + message;
      hint = h;
    }
  });
  MainWindow window(bench, theme_of(options.theme));
  window.setProperty("sizeFixed", true);
  window.setAttribute(Qt::WA_DontShowOnScreen, false);
  window.resize(options.width, options.height);
  window.show();
  auto check = [&](bool settled) {
    if (!problem.isEmpty()) throw Error(problem.toStdString(), hint.toStdString());
    if (!settled) throw Error("the picture was not ready after ten minutes");
  };
  if (!page.isEmpty() && !window.commands().find(view + "." + page)) {
    QStringList pages;
    for (const views::Command& c : window.commands().all())
      if (c.id.startsWith(view + ".")) pages << c.id.section('.', 1);
    throw Error::usage("the view " + view.toStdString() + " has no page \"" + page.toStdString() + "\"",
                       pages.isEmpty() ? "it has one page" : "its pages are " + pages.join(", ").toStdString());
  }
  if (!options.file.empty()) bench.open(QString::fromStdString(options.file));
  check(settle(window));
  if (!options.other.empty()) {
    bench.open(QString::fromStdString(options.other));
    check(settle(window));
  }
  if (!options.run.empty()) {
    std::string known;
    const projects::RunInfo* run = nullptr;
    for (const auto& r : bench.contents().runs) {
      known += (known.empty() ? "" : ", ") + r.name;
      if (r.name == options.run) run = &r;
    }
    if (!run) throw Error::usage("there is no run \"" + options.run + "\" in " + options.file, "the runs are " + known);
    bench.show_run(run->id);
    check(settle(window));
  }
  if (!layout.isEmpty() && page.isEmpty()) {
    window.commands().run("layout." + layout);
    check(settle(window));
  }
  const ViewDef* def = view_defs().find(view.toStdString());
  const QString fill = def && def->fill ? def->fill : "";
  const bool project = bench.has_project();
  bool of_step = fill == "run.replay" || selection.kind == Selection::Kind::op ||
                 selection.kind == Selection::Kind::tensor || selection.kind == Selection::Kind::grad_node ||
                 selection.kind == Selection::Kind::alloc;
  int64_t step = options.step >= 0                         ? options.step
                 : selection.kind == Selection::Kind::step ? selection.id
                 : of_step && project                      ? bench.shown_steps()
                                                           : 0;
  if (project && !fill.isEmpty() && fill != "run.replay")
    window.commands().run(fill);
  else if (step > 0)
    bench.select(Selection::step(step, "shot"));
  check(settle(window));
  if (selection) {
    // What may belong to a step or to a trace belongs to the file that was opened.
    if (const Document* shown = bench.shown_document(); shown && !selection.document) selection.document = shown->id;
    bench.select(selection);
    check(settle(window));
  }
  if (!page.isEmpty()) {
    window.commands().run(view + "." + page);
    check(settle(window));
  }
  QWidget* target = &window;
  if (view != "window") {
    window.show_view(view);
    // A single view fills the picture: its dock floats in a window of that size, without the frame.
    View* widget = window.view(view);
    if (auto* dock = qobject_cast<QDockWidget*>(widget->parentWidget())) dock->setWidget(new QWidget);
    widget->setParent(nullptr);
    widget->resize(options.width, options.height);
    widget->show();
    target = widget;
  }
  if (QWidget* focus = QApplication::focusWidget()) focus->clearFocus();
  check(settle(window));
  const QString output = QString::fromStdString(options.output);
  if (auto* of = qobject_cast<View*>(target))
    write_picture(*of, window.theme(), output);
  else if (output.endsWith(".svg", Qt::CaseInsensitive))
    throw Error::usage(options.output + ": a picture of the whole window is a .png; of one view, also an .svg");
  else
    write_picture(target->grab(), output);
  if (view != "window") delete target;
  return 0;
}

}  // namespace tenon::app
