#include "views/shell/dock_layout.h"

#include <QCursor>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLayout>
#include <QMouseEvent>
#include <QPointer>
#include <QSet>
#include <QTabBar>
#include <QToolButton>
#include <algorithm>
#include <cstring>
#include <utility>

#include "views/canvas/glyphs.h"

namespace tenon::views {

namespace {
/// A dock asks its title for its hint, whatever height was fixed.
class TitleBar : public QFrame {
 public:
  TitleBar(int height, QWidget* parent) : QFrame(parent), height_(height) { setFixedHeight(height); }
  QSize sizeHint() const override { return {60, height_}; }
  QSize minimumSizeHint() const override { return {60, height_}; }

 private:
  int height_;
};
}  // namespace

Dock::Dock(View* view, QMainWindow* window)
    : QDockWidget(view->title(), window), view_(view), none_(new TitleBar(0, this)) {
  setObjectName("dock." + view->id());
  setWidget(view);
  auto* frame = new TitleBar(29, this);
  set_style(frame, "surface", "dock-title");
  auto* row = new QHBoxLayout(frame);
  row->setContentsMargins(12, 0, 4, 0);
  row->setSpacing(0);
  auto* label = new QLabel(view->title(), frame);
  set_style(label, "voice", "secondary");
  row->addWidget(label);
  row->addStretch();
  for (const char* kind : {"float", "close"}) {
    auto* b = new QToolButton(frame);
    b->setProperty("kind", kind);
    const bool floats = QString(kind) == "float";
    b->setToolTip(floats ? tr("Into its own window, or back") : tr("Hide; View shows it again"));
    b->setAccessibleName((floats ? tr("%1 float") : tr("%1 close")).arg(view->title()));
    b->setIconSize({14, 14});
    b->setFixedSize(24, 24);
    set_style(b, "slim", "true");
    connect(b, &QToolButton::clicked, this, [this, floats] {
      if (floats)
        setFloating(!isFloating());
      else
        close();
    });
    row->addWidget(b);
    buttons_ << b;
  }
  bar_ = frame;
  setTitleBarWidget(bar_);
  connect(this, &QDockWidget::topLevelChanged, this, &Dock::update_title);
  connect(this, &QDockWidget::visibilityChanged, this, &Dock::update_title);
  connect(this, &QDockWidget::dockLocationChanged, this, &Dock::update_title);
}

void Dock::set_theme(ThemeName theme) {
  for (QToolButton* b : buttons_) b->setIcon(icon(b->property("kind").toString(), theme, Ink::secondary));
  view_->set_theme(theme);
}

void Dock::update_title() {
  auto* window = qobject_cast<QMainWindow*>(parentWidget());
  bool tab = window && !isFloating() && !window->tabifiedDockWidgets(this).isEmpty();
  QWidget* wanted = tab ? none_ : bar_;
  if (titleBarWidget() == wanted) return;
  setTitleBarWidget(wanted);
  none_->setVisible(tab);
  bar_->setVisible(!tab);
}

const std::vector<NamedLayout>& named_layouts() {
  static const std::vector<NamedLayout> layouts{{tr_later("Build"), 0.66},
                                                {tr_later("Train"), 0.8},
                                                {tr_later("Profile"), 0.58},
                                                {tr_later("Memory"), 0.56},
                                                {tr_later("Debug"), 0.46}};
  return layouts;
}

namespace {
/// Where a view stands in a layout: the place it asks for there, or its usual one.
ViewDef::Place place_of(const ViewDef& def, const NamedLayout& layout) {
  for (const ViewDef::Place& p : def.places)
    if (std::strcmp(p.layout, layout.name) == 0) return p;
  return {layout.name, def.spot, def.rank};
}
}  // namespace

bool stands_in(const ViewDef& def, const NamedLayout& layout) {
  return def.layouts.empty() || std::any_of(def.layouts.begin(), def.layouts.end(),
                                            [&](const char* name) { return std::strcmp(name, layout.name) == 0; });
}

QStringList views_at(Spot spot, const NamedLayout& layout) {
  std::vector<std::pair<int, QString>> found;
  for (const ViewDef& def : view_defs())
    if (const ViewDef::Place p = place_of(def, layout); p.spot == spot) found.emplace_back(p.rank, def.id);
  // Those that are there only when asked for stand last, and in front of nothing.
  const auto late = [&](const auto& one) { return !stands_in(view_defs().at(one.second.toStdString()), layout); };
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto& a, const auto& b) { return late(a) != late(b) ? late(b) : a.first < b.first; });
  QStringList ids;
  for (const auto& [rank, id] : found) ids << id;
  return ids;
}

