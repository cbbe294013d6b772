#pragma once
#include <QLayout>
#include <memory>
#include <vector>

namespace tenon::views {

/// Widgets side by side, in as many lines as the width asks for.
class FlowLayout : public QLayout {
 public:
  explicit FlowLayout(int gap, QWidget* parent = nullptr) : QLayout(parent), gap_(gap) {}
  ~FlowLayout() override;

  void addItem(QLayoutItem* item) override;
  int count() const override { return static_cast<int>(items_.size()); }
  QLayoutItem* itemAt(int i) const override;
  QLayoutItem* takeAt(int i) override;
  QSize sizeHint() const override;
  QSize minimumSize() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return lay({0, 0, width, 0}, false); }
  Qt::Orientations expandingDirections() const override { return {}; }
  void setGeometry(const QRect& r) override;

 private:
  /// The height of the lines in a width; where `place` is set the items go to their places.
  int lay(const QRect& r, bool place) const;

  int gap_;
  std::vector<std::unique_ptr<QLayoutItem>> items_;
};

}  // namespace tenon::views
