#pragma once
#include <QHBoxLayout>

class QToolButton;

namespace tenon::views {

/// Controls side by side. Where there is no room for all, the last of the buttons go behind one that lists them: a view
/// in a narrow dock keeps its picture in sight, and every button can be reached.
class BarLayout : public QHBoxLayout {
 public:
  explicit BarLayout(QWidget* bar);
  void add(QWidget* w, int stretch);

  void setGeometry(const QRect& r) override;
  QSize minimumSize() const override;

 private:
  class Item;
  /// A button that may be listed instead; the page that is shown stays.
  static QToolButton* listable(const QLayoutItem* item);
  int width_of(const QLayoutItem* item) const;  ///< with the space beside it; 0: it is not shown
  void fill_list();

  QToolButton* more_;
};

}  // namespace tenon::views