QString leader(const NamedLayout& layout) {
  for (const ViewDef& def : view_defs())
    if (place_of(def, layout).leads) return def.id;
  return views_at(Spot::middle, layout).value(0);
}

QString layout_of(Document::Kind kind, const QString& now) {
  QString first;
  for (const ViewDef& def : view_defs()) {
    if (def.opens != kind) continue;
    for (const NamedLayout& l : named_layouts())
      if (place_of(def, l).leads) return l.name;
    for (const NamedLayout& l : named_layouts()) {
      if (!stands_in(def, l)) continue;
      if (now == l.name) return now;
      if (first.isEmpty()) first = l.name;
    }
  }
  return first.isEmpty() ? now : first;
}

/// Note [Layouts under a held mouse]
/// While a separator or a dock is dragged Qt keeps the path to it in the layout. A layout that changes under the hand
/// (a shortcut pressed in the middle of a drag) leaves that path behind, and Qt's next look at it ends the program. So
/// the drag ends first, as if let go. It keeps the path to the separator under the mouse, too, so that one is left: the
/// mouse's next move finds what is under it anew.
void leave_separator(QMainWindow* window) {
  QHoverEvent leave(QEvent::HoverLeave, QPointF(-1, -1), QPointF(-1, -1), QPointF(-1, -1));
  QCoreApplication::sendEvent(window, &leave);
}

void end_drags(QMainWindow* window, const QHash<QString, Dock*>& docks) {
  leave_separator(window);
  if (QGuiApplication::mouseButtons() == Qt::NoButton) return;
  auto let_go = [](QWidget* w) {
    const QPointF at = w->mapFromGlobal(QCursor::pos());
    QMouseEvent release(QEvent::MouseButtonRelease, at, w->mapToGlobal(at), Qt::LeftButton, Qt::NoButton,
                        Qt::NoModifier);
    QCoreApplication::sendEvent(w, &release);
  };
  for (Dock* d : docks) let_go(d);
  let_go(window);
}

/// Note [A held tab]
/// A bar of tabs remembers the index that was pressed until it hears of the release. A bar that is hidden, or gets or
/// loses a tab, while the mouse is down hears of none: the mouse is no longer its own. Qt uses the bar again for other
/// docks, and the next move over it begins to drag a tab of that index, which may not exist: Qt 6.4 reads past the end
/// of its list. So the bar is told of a release as soon as its tabs are not those that were pressed, or a move comes
/// with no button down, or another bar is pressed. And a bar none of whose docks stands in the window any more drags
/// nothing: Qt looks for its place in the layout and does not expect that there is none. Nor does one whose docks were
/// put to other places one by one.
///
/// Note [A hand that slips over a separator]
/// A dock that is taken by the end of its title passes over the separator beside it before it is far enough from where
/// it was pressed to be dragged. Qt keeps the path to that separator, too, and the dock that leaves takes it away. So
/// the window hears of no mouse on its way while a button is held whose press it was not told of (it is told of those
/// on separators).
namespace {
class DragGuard : public QObject {
 public:
  explicit DragGuard(QMainWindow* window) : QObject(window), window_(window) {
    for (QObject* child : window->children()) watch(child);
    window->installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* object, QEvent* e) override {
    if (object == window_) return of_window(e);
    auto* bar = qobject_cast<QTabBar*>(object);
    if (!bar) return false;
    const auto* mouse = e->type() >= QEvent::MouseButtonPress && e->type() <= QEvent::MouseMove
                            ? static_cast<QMouseEvent*>(e)
                            : nullptr;
    if (e->type() == QEvent::MouseMove && !stands(bar)) {
      if (held_ == bar) let_go();
      return true;
    }
    if (mouse && mouse->button() == Qt::LeftButton && e->type() != QEvent::MouseButtonRelease) {
      if (held_ && held_ != bar) let_go();
      held_ = bar, tabs_ = bar->count();
    } else if (mouse && mouse->button() == Qt::LeftButton && held_ == bar)
      held_ = nullptr;
    else if (held_ == bar && (e->type() == QEvent::Hide || bar->count() != tabs_ ||
                              (mouse && !mouse->buttons().testFlag(Qt::LeftButton))))
      let_go();
    return false;
  }

