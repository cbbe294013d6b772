#pragma once
#include "views/frame/view.h"
#include "views/timeline/timeline_model.h"

class QComboBox;
class QLineEdit;
class QTabWidget;

namespace tenon::views {

class TimelineView : public View {
  Q_OBJECT
 public:
  TimelineView(const ViewDef& def, Bench& bench, QWidget* parent);

  std::vector<Command> commands() override;

 private:
  TimelineModel& model_;
  void refresh();
  void refresh_documents();
  void refresh_found();
  void refresh_tables();
  QComboBox* documents_;
  QLineEdit* search_;
  QLabel* found_;
  QTabWidget* tabs_;
  TableList *operators_, *modules_, *events_, *names_;
};

}  // namespace tenon::views
