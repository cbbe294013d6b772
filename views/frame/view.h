#pragma once
#include <QStackedWidget>
#include <QWidget>
#include <optional>

#include "views/canvas/scene_canvas.h"
#include "views/frame/bench.h"
#include "views/frame/commands.h"
#include "views/frame/table_list.h"
#include "views/frame/view_def.h"
#include "views/frame/widgets.h"

namespace tenon::views {

class WaitStrip;

/// The Qt half of a view: a page of controls, canvas and tables, or one sentence where there is nothing to show.
class View : public QWidget {
  Q_OBJECT
 public:
  View(const ViewDef& def, Bench& bench, QWidget* parent = nullptr);
  const ViewDef& def() const { return def_; }
  QString id() const { return def_.id; }
  QString title() const { return tr(def_.title); }
  SceneCanvas* canvas() const { return canvas_; }
  /// What can be done with the view, for menus, palette and keys; asked once, when the window is made.
  virtual std::vector<Command> commands() { return {}; }
  virtual void set_theme(ThemeName theme);
  /// On a small screen a view is cut off rather than the window made larger than the screen.
  QSize minimumSizeHint() const override { return {160, 100}; }
  /// Nothing waits to be drawn.
  virtual bool idle() const { return !looking_ && (!canvas_ || canvas_->idle()); }
  /// What it shows as rows: the list that is seen, or the canvas's twin; nothing where it has none.
  std::optional<Table> shown_table() const;
  bool has_table() const { return !empty() && (shown_list() || twin_table_); }
  /// One sentence stands in the place of its content.
  bool empty() const { return stack_->currentIndex() == 0; }
  /// It is shown, and not behind the tab of another one, which counts as visible to Qt. What takes time is worked out
  /// for a view that is in sight.
  bool in_sight() const { return isVisible() && !visibleRegion().isEmpty(); }

 protected:
  /// Called where it is in sight after it was shown, came to the front, or look() was called; it may have been before.
  virtual void came_into_sight() {}
  /// Calls that once the docks stand where they will: whether a view is in sight is not known before.
  void look();
  void showEvent(QShowEvent* e) override;
  SceneCanvas* make_canvas(CanvasModel& model);
  /// What stands over the content: shown while `set_empty` says so.
  void set_content(QWidget* content);
  /// The canvas with its table twin under it; a switch in the bar shows and hides it.
  QWidget* with_table(SceneCanvas* canvas, ViewBar* bar, std::function<Table()> table);
  /// Whether what is shown has a twin: a page without one has no switch either.
  void offer_table(bool offered);
  /// Fills the twin anew where it is shown.
  void refresh_table();
  void set_empty(bool empty, const QString& sentence = {}, const QString& button = {}, std::function<void()> run = {});
  /// The empty state while a job works out what would be here: its title, what for, how far it is, and Cancel, which
  /// calls `cancelled` once the job was told.
  void set_waiting(Jobs& jobs, std::function<bool(const Jobs::State&)> which, const QString& what,
                   std::function<void()> cancelled = {});
  /// The empty state that all views of a step share; true where there is a step to show.
  bool step_state(const QString& what);

  Bench& bench_;
  ThemeName theme_ = ThemeName::dark;
  WaitStrip* strip_;  ///< over a step that is still shown while another one is replayed
  QStackedWidget* stack_;
  EmptyState* empty_;

 private:
  const TableList* shown_list() const;

  const ViewDef& def_;
  SceneCanvas* canvas_ = nullptr;
  TableList* twin_ = nullptr;
  QWidget* twin_button_ = nullptr;
  std::function<Table()> twin_table_;
  bool looking_ = false;
};

}  // namespace tenon::views
