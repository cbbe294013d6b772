#pragma once
#include <memory>
#include <vector>

#include "views/checks/checks_table.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"

class QToolButton;

namespace tenon::views {

/// What troubleshooting guides warn of, looked for in the project and the run that is shown.
class ChecksView : public View {
  Q_OBJECT
 public:
  ChecksView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 private:
  void refresh();
  void check();
  void show_results();

  std::shared_ptr<const std::vector<projects::CheckResult>> results_;
  QString of_;  ///< file and run of the results
  ElidedLabel* said_;
  QToolButton* all_;
  TableList* list_;
};

}  // namespace tenon::views
