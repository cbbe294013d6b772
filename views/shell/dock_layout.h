#pragma once
#include <QContextMenuEvent>
#include <QDockWidget>
#include <QHash>
#include <QMainWindow>
#include <QToolButton>
#include <functional>

#include "views/frame/theme.h"
#include "views/frame/view.h"
#include "views/frame/view_def.h"

namespace tenon::views {

/// A dock with a slim title that goes away while the dock is a tab (its tab says the same).
class Dock : public QDockWidget {
  Q_OBJECT
 public:
  Dock(View* view, QMainWindow* window);
  View* view() const { return view_; }
  void set_theme(ThemeName theme);
  void update_title();
  /// The other button, on its title or where nothing in the view took it.
  std::function<void(View* view, QPoint at)> on_menu;

 protected:
  void contextMenuEvent(QContextMenuEvent* e) override {
    if (on_menu) on_menu(view_, e->globalPos());
  }

 private:
  View* view_;
  QWidget *bar_, *none_;
  QList<QToolButton*> buttons_;
};

/// A named arrangement of the window. Which view stands where in it the views say themselves (ViewDef::places).
struct NamedLayout {
  const char* name;
  double center_share;  ///< of the height
};
const std::vector<NamedLayout>& named_layouts();
/// Whether a view has a tab in a layout from the beginning.
bool stands_in(const ViewDef& def, const NamedLayout& layout);
/// The ids of the views on a spot of a layout in the order of their tabs, those that do not stand in it last; those
/// below it begin with the one in front.
QStringList views_at(Spot spot, const NamedLayout& layout);
/// The view in front of a layout's middle.
QString leader(const NamedLayout& layout);
/// The layout for a file of a kind where nothing else is open: the one that its view leads; or, where it leads none,
/// the one that is there now if it stands in it, else the first in which it does.
QString layout_of(Document::Kind kind, const QString& now);
/// As if the mouse had moved off the separator that it is on: see Note [Layouts under a held mouse].
void leave_separator(QMainWindow* window);
/// Ends what is being dragged and leaves the separator under the mouse: see Note [Layouts under a held mouse]. Before
/// every change of the docks that no mouse made.
void end_drags(QMainWindow* window, const QHash<QString, Dock*>& docks);
/// Lets go of a tab that is held when its bar changes under the hand, and keeps the window from separators that a hand
/// only slips over: see Note [A held tab] and Note [A hand that slips over a separator].
void guard_drags(QMainWindow* window);
/// Puts the docks (by id) as the layout says.
void arrange(QMainWindow* window, const QHash<QString, Dock*>& docks, const NamedLayout& layout);

}  // namespace tenon::views
