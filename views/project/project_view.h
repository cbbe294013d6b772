#pragma once
#include "views/frame/view.h"
#include "views/project/project_model.h"

class QTreeWidget;
class QTreeWidgetItem;

namespace tenon::views {

class ProjectView : public View {
  Q_OBJECT
 public:
  ProjectView(const ViewDef& def, Bench& bench, QWidget* parent);
  void set_theme(ThemeName theme) override;

 private:
  void refresh();
  void mark(const Selection& s);
  void dress(QTreeWidgetItem* item, const ProjectModel::Node& n);
  void bring_up_to_date(QTreeWidgetItem* parent, const std::vector<ProjectModel::Node>& now,
                        const std::vector<ProjectModel::Node>& before);
  QTreeWidget* tree_;
  QString file_;     ///< of the project that is shown
  ModelSpec model_;  ///< of it, as it is shown
  std::vector<ProjectModel::Node> shown_;
  bool filling_ = false;
};

}  // namespace tenon::views