 private:
  bool of_window(QEvent* e) {
    const bool held = QGuiApplication::mouseButtons() != Qt::NoButton;
    if (e->type() == QEvent::ChildPolished) watch(static_cast<QChildEvent*>(e)->child());
    if (e->type() == QEvent::MouseButtonPress) told_ = true;
    if (!held) told_ = false;
    return (e->type() == QEvent::HoverMove || e->type() == QEvent::MouseMove) && held && !told_;
  }
  void watch(QObject* child) {
    auto* bar = qobject_cast<QTabBar*>(child);
    if (!bar) return;
    bar->installEventFilter(this);
    bar->setElideMode(Qt::ElideNone);  // where there is no room for all of them they scroll: nobody reads "T…"
  }
  /// The layout has a place for the bar: docks of its tabs are in it, all of them tabbed with each other, and one of
  /// them is seen at the bar's edge. (A tab's data is its dock's address, which may be that of one long gone.) A layout
  /// that waits to be made anew is made first: the bars that it has no use for lose their tabs then, but not all of
  /// them.
  static bool stands(const QTabBar* bar) {
    const auto* window = qobject_cast<QMainWindow*>(bar->parentWidget());
    if (!window) return true;
    window->layout()->activate();
    QSet<QDockWidget*> there, together;
    for (QDockWidget* d : window->findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly))
      for (int i = 0; i < bar->count(); ++i)
        if (reinterpret_cast<quintptr>(d) == bar->tabData(i).value<quintptr>() && !d->isHidden() && !d->isFloating() &&
            window->dockWidgetArea(d) != Qt::NoDockWidgetArea)
          there << d;
    if (there.isEmpty()) return false;
    QDockWidget* first = *there.begin();
    together << first;
    for (QDockWidget* d : window->tabifiedDockWidgets(first)) together << d;
    const QRect b = bar->geometry();
    constexpr int kNear = 12;
    const bool seen = std::any_of(there.begin(), there.end(), [&](const QDockWidget* d) {
      const QRect at = d->geometry();
      return std::abs(at.left() - b.left()) < kNear &&
             (std::abs(at.bottom() - b.top()) < kNear || std::abs(at.top() - b.bottom()) < kNear);
    });
    return seen && together.contains(there);
  }
  void let_go() {
    QTabBar* bar = std::exchange(held_, QPointer<QTabBar>());
    const QPointF beside(-1, -1);
    QMouseEvent release(QEvent::MouseButtonRelease, beside, bar->mapToGlobal(beside), Qt::LeftButton, Qt::NoButton,
                        Qt::NoModifier);
    QCoreApplication::sendEvent(bar, &release);
  }
  QMainWindow* window_;
  bool told_ = false;  ///< the window, of the press of what is held
  QPointer<QTabBar> held_;
  int tabs_ = 0;  ///< of the bar, when it was pressed
};
}  // namespace

void guard_drags(QMainWindow* window) { new DragGuard(window); }

void arrange(QMainWindow* window, const QHash<QString, Dock*>& docks, const NamedLayout& layout) {
  end_drags(window, docks);
  for (Dock* d : docks) {
    if (d->isFloating()) d->setFloating(false);
    window->removeDockWidget(d);
  }
  auto first = [&](Spot spot) { return docks[views_at(spot, layout).first()]; };
  Dock *left = first(Spot::left), *middle = first(Spot::middle), *right = first(Spot::right),
       *below = first(Spot::below);
  window->addDockWidget(Qt::LeftDockWidgetArea, left);
  window->addDockWidget(Qt::LeftDockWidgetArea, middle);
  window->splitDockWidget(left, middle, Qt::Horizontal);
  window->addDockWidget(Qt::LeftDockWidgetArea, right);
  window->splitDockWidget(middle, right, Qt::Horizontal);
  window->addDockWidget(Qt::LeftDockWidgetArea, below);
  window->splitDockWidget(middle, below, Qt::Vertical);
  for (Spot spot : {Spot::left, Spot::middle, Spot::right, Spot::below})
    for (const QString& id : views_at(spot, layout).mid(1)) window->tabifyDockWidget(first(spot), docks[id]);
  // Those that do not stand here have their place all the same: they come to it when they are asked for.
  for (const ViewDef& def : view_defs()) docks[def.id]->setVisible(stands_in(def, layout));
  for (Dock* d : {left, right, docks[leader(layout)], below}) d->raise();
  const int w = window->width(), h = window->height() - 110;
  // On a small screen the sides give way before the middle does.
  const int side = std::clamp(w * 15 / 100, 184, 216), details = std::clamp(w * 21 / 100, 220, 304);
  window->resizeDocks({left, middle, right}, {side, std::max(w - side - details, 1), details}, Qt::Horizontal);
  window->resizeDocks({middle, below},
                      {static_cast<int>(h * layout.center_share), static_cast<int>(h * (1 - layout.center_share))},
                      Qt::Vertical);
  for (Dock* d : docks) d->update_title();
}

}  // namespace tenon::views
