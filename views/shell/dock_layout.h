#pragma once
#include <QDockWidget>
#include <QHash>
#include <QMainWindow>
#include <QToolButton>

#include "views/frame/theme.h"
#include "views/frame/view.h"

namespace tenon::views {

/// A dock with a slim title that goes away while the dock is a tab (its tab says the same).
class Dock : public QDockWidget {
  Q_OBJECT
 public:
  Dock(View* view, QMainWindow* window);
  View* view() const { return view_; }
  void set_theme(ThemeName theme);
  void update_title();

 private:
  View* view_;
  QWidget *bar_, *none_;
  QList<QToolButton*> buttons_;
};

/// The named arrangements of the window. One row each: which view leads the centre, which the bottom.
struct NamedLayout {
  const char* name;
  const char* center;               ///< the tab in front
  std::vector<const char*> bottom;  ///< docks below it, the first in front
  double center_share;              ///< of the height
};
const std::vector<NamedLayout>& named_layouts();
/// Ends what is being dragged: see Note [Layouts under a held mouse]. Before every change of the docks that no mouse
/// made.
void end_drags(QMainWindow* window, const QHash<QString, Dock*>& docks);
/// Puts the docks (by id) as the layout says; those that it does not name are tabs of the centre.
void arrange(QMainWindow* window, const QHash<QString, Dock*>& docks, const NamedLayout& layout);

}  // namespace tenon::views
