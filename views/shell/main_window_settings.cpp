// What a person sets, help, and what is taken out of a view: pictures and tables.
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QMenu>
#include <QTabBar>
#include <array>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "core/parallel.h"
#include "views/canvas/glyphs.h"
#include "views/frame/picture.h"
#include "views/shared/format.h"
#include "views/shared/settings.h"
#include "views/shell/help_panel.h"
#include "views/shell/main_window.h"
#include "views/shell/settings_dialog.h"
#include "views/shell/tour.h"

namespace tenon::views {

void MainWindow::add_help_commands() {
  commands_.add({.id = "tools.settings",
                 .title = tr_later("Settings…"),
                 .menu = "Tools",
                 .keys = "Ctrl+,",
                 .icon = "settings",
                 .run = [this] { open_settings(); },
                 .section = 9});
  commands_.add({.id = "tools.empty_cache", .title = tr_later("Empty the cache folder"), .menu = {}, .run = [this] {
                   empty_cache({});
                 }});
  commands_.add({.id = "help.view",
                 .title = tr_later("What this view shows"),
                 .menu = "Help",
                 .keys = "F1",
                 .icon = "help",
                 .run = [this] { open_help(); }});
  commands_.add({.id = "help.keys", .title = tr_later("Keys…"), .menu = "Help", .keys = "Ctrl+F1", .run = [this] {
                   open_keys();
                 }});
  commands_.add({.id = "help.tour",
                 .title = tr_later("Take the tour"),
                 .menu = "Help",
                 .run =
                     [this] {
                       start_aside_ = false;
                       tour_->start();
                       refresh_start();
                     },
                 .enabled = [this] { return nothing_open() && !tour_->running(); },
                 .section = 1});
}

void MainWindow::keep(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& e) {
    bench_.fail(tr("The setting was not kept"), QString::fromStdString(e.message()), QString::fromStdString(e.hint()));
  }
}

/// In the background: the disk may be busy, with what was read of that very file.
void MainWindow::remember(const std::string& path, const std::string& kind) {
  if (!remembers_) return;
  bench_.files.start(
      "remember " + QString::fromStdString(path), tr("Keep the file among those of before"),
      [path, kind](const Jobs::Report&, const std::atomic<bool>&) { settings::add_recent(path, kind); }, [] {},
      [this](const QString& message, const QString& hint) {
        bench_.fail(tr("The setting was not kept"), message, hint);
      },
      true);
}

void MainWindow::use_settings() {
  for (const AttrDef& def : settings::defs()) use_setting(def.name);
  for (const auto& [command, keys] : settings::shortcuts())
    if (commands_.find(QString::fromStdString(command)))
      commands_.set_keys(QString::fromStdString(command), QString::fromStdString(keys));
}

void MainWindow::use_setting(const std::string& name) {
  if (name == "theme") {
    ThemeName theme = system_theme();
    parse_theme(QString::fromStdString(settings::text(name)), theme);
    if (theme != theme_) set_theme(theme);
  } else if (name == "text_size") {
    set_text_size(static_cast<int>(settings::integer(name)));
  } else if (name == "threads") {
    // It waits for the op that is at work.
    bench_.files.start(
        "threads", tr("Change the number of threads"),
        [n = settings::integer(name)](const Jobs::Report&, const std::atomic<bool>&) {
          set_num_threads(static_cast<int>(n));
        },
        [] {}, {}, true);
  } else if (name == "cache_limit") {
    cache::set_limit(settings::cache_bytes());
    bench_.files.start(
        "cache limit", tr("Keep the cache folder within its limit"),
        [](const Jobs::Report&, const std::atomic<bool>&) { cache::make_room(); },
        [this] {
          if (auto* dialog = findChild<SettingsDialog*>()) dialog->refresh();
        },
        {}, true);
  }
}

/// `then`: on the UI thread, once it is done.
void MainWindow::empty_cache(const std::function<void()>& then) {
  bench_.files.start(
      "empty cache", tr("Empty the cache folder"),
      [](const Jobs::Report&, const std::atomic<bool>&) { return cache::empty(); },
      [this, then](const cache::Held& gone) {
        bench_.log(tr("Emptied the cache folder %1: %2 in %3 files")
                       .arg(QString::fromStdString(cache::folder()),
                            QString::fromStdString(format_bytes(static_cast<double>(gone.bytes))))
                       .arg(gone.files));
        if (then) then();
      });
}

/// Widgets take their font when they are made: those that have one of the faces get the same face in its new size.
void MainWindow::set_text_size(int pixels) {
  if (pixels == text_size()) return;
  std::array<QFont, kFaces> before;
  for (int i = 0; i < kFaces; ++i) before[i] = face_font(static_cast<Face>(i));
  QList<std::pair<QPointer<QWidget>, Face>> own;
  for (QWidget* w : qApp->allWidgets()) {
    if (!w->testAttribute(Qt::WA_SetFont)) continue;
    for (int i = 0; i < kFaces; ++i)
      if (w->font().family() == before[i].family() && w->font().pixelSize() == before[i].pixelSize() &&
          w->font().weight() == before[i].weight()) {
        own << std::pair(QPointer<QWidget>(w), static_cast<Face>(i));
        break;
      }
  }
  views::set_text_size(pixels);
  set_theme(theme_);  // the style sheet puts the fonts back that it found
  for (const auto& [w, face] : own)
    if (w) w->setFont(face_font(face));
}

