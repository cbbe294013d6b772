#pragma once
#include <QPushButton>
#include <QWidget>
#include <functional>
#include <string>
#include <vector>

#include "views/frame/commands.h"
#include "views/frame/widgets.h"
#include "views/shared/settings.h"
#include "views/shell/workbench.h"

class QBoxLayout;
class QStackedWidget;
class QVBoxLayout;

namespace tenon::views {

/// What one begins with while nothing is open: files of before, templates, the tour. Stands over the docks.
class StartPage : public QWidget {
  Q_OBJECT
 public:
  StartPage(Workbench& bench, Commands& commands, QWidget* parent);
  /// The files of before are looked for anew; those that are gone say so.
  void refresh();
  void set_theme(ThemeName theme);
  std::function<void(const std::string& name)> on_template;
  std::function<void()> on_tour, on_no_tour;
  /// While the tour runs nothing offers it.
  void set_touring(bool on);
  std::function<void(const QString& path)> on_forget;

 protected:
  void resizeEvent(QResizeEvent* e) override;

 private:
  struct Found {
    settings::RecentFile file;
    bool there = false;
  };
  class Line;
  void build();
  QWidget* build_head();
  QWidget* build_tour();
  QWidget* build_templates();
  void show_recent(const std::vector<Found>& files);
  void add_recent(const Found& found);
  void show_work();
  void move_focus(bool down);
  void order_tabs();
  void dress();

  Workbench& bench_;
  Commands& commands_;
  ThemeName theme_ = ThemeName::dark;
  QStackedWidget* stack_;
  EmptyState* work_;
  QBoxLayout* columns_;
  QWidget* tour_;
  QPushButton* no_tour_;
  QVBoxLayout* recent_;
  QList<QWidget*> recent_rows_;
};

}  // namespace tenon::views
