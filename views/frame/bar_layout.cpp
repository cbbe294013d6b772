#include "views/frame/bar_layout.h"

#include <QAction>
#include <QMenu>
#include <QToolButton>
#include <QWidgetItem>
#include <algorithm>
#include <utility>

#include "views/shared/language.h"

namespace tenon::views {

/// What is listed takes no room. Its widget is not hidden, for that is its view's to say.
class BarLayout::Item : public QWidgetItem {
 public:
  using QWidgetItem::QWidgetItem;
  bool isEmpty() const override { return listed_ || QWidgetItem::isEmpty(); }
  bool listed() const { return listed_; }
  /// What it needs where it is not listed.
  int least() const {
    const bool was = std::exchange(listed_, false);
    const int width = isEmpty() ? 0 : minimumSize().width();
    listed_ = was;
    return width;
  }
  /// Whether that is new. Tab does not lead to what is out of sight.
  bool list(bool on) {
    if (on == listed_) return false;
    listed_ = on;
    if (on) focus_ = widget()->focusPolicy();
    widget()->setFocusPolicy(on ? Qt::NoFocus : focus_);
    return true;
  }

 private:
  mutable bool listed_ = false;
  Qt::FocusPolicy focus_ = Qt::NoFocus;
};

BarLayout::BarLayout(QWidget* bar) : QHBoxLayout(bar), more_(new QToolButton(bar)) {
  more_->setObjectName("bar.more");
  more_->setText("»");
  more_->setToolTip(QString::fromStdString(views::tr("More")));
  more_->setAccessibleName(more_->toolTip());
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setMenu(new QMenu(more_));
  more_->menu()->setToolTipsVisible(true);
  more_->hide();
  QObject::connect(more_->menu(), &QMenu::aboutToShow, more_, [this] { fill_list(); });
}

void BarLayout::add(QWidget* w, int stretch) {
  addChildWidget(w);
  addItem(new Item(w));
  setStretch(count() - 1, stretch);
  QWidget::setTabOrder(w, more_);
  if (auto* button = qobject_cast<QToolButton*>(w))
    QObject::connect(button, &QToolButton::toggled, this, [this] { update(); });  // which are listed depends on it
}

QToolButton* BarLayout::listable(const QLayoutItem* item) {
  auto* button = qobject_cast<QToolButton*>(item->widget());
  return button && !button->isHidden() && !button->isChecked() ? button : nullptr;
}

int BarLayout::width_of(const QLayoutItem* item) const {
  const auto* own = dynamic_cast<const Item*>(item);
  const int least = own ? own->least() : 0;
  return least ? least + spacing() : 0;
}

void BarLayout::setGeometry(const QRect& r) {
  const QMargins margins = contentsMargins();
  const int room = r.width() - margins.left() - margins.right() + spacing();
  int need = 0;
  for (int i = 0; i < count(); ++i) need += width_of(itemAt(i));
  const bool over = need > room;
  const int more = over ? more_->sizeHint().width() + spacing() : 0;
  bool changed = false, any = false, held_focus = false;
  for (int i = count(); i-- > 0;) {
    auto* item = dynamic_cast<Item*>(itemAt(i));
    if (!item) continue;
    const bool listed = need + more > room && listable(item);
    if (listed) need -= width_of(item);
    const bool fresh = item->list(listed);
    changed |= fresh;
    any |= listed;
    held_focus |= fresh && listed && item->widget()->hasFocus();
  }
  if (changed) invalidate();
  QHBoxLayout::setGeometry(r.adjusted(0, 0, any ? -more : 0, 0));
  for (int i = 0; i < count(); ++i)
    if (auto* item = dynamic_cast<Item*>(itemAt(i)); item && item->listed())
      item->widget()->move(r.right() + margins.right() + 1, item->widget()->y());  // beyond the bar
  more_->setVisible(any);
  if (held_focus) more_->setFocus();
  if (!any) return;
  const QSize size = more_->sizeHint();
  more_->setGeometry(r.right() + 1 - margins.right() - size.width(), r.y() + (r.height() - size.height()) / 2,
                     size.width(), size.height());
}

QSize BarLayout::minimumSize() const {
  const QMargins margins = contentsMargins();
  int least = margins.left() + margins.right(), listed = 0;
  for (int i = 0; i < count(); ++i) (listable(itemAt(i)) ? listed : least) += width_of(itemAt(i));
  least += std::min(listed, more_->sizeHint().width() + spacing());
  return {least, QHBoxLayout::minimumSize().height()};
}

void BarLayout::fill_list() {
  QMenu* menu = more_->menu();
  menu->clear();
  for (int i = 0; i < count(); ++i) {
    auto* item = dynamic_cast<Item*>(itemAt(i));
    auto* button = item && item->listed() ? qobject_cast<QToolButton*>(item->widget()) : nullptr;
    if (!button) continue;
    QAction* a = menu->addAction(button->accessibleName().isEmpty() ? button->text() : button->accessibleName());
    a->setObjectName(button->objectName());
    a->setIcon(button->icon());
    a->setToolTip(button->toolTip());
    a->setEnabled(button->isEnabled());
    a->setCheckable(button->isCheckable());
    a->setChecked(button->isChecked());
    if (button->menu())
      a->setMenu(button->menu());
    else
      QObject::connect(a, &QAction::triggered, button, [button] { button->click(); });
  }
}

}  // namespace tenon::views
