#include "views/shell/main_window.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QMimeData>
#include <QScreen>
#include <QToolBar>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "views/shared/format.h"
#include "views/shared/settings.h"
#include "views/shell/help_panel.h"
#include "views/shell/start_page.h"
#include "views/shell/tour.h"

namespace tenon::views {

MainWindow::MainWindow(Workbench& bench, ThemeName theme, QWidget* parent)
    : QMainWindow(parent), bench_(bench), theme_(theme), commands_(this) {
  apply_theme(*qApp, theme);  // before the first widget: fonts are taken over when a widget is made
  setObjectName("tenon.window");
  setWindowTitle("Tenon");
  setWindowIcon(QIcon(":/icons/tenon.svg"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  // Not animated: while a dock slides to its place Qt 6.4 keeps two states of the layout, and a press on a separator in
  // that time found items of the one in the other, freed.
  setDockOptions(AllowNestedDocks | AllowTabbedDocks);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  setDocumentMode(true);
  guard_drags(this);
  // Its first size, with room for the frame and title that the desktop draws round it.
  resize(QSize(1440, 900).boundedTo(screen()->availableSize() - QSize(8, 40)));

  for (const ViewDef& def : view_defs()) docks_.insert(def.id, new Dock(def.make(def, bench, this), this));
  add_commands();
  add_view_commands();
  start_ = new StartPage(bench_, commands_, this);
  start_->hide();
  help_ = new HelpPanel(commands_, this);
  picker_ = new Picker(this);
  build_menus();
  build_bar();
  build_banner();
  tour_ = new Tour(bench_, commands_, this);
  addToolBarBreak();
  addToolBar(Qt::TopToolBarArea, tour_);
  tour_->hide();
  build_status();
  for (Dock* d : docks_) d->on_menu = [this](View* view, QPoint at) { open_view_menu(view, at); };
  start_->on_template = [this](const std::string& name) { begin_project(name); };
  start_->on_tour = [this] { commands_.run("help.tour"); };
  start_->on_no_tour = [this] {
    keep([] { settings::set_tour_seen(true); });
    start_->refresh();
  };
  start_->on_forget = [this](const QString& path) { forget_file(path); };
  tour_->make_project = [this] { begin_project("spirals"); };
  tour_->on_seen = [this] {
    keep([] { settings::set_tour_seen(true); });
    refresh_start();
    focus_view();
  };
  set_layout(layout_);

  connect(&bench_, &Workbench::project_changed, this, [this] {
    refresh_title();
    if (bench_.file() != property("file").toString()) {
      setProperty("file", bench_.file());
      if (bench_.has_project()) remember(bench_.file().toStdString(), "project");
      problem_over();
      restore_window();
      refresh_start();
    }
    refresh_bar();
  });
  connect(&bench_, &Workbench::documents_changed, this, [this] {
    if (bench_.documents().size() > documents_) {
      problem_over();
      remember(bench_.documents().back().path, name(bench_.documents().back().kind));
    }
    documents_ = bench_.documents().size();
    refresh_start();
    refresh_title();
    refresh_bar();
  });
  connect(&bench_, &Workbench::run_changed, this, &MainWindow::refresh_bar);
  connect(&bench_, &Workbench::step_changed, this, &MainWindow::refresh_bar);
  connect(&bench_, &Workbench::status_changed, this, [this] {
    refresh_bar();
    refresh_status();
  });
  connect(&bench_, &Workbench::state_changed, this, [this] {
    commands_.refresh();
    refresh_status();
    drop_notice();
  });
  connect(&bench_, &Workbench::selection_changed, this, &MainWindow::refresh_bar);
  connect(&bench_, &Workbench::asked, this, [this](const QString& command) { commands_.run(command); });
  connect(&bench_, &Workbench::quantized_asked, this, &MainWindow::choose_quantized);
  connect(&bench_, &Workbench::leaving, this, &MainWindow::save_window);
  connect(&bench_, &Workbench::problem, this, &MainWindow::show_problem);
  // Of several that are opened at once the others tell nothing of the one that could not be.
  connect(&bench_, &Workbench::open_failed, this, [this] { problem_of_open_ = !bench_.opens_file(); });
  connect(&bench_, &Workbench::notice, this, &MainWindow::show_notice);
  // Behind the start page; who put it aside has arranged what lies there.
  connect(&bench_, &Workbench::first_read, this, [this](Document::Kind kind) {
    if (start_aside_) return;
    before_file_ = layout_;
    file_layout_ = layout_of(kind, layout_);
    if (file_layout_ != layout_) set_layout(file_layout_);
    fronts_below_ = true;
  });
  connect(&bench_, &Workbench::documents_changed, this, &MainWindow::front_below);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
    for (QWidget* w = now; w && isAncestorOf(now); w = w->parentWidget())
      if (auto* v = qobject_cast<View*>(w); v && v != last_view_) {
        last_view_ = v;
        commands_.refresh();
      }
  });
  set_theme(theme);
  commands_.refresh();
  refresh_bar();
  refresh_status();
  refresh_start();
}

MainWindow::~MainWindow() {
  for (const auto& m : bench_.models()) m->on_change = nullptr;
  disconnect(&bench_, nullptr, this, nullptr);
}

View* MainWindow::view(const QString& id) const {
  Dock* d = docks_.value(id);
  return d ? d->view() : nullptr;
}

bool MainWindow::show_view(const QString& id) {
  Dock* d = docks_.value(id);
  if (!d) return false;
  if (nothing_open()) start_aside_ = true;
  refresh_start();
  last_view_ = d->view();
  if (!d->isVisible()) end_drags(this, docks_);
  d->show();
  d->raise();
  if (SceneCanvas* c = d->view()->canvas()) c->setFocus();
  commands_.refresh();  // some are of the view that is seen
  return true;
}

void MainWindow::focus_view() {
  View* v = current_view();
  if (SceneCanvas* c = v ? v->canvas() : nullptr) c->setFocus();
}

void MainWindow::set_theme(ThemeName theme) {
  theme_ = theme;
  apply_theme(*qApp, theme);
  for (Dock* d : docks_) d->set_theme(theme);
  start_->set_theme(theme);
  for (const Command& c : commands_.all())
    if (!c.icon.isEmpty()) commands_.action(c.id)->setIcon(icon(c.icon, theme));
  commands_.refresh();
  update();
}

void MainWindow::set_layout(const QString& name) {
  for (const NamedLayout& l : named_layouts())
    if (name == l.name) {
      layout_ = name;
      hid_below_ = false;
      arrange(this, docks_, l);
    }
  for (QToolButton* b : layout_buttons_) b->setChecked(b->objectName() == "layout." + layout_);
}

/// Below the view of the first file comes one that shows a side of it, too. Where there is none the file has the room:
/// what would lie there is of a project.
void MainWindow::front_below() {
  if (!fronts_below_ || bench_.documents().empty()) return;
  fronts_below_ = false;
  if (bench_.has_project() || layout_ != file_layout_) return;
  const Selection file = Selection::of_document(bench_.documents().front().id, "open");
  for (const NamedLayout& l : named_layouts()) {
    if (layout_ != l.name) continue;
    for (const QString& id : views_at(Spot::below, l)) {
      const ViewDef& def = view_defs().at(id.toStdString());
      if (stands_in(def, l) && def.shows && def.shows(file, bench_)) return docks_[id]->raise();
    }
    end_drags(this, docks_);
    for (const QString& id : views_at(Spot::below, l)) docks_[id]->hide();
    hid_below_ = true;
  }
}

bool MainWindow::event(QEvent* e) {
  const bool done = QMainWindow::event(e);
  if (e->type() == QEvent::LayoutRequest && start_ && !start_->isHidden()) fit_start();
  return done;
}

void MainWindow::showEvent(QShowEvent* e) {
  QMainWindow::showEvent(e);
  if (shown_once_) return;
  shown_once_ = true;
  // Sizes of docks can be set only once the window has its own.
  QTimer::singleShot(0, this, [this] {
    if (!keep_layout_) set_layout(layout_);
  });
  warm_up_.begin();
}

void MainWindow::restore_window() {
  if (!bench_.has_project()) return;
  if (layout_ == std::exchange(file_layout_, {}) && (layout_ != before_file_ || hid_below_)) set_layout(before_file_);
  const nlohmann::json& kept = bench_.window_state();
  bench_.training_model.set_state(kept.is_object() ? kept.value("curves", kept)
                                                   : kept);  // "smoothing" once stood alone
  try {
    restore_from(bench_.window_state());
  } catch (const std::exception& e) {  // whoever wrote it, the project can still be opened
    bench_.log(tr("The window's state in the project is damaged and was left out: %1").arg(e.what()), true);
  }
}

void MainWindow::restore_from(const nlohmann::json& state) {
  if (!state.is_object()) return;
  layout_ = QString::fromStdString(state.value("layout", layout_.toStdString()));
  for (QToolButton* b : layout_buttons_) b->setChecked(b->objectName() == "layout." + layout_);
  QByteArray docks = QByteArray::fromBase64(QByteArray::fromStdString(state.value("docks", "")));
  QByteArray geometry = QByteArray::fromBase64(QByteArray::fromStdString(state.value("geometry", "")));
  if (property("sizeFixed").isNull() && !geometry.isEmpty()) restoreGeometry(geometry);
  end_drags(this, docks_);
  if (property("sizeFixed").isNull() && !docks.isEmpty() && restoreState(docks, 1)) {
    keep_layout_ = true;
    for (Dock* d : docks_) d->update_title();
  } else {
    set_layout(layout_);
  }
  tour_->refresh();
  Selection left = parse_selection(state.value("selection", ""));  // what belongs to a step would need its replay first
  if (left.kind == Selection::Kind::module || left.kind == Selection::Kind::run) bench_.select(left);
}

void MainWindow::save_window() {
  if (!bench_.has_project() || bench_.project()->read_only()) return;
  nlohmann::json state{{"layout", layout_.toStdString()},
                       {"docks", saveState(1).toBase64().toStdString()},
                       {"geometry", saveGeometry().toBase64().toStdString()},
                       {"curves", bench_.training_model.state()},
                       {"selection", to_text(bench_.bus.current())}};
  try {
    bench_.project()->set_window_state("window", state);
  } catch (const Error& e) {
    bench_.log(tr("The window's state could not be kept: %1").arg(QString::fromStdString(e.message())), true);
  }
}

void MainWindow::closeEvent(QCloseEvent* e) {
  // A run that waits for room on the disk holds steps that are nowhere else.
  if (bench_.training() && !bench_.status().blocked.empty() && !std::exchange(warned_of_loss_, true)) {
    e->ignore();
    bench_.fail(tr("The window stays open"),
                tr("%1 waits for room on the disk, and what it did since its last checkpoint is not saved")
                    .arg(QString::fromStdString(bench_.status().name)),
                tr("Free some space and it goes on; or close the window again to let those steps go."));
    return;
  }
  save_window();
  bench_.stop();
  QMainWindow::closeEvent(e);
}

void MainWindow::refresh_title() {
  const Document* shown = bench_.shown_document();
  const QString name = shown                  ? QString::fromStdString(shown->title)
                       : bench_.has_project() ? QFileInfo(bench_.file()).fileName()
                                              : QString();
  setWindowTitle(name.isEmpty() ? "Tenon" : name + " – Tenon");
}

void MainWindow::dragEnterEvent(QDragEnterEvent* e) {
  for (const QUrl& u : e->mimeData()->urls())
    if (u.isLocalFile()) e->acceptProposedAction();
}
void MainWindow::dropEvent(QDropEvent* e) {
  for (const QUrl& u : e->mimeData()->urls())
    if (u.isLocalFile()) bench_.open(u.toLocalFile());
}

bool MainWindow::idle() const {
  if (!bench_.idle() || step_timer_.isActive() || warm_up_.under_way()) return false;
  for (Dock* d : docks_)
    if (!d->view()->idle()) return false;
  return true;
}

}  // namespace tenon::views
