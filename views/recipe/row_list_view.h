#pragma once
#include <QWidget>
#include <functional>

class QGridLayout;
class QToolButton;

namespace tenon::views {

/// Rows of a recipe's list that are made anew whenever what they say changes, and the button below that adds one.
class RowList : public QWidget {
  Q_OBJECT
 protected:
  explicit RowList(QWidget* parent);
  /// `fill` puts every row, and the button that adds one, into an empty grid. The hand goes on where it was; where that
  /// is gone, at the button, whose name is `add`.
  void rebuild(const QString& add, const std::function<void(QGridLayout*)>& fill);
  /// What the rows stand in; null before the first rebuild().
  QWidget* rows() const { return list_; }
  /// A small button whose tip says what it does, also to who cannot see it.
  static QToolButton* slim_button(const QString& name, const QString& text, const QString& tip, QWidget* parent);

 private:
  QWidget* list_ = nullptr;
};

}  // namespace tenon::views
