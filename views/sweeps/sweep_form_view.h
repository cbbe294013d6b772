#pragma once
#include <QPointer>
#include <QWidget>

#include "views/frame/widgets.h"
#include "views/sweeps/sweep_draft.h"

class QGridLayout;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace tenon::views {

/// The form of a new sweep: the keys with what they may be, and how they are searched.
class SweepForm : public QWidget {
  Q_OBJECT
 public:
  explicit SweepForm(QWidget* parent);
  /// Of another project.
  void reset(const Recipe& recipe);
  void set_recipe(const Recipe& recipe);
  /// Whether a sweep could begin now; else why not, in words.
  void set_ready(bool ready, const QString& why);
  void focus_keys();

  std::function<void(const std::string& name, const SweepDraft& draft)> on_begin;

 private:
  void rebuild_keys();
  void rebuild_attrs();
  void add_key_row(QGridLayout* grid, int at);
  void explain(QLineEdit* line, int at);
  void refresh();

  SweepDraft draft_;
  QVBoxLayout* box_;
  QPointer<QWidget> keys_, attrs_;
  QLineEdit* name_;
  QLabel* said_;
  QPushButton* begin_;
  bool ready_ = false;
  QString why_not_;
};

}  // namespace tenon::views
