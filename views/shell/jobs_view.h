#pragma once
#include <QTimer>

#include "views/frame/view.h"

class QGridLayout;
class QPlainTextEdit;

namespace tenon::views {

/// Running and waiting jobs with their progress and a way to cancel them.
class JobsView : public View {
  Q_OBJECT
 public:
  explicit JobsView(Workbench& bench, QWidget* parent = nullptr);

 private:
  void refresh();
  QWidget* page_;
  QWidget* rows_ = nullptr;
  QTimer timer_;
  std::vector<int> shown_;
};

class LogView : public View {
  Q_OBJECT
 public:
  explicit LogView(Workbench& bench, QWidget* parent = nullptr);
  void set_theme(ThemeName theme) override;

 private:
  void add(const QString& line, bool bad);
  QPlainTextEdit* text_;
};

}  // namespace tenon::views
