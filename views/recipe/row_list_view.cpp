#include "views/recipe/row_list_view.h"

#include <QApplication>
#include <QGridLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/widgets.h"

namespace tenon::views {

RowList::RowList(QWidget* parent) : QWidget(parent) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 4);
  box->setSpacing(6);
}

void RowList::rebuild(const QString& add, const std::function<void(QGridLayout*)>& fill) {
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && list_ && list_->isAncestorOf(w)) focused = w->objectName();
  if (list_) {
    for (QWidget* w : list_->findChildren<QWidget*>()) w->blockSignals(true);  // hiding a line would end its edit
    layout()->removeWidget(list_);
    discard(list_);
  }
  list_ = new QWidget(this);
  auto* grid = new QGridLayout(list_);
  grid->setContentsMargins(0, 0, 0, 0);
  fill(grid);
  layout()->addWidget(list_);
  list_->show();
  if (focused.isEmpty()) return;
  QWidget* w = list_->findChild<QWidget*>(focused);
  (w && w->isEnabled() ? w : list_->findChild<QWidget*>(add))->setFocus();
}

QToolButton* RowList::slim_button(const QString& name, const QString& text, const QString& tip, QWidget* parent) {
  auto* b = new QToolButton(parent);
  b->setObjectName(name);
  b->setText(text);
  b->setToolTip(tip);
  b->setAccessibleName(tip);
  set_style(b, "slim", "true");
  return b;
}

}  // namespace tenon::views
