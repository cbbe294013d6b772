#pragma once
#include "views/shell/view.h"

class QTreeWidget;
class QTreeWidgetItem;

namespace tenon::views {

class ProjectView : public View {
  Q_OBJECT
 public:
  explicit ProjectView(Workbench& bench, QWidget* parent = nullptr);
  void set_theme(ThemeName theme) override;
  /// Asked to open a project file.
  std::function<void()> on_open;

 private:
  void refresh();
  void mark(const Selection& s);
  QTreeWidget* tree_;
  std::vector<ProjectModel::Node> shown_;
  std::vector<Selection> selections_;
  bool filling_ = false;
};

}  // namespace tenon::views