void MainWindow::open_settings() {
  if (findChild<SettingsDialog*>()) return;
  auto* dialog = new SettingsDialog(commands_, this);
  dialog->on_change = [this](const std::string& name) { use_setting(name); };
  dialog->empty_cache = [this](const std::function<void()>& then) { empty_cache(then); };
  dialog->on_failure = [this](const QString& message, const QString& hint) {
    bench_.fail(tr("The setting was not kept"), message, hint);
  };
  dialog->open();
}

View* MainWindow::current_view() const {
  if (last_view_ && !last_view_->visibleRegion().isEmpty()) return last_view_;
  for (const NamedLayout& l : named_layouts())
    for (const QString& id : views_at(Spot::middle, l))
      if (View* v = view(id); layout_ == l.name && !v->visibleRegion().isEmpty()) return v;
  return nullptr;
}

void MainWindow::open_help() {
  if (help_->isVisible()) return help_->close_help();
  if (View* v = current_view()) help_->open(v, view_commands_.value(v->id()));
}

void MainWindow::save_view_picture() {
  View* v = current_view();
  if (!v) return;
  const QString path =
      ask_where(tr("Save a picture of %1").arg(v->title()), v->id() + ".png", {"PNG (*.png)", "SVG (*.svg)"});
  if (path.isEmpty()) return;
  try {
    write_picture(*v, theme_, path);
    bench_.log(tr("Saved a picture of %1 as %2").arg(v->title(), path));
  } catch (const Error& e) {
    bench_.fail(tr("The picture could not be saved"), QString::fromStdString(e.message()),
                QString::fromStdString(e.hint()));
  }
}

void MainWindow::save_view_table() {
  View* v = current_view();
  const auto table = v ? v->shown_table() : std::nullopt;
  if (!table) return;
  const QString path =
      ask_where(tr("Save the table of %1").arg(v->title()), v->id() + ".csv", {"CSV (*.csv)", "Markdown (*.md)"});
  if (path.isEmpty()) return;
  bench_.files.start(
      "table " + path, tr("Save the table of %1").arg(v->title()),
      [table = *table, path](const Jobs::Report&, const std::atomic<bool>&) {
        const bool markdown = path.endsWith(".md", Qt::CaseInsensitive);
        write_file(path.toStdString(), markdown ? table.markdown() : table.csv());
      },
      [this, path, rows = table->rows.size(), title = v->title()] {
        bench_.log(tr("Saved %1 rows of %2 as %3").arg(rows).arg(title, path));
      },
      [this](const QString& message, const QString& hint) {
        bench_.fail(tr("The table could not be saved"), message, hint);
      });
}

void MainWindow::copy_view_table() {
  const View* v = current_view();
  const auto table = v ? v->shown_table() : std::nullopt;
  if (table) QApplication::clipboard()->setText(QString::fromStdString(table->tabbed()));
}

/// What can be done with a view, where its title or its tab is pressed with the other button.
void MainWindow::open_view_menu(View* view, QPoint at) {
  last_view_ = view;
  commands_.refresh();
  QMenu menu(this);
  for (const char* id : {"picture.view", "table.save", "table.copy"}) menu.addAction(commands_.action(id));
  menu.addSeparator();
  menu.addAction(commands_.action("help.view"));
  menu.exec(at);
}

void MainWindow::contextMenuEvent(QContextMenuEvent* e) {
  for (QTabBar* bar : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
    if (const int tab = bar->isVisible() ? bar->tabAt(bar->mapFrom(this, e->pos())) : -1; tab >= 0)
      for (Dock* d : docks_)
        if (d->windowTitle() == bar->tabText(tab)) return open_view_menu(d->view(), e->globalPos());
}

void MainWindow::add_picture_commands() {
  auto seen = [this] { return current_view() != nullptr; };
  auto table = [this] {
    const View* v = current_view();
    return v && v->has_table();
  };
  auto add = [this](const char* id, const char* title, const char* keys, const char* icon, std::function<void()> run,
                    std::function<bool()> enabled) {
    commands_.add({.id = id,
                   .title = title,
                   .menu = "View",
                   .keys = keys,
                   .icon = icon,
                   .run = std::move(run),
                   .enabled = std::move(enabled),
                   .section = 2});
  };
  add(
      "picture.view", tr_later("Save a picture of this view…"), "Ctrl+P", "export", [this] { save_view_picture(); },
      seen);
  add(
      "table.save", tr_later("Save the table of this view…"), "", "table", [this] { save_view_table(); }, table);
  add(
      "table.copy", tr_later("Copy the table of this view"), "Ctrl+Shift+C", "copy", [this] { copy_view_table(); },
      table);
  commands_.add({"tools.picture", tr_later("Save a picture of the window…"), "Tools", "", "export", [this] {
                   const QPixmap seen = grab();
                   const QString path = ask_where(tr("Save a picture"), "tenon.png", {"PNG (*.png)"});
                   if (path.isEmpty()) return;
                   try {
                     write_picture(seen, path);
                   } catch (const Error& e) {
                     bench_.fail(tr("The picture could not be saved"), QString::fromStdString(e.message()),
                                 QString::fromStdString(e.hint()));
                   }
                 }});
}

}  // namespace tenon::views
