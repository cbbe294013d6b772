#include "views/frame/flow_layout.h"

#include <algorithm>

namespace tenon::views {

FlowLayout::~FlowLayout() = default;

void FlowLayout::addItem(QLayoutItem* item) { items_.emplace_back(item); }

QLayoutItem* FlowLayout::itemAt(int i) const { return i >= 0 && i < count() ? items_[i].get() : nullptr; }

QLayoutItem* FlowLayout::takeAt(int i) {
  if (i < 0 || i >= count()) return nullptr;
  QLayoutItem* item = items_[i].release();
  items_.erase(items_.begin() + i);
  return item;
}

QSize FlowLayout::sizeHint() const {
  QSize all;
  for (const auto& item : items_) {
    const QSize one = item->sizeHint();
    all = {all.width() + one.width() + gap_, std::max(all.height(), one.height())};
  }
  return all;
}

QSize FlowLayout::minimumSize() const {
  QSize least;
  for (const auto& item : items_) least = least.expandedTo(item->minimumSize());
  return least;
}

void FlowLayout::setGeometry(const QRect& r) {
  QLayout::setGeometry(r);
  lay(r, true);
}

int FlowLayout::lay(const QRect& r, bool place) const {
  int x = r.x(), y = r.y(), line = 0;
  for (const auto& item : items_) {
    const QSize size = item->sizeHint();
    if (x > r.x() && x + size.width() > r.x() + r.width()) {
      x = r.x();
      y += line + gap_;
      line = 0;
    }
    if (place) item->setGeometry({QPoint(x, y), QSize(std::min(size.width(), r.width()), size.height())});
    x += size.width() + gap_;
    line = std::max(line, size.height());
  }
  return y + line - r.y();
}

}  // namespace tenon::views
