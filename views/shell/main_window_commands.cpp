// Everything one can do in the window, as commands; and the two pickers over them.
#include <QAction>
#include <QApplication>
#include <QScreen>
#include <algorithm>

#include "core/error.h"
#include "tracing/record/step_record.h"
#include "views/frame/filter_bar.h"
#include "views/shared/format.h"
#include "views/shared/meaning.h"
#include "views/shared/settings.h"
#include "views/shell/main_window.h"

namespace tenon::views {

using projects::RunStatus;

void MainWindow::add_commands() {
  auto paused = [this] { return bench_.training() && bench_.status().state == RunStatus::State::paused; };
  auto running = [this] {
    return bench_.training() &&
           (bench_.status().state == RunStatus::State::running || bench_.status().state == RunStatus::State::starting);
  };

  add_file_commands();
  commands_.add({"run.train",
                 tr_later("Train"),
                 "Run",
                 "F5",
                 "train",
                 [this] { bench_.train(); },
                 [this, running] {
                   return bench_.has_project() && !running() && bench_.model_fits() && !bench_.files.has("train");
                 },
                 {},
                 [paused] { return paused() ? tr("Resume") : tr("Train"); }});
  commands_.add({"run.go_on",
                 tr_later("Resume this run"),
                 "Run",
                 "",
                 "train",
                 [this] { bench_.go_on(bench_.shown_run()); },
                 [this] { return bench_.can_go_on(bench_.shown_run()); },
                 {},
                 [this] {
                   const auto* r = bench_.shown();
                   return r && bench_.can_go_on(r->id) ? tr("Resume %1").arg(QString::fromStdString(r->name))
                                                       : tr("Resume this run");
                 }});
  commands_.add({"run.pause", tr_later("Pause"), "Run", "F6", "pause", [this] { bench_.pause(); }, running});
  commands_.add({"run.step", tr_later("Step"), "Run", "F10", "step", [this] { bench_.step_once(); },
                 [this, running] {
                   return bench_.has_project() && !running() && bench_.model_fits() && !bench_.files.has("train");
                 }});
  commands_.add({"run.stop", tr_later("Stop"), "Run", "Shift+F5", "stop", [this] { bench_.stop(); },
                 [this] { return bench_.training(); }});
  commands_.add({"run.checkpoint", tr_later("Checkpoint now"), "Run", "Ctrl+S", "checkpoint",
                 [this] { bench_.checkpoint(); }, [this] { return bench_.training(); }});
  commands_.add({"run.replay", tr_later("Replay the last step"), "Run", "Ctrl+R", "rewind",
                 [this] { bench_.select(Selection::step(bench_.shown_steps(), "command")); },
                 [this] { return bench_.shown_steps() > 0; }});
  add_run_commands();
  for (const ViewDef& def : view_defs())
    for (Command& c : view(def.id)->commands()) {
      view_commands_[def.id] << c.id;
      commands_.add(std::move(c));
    }
  add_finish_commands();
  commands_.add({.id = "file.quit",
                 .title = tr_later("Quit"),
                 .menu = "File",
                 .keys = "Ctrl+Q",
                 .icon = "quit",
                 .run = [this] { close(); },
                 .section = 9});

  for (Command& c : filter_commands(bench_)) commands_.add(std::move(c));
  commands_.add(
      {"go.palette", tr_later("All commands…"), "Tools", "Ctrl+Shift+P", "search", [this] { open_palette(); }});
  commands_.add({"go.to", tr_later("Go to…"), "Tools", "Ctrl+K", "search", [this] { open_goto(); }});
  commands_.add({"go.back", tr_later("Back"), "Tools", "Alt+Left", "back", [this] { bench_.bus.back(); },
                 [this] { return bench_.bus.can_go_back(); }});
  commands_.add({"go.forward", tr_later("Forward"), "Tools", "Alt+Right", "forward", [this] { bench_.bus.forward(); },
                 [this] { return bench_.bus.can_go_forward(); }});
  add_picture_commands();
  add_help_commands();
}

void MainWindow::add_view_commands() {
  int key = 1;
  for (const NamedLayout& l : named_layouts()) {
    QString name = l.name;
    commands_.add({"layout." + name.toLower(),
                   tr("Layout: %1").arg(tr(l.name)),
                   "View",
                   QString("Ctrl+%1").arg(key++),
                   "layout",
                   [this, name] {
                     if (nothing_open()) start_aside_ = true;
                     set_layout(name);
                     refresh_start();
                   },
                   {},
                   [this, name] { return layout_ == name; }});
  }
  const bool english = !translation("Show %1");  // another language has its own use of capitals
  for (const ViewDef& def : view_defs()) {
    const QString title = tr(def.title);
    commands_.add({.id = QString("view.") + def.id,
                   .title = tr("Show %1").arg(english ? title.toLower().replace("nan ", "NaN ") : title),
                   .menu = "View",
                   .icon = def.icon,
                   .run = [this, id = QString(def.id)] { show_view(id); },
                   .section = 1});
  }
  for (ThemeName t : {ThemeName::dark, ThemeName::light, ThemeName::contrast}) {
    const QString title = t == ThemeName::contrast ? tr("high contrast")
                          : t == ThemeName::light  ? tr("light")
                                                   : tr("dark");
    commands_.add({"theme." + theme_id(t),
                   tr("Theme: %1").arg(title),
                   "View",
                   "",
                   "",
                   [this, t] {
                     set_theme(t);
                     keep([t] { settings::set("theme", theme_id(t).toStdString()); });
                   },
                   {},
                   [this, t] { return theme_ == t; },
                   {},
                   3});
  }
}

void MainWindow::open_palette() {
  commands_.refresh();
  auto commands = [this](const QString& typed) {
    std::vector<std::pair<int, const Command*>> found;
    for (const Command& c : commands_.all()) {
      if (c.id == "go.palette" || (c.enabled && !c.enabled())) continue;
      int score = fuzzy_score(typed.toStdString(), (c.text ? c.text() : c.title).toStdString());
      if (score >= 0) found.emplace_back(score, &c);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Picker::Item> items;
    for (auto& [score, c] : found)
      items.push_back({c->text ? c->text() : c->title, tr(c->menu.toUtf8().constData()),
                       QKeySequence(c->keys).toString(QKeySequence::NativeText),
                       [this, id = c->id] { commands_.run(id); }});
    return items;
  };
  picker_->open(tr("What do you want to do?"), commands, [this](const QString& typed) {
    QStringList said{tr("Nothing fits “%1” among the commands.").arg(typed),
                     tr("Type letters of what is to be done, in their order: train, theme light, show memory.")};
    QStringList off;
    for (const Command& c : commands_.all())
      if (c.enabled && !c.enabled() && fuzzy_score(typed.toStdString(), c.title.toStdString()) >= 0) off << c.title;
    if (!off.isEmpty() && off.size() <= 3) said.insert(1, tr("Not possible just now: %1.").arg(off.join(", ")));
    return said;
  });
}

/// Every command that has keys; Enter carries one out.
void MainWindow::open_keys() {
  commands_.refresh();
  auto keyed = [this](const QString& typed) {
    std::vector<Picker::Item> items;
    for (const Command& c : commands_.all()) {
      if (c.keys.isEmpty()) continue;
      const QString keys = QKeySequence(c.keys).toString(QKeySequence::NativeText), title = c.text ? c.text() : c.title;
      if (fuzzy_score(typed.toStdString(), (title + " " + keys).toStdString()) < 0) continue;
      items.push_back({title, tr(c.menu.toUtf8().constData()), keys, [this, id = c.id] { commands_.run(id); }});
    }
    return items;
  };
  picker_->open(tr("Keys: type a word or the keys themselves"), keyed, [](const QString& typed) -> QStringList {
    return {tr("Nothing fits “%1” among the commands that have keys.").arg(typed),
            tr("Type a word of the command, or the keys: Ctrl+R. Every command is in Ctrl+Shift+P.")};
  });
}

void MainWindow::open_goto(const QString& typed) {
  picker_->open(
      tr("Go to   @op   #tensor   :step   ?run   or a module"), [this](const QString& t) { return goto_items(t); },
      [this](const QString& t) { return goto_missed(t); }, typed);
}

/// What was searched for it, and what can be typed.
QStringList MainWindow::goto_missed(const QString& typed) const {
  const QChar prefix = typed.isEmpty() ? QChar() : typed[0];
  const bool all = QString("@#:?").indexOf(prefix) < 0;
  const auto& record = bench_.links().record();
  QStringList searched;
  auto add = [&](size_t n, const char* one, const char* many) {
    searched << (n == 1 ? tr(one) : tr(many).arg(QString::fromStdString(format_grouped(static_cast<int64_t>(n)))));
  };
  if (all) add(bench_.builder.spec().layers.size(), tr_later("1 module"), tr_later("%1 modules"));
  if ((all || prefix == '@') && record) add(record->ops.size(), tr_later("1 op"), tr_later("%1 ops"));
  if ((all || prefix == '#') && record) add(record->tensors.size(), tr_later("1 tensor"), tr_later("%1 tensors"));
  if (all || prefix == '?') add(bench_.contents().runs.size(), tr_later("1 run"), tr_later("%1 runs"));
  const QString what = (all ? typed : typed.mid(1)).trimmed();
  QStringList said;
  if (!bench_.has_project())
    said << tr("No project is open: there is nothing to go to.");
  else if (prefix == ':')
    said << (bench_.shown_steps() > 0 ? tr("No step “%1”: steps 1 to %2 were trained.")
                                            .arg(what, QString::fromStdString(format_grouped(bench_.shown_steps())))
                                      : tr("No step was trained yet."));
  else if (!searched.isEmpty())
    said << (record ? tr("Nothing fits “%1” among %2 of step %3.")
                          .arg(what, searched.join(", "), QString::fromStdString(format_grouped(record->step)))
                    : tr("Nothing fits “%1” among %2.").arg(what, searched.join(", ")));
  if (!record && bench_.has_project() && prefix != ':' && prefix != '?')
    said << tr("Ops and tensors are searched once a step is loaded: Ctrl+R replays the last one.");
  said << tr("Type a module's name, @ and an op, # and a tensor, : and a step, ? and a run.");
  return said;
}

std::vector<Picker::Item> MainWindow::goto_items(const QString& typed) {
  std::vector<std::pair<int, Picker::Item>> found;
  QChar prefix = typed.isEmpty() ? QChar() : typed[0];
  bool any = QString("@#:?").indexOf(prefix) < 0;
  std::string q = (any ? typed : typed.mid(1)).trimmed().toStdString();
  auto offer = [&](int score, const std::string& text, const std::string& note, const QString& kind, Selection s) {
    if (score >= 0)
      found.push_back(
          {score, {QString::fromStdString(text), QString::fromStdString(note), kind, [this, s] { bench_.select(s); }}});
  };
  if (prefix == ':') {
    bool ok = false;
    qlonglong step = QString::fromStdString(q).remove(',').toLongLong(&ok);
    int64_t last = bench_.shown_steps();
    if (ok && step >= 1 && step <= last)
      offer(1, views::tr("step {}", format_grouped(step)), views::tr("replay it"), tr("step"),
            Selection::step(step, "go"));
    if (last > 0)
      offer(0, views::tr("step {}", format_grouped(last)), views::tr("the last one"), tr("step"),
            Selection::step(last, "go"));
  }
  if (any)
    for (const LayerSpec& l : bench_.builder.spec().layers)
      offer(fuzzy_score(q, l.name + " " + l.type), l.name, l.type, tr("module"), Selection::module(l.name, "go"));
  if ((any && !q.empty()) || prefix == '@')
    if (const auto& r = bench_.links().record())
      for (const auto& op : r->ops)
        offer(fuzzy_score(q, op_text(op) + " " + module_path(op.origin.module)), op_text(op),
              module_path(op.origin.module), tr("op"), Selection::op(op.seq, "go"));
  if ((any && !q.empty()) || prefix == '#')
    if (const auto& r = bench_.links().record())
      for (size_t i = 0; i < r->tensors.size(); ++i)
        offer(fuzzy_score(q, r->tensors[i].name), r->tensors[i].name, type_text(r->tensors[i]), tr("tensor"),
              Selection::tensor(static_cast<int64_t>(i), "go"));
  if (any || prefix == '?')
    for (const auto& r : bench_.contents().runs)
      offer(fuzzy_score(q, r.name), r.name, views::tr(r.status.c_str()), tr("run"), Selection::run(r.id, "go"));
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (found.size() > 200) found.resize(200);
  std::vector<Picker::Item> items;
  for (auto& [score, item] : found) items.push_back(std::move(item));
  return items;
}

}  // namespace tenon::views
