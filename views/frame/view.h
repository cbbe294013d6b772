#pragma once
#include <QStackedWidget>
#include <QWidget>

#include "views/canvas/scene_canvas.h"
#include "views/frame/widgets.h"
#include "views/shell/workbench.h"

namespace tenon::views {

/// The Qt half of a view: a page of controls, canvas and tables, or one sentence where there is nothing to show.
class View : public QWidget {
  Q_OBJECT
 public:
  View(QString id, QString title, QString icon, Workbench& bench, QWidget* parent = nullptr);
  const QString& id() const { return id_; }
  const QString& title() const { return title_; }
  const QString& icon_name() const { return icon_; }
  SceneCanvas* canvas() const { return canvas_; }
  virtual void set_theme(ThemeName theme);
  /// On a small screen a view is cut off rather than the window made larger than the screen.
  QSize minimumSizeHint() const override { return {160, 100}; }
  /// Nothing waits to be drawn.
  virtual bool idle() const { return !canvas_ || canvas_->idle(); }

 protected:
  SceneCanvas* make_canvas(CanvasModel& model);
  /// What stands over the content: shown while `set_empty` says so.
  void set_content(QWidget* content);
  /// The canvas with its table twin under it; a switch in the bar shows and hides it.
  QWidget* with_table(SceneCanvas* canvas, ViewBar* bar, std::function<Table()> table);
  /// Fills the twin anew where it is shown.
  void refresh_table();
  void set_empty(bool empty, const QString& sentence = {}, const QString& button = {}, std::function<void()> run = {});
  /// The empty state that all views of a step share; true where there is a step to show.
  bool step_state(const QString& what);

  Workbench& bench_;
  ThemeName theme_ = ThemeName::dark;
  QStackedWidget* stack_;
  EmptyState* empty_;

 private:
  QString id_, title_, icon_;
  SceneCanvas* canvas_ = nullptr;
  TableList* twin_ = nullptr;
  std::function<Table()> twin_table_;
};

}  // namespace tenon::views
