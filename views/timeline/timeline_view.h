#pragma once
#include "views/frame/view.h"

class QLineEdit;
class QTabWidget;

namespace tenon::views {

class TimelineView : public View {
  Q_OBJECT
 public:
  explicit TimelineView(Workbench& bench, QWidget* parent = nullptr);

 private:
  void refresh();
  QLineEdit* search_;
  QLabel* found_;
  QTabWidget* tabs_;
  TableList *operators_, *modules_, *events_;
};

}  // namespace tenon::views
