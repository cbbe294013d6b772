#pragma once
#include <QWidget>
#include <functional>

class QHBoxLayout;
class QLineEdit;
class QToolButton;

namespace tenon::views {

class ElidedLabel;

/// A question below a view: words, a line to type into, buttons that ask, and under them the answer.
class AskBar : public QWidget {
  Q_OBJECT
 public:
  /// `name` begins the names of what is in it: "walk.answer".
  AskBar(const QString& name, const QString& words, QLineEdit* line, QWidget* parent);
  QToolButton* add_button(const QString& name, const QString& text, const QString& tip,
                          const std::function<void()>& run = {});
  ElidedLabel* answer() const { return answer_; }

 private:
  QHBoxLayout* row_;
  ElidedLabel* answer_;
};

}  // namespace tenon::views
