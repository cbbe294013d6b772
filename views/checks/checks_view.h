#pragma once
#include <memory>
#include <vector>

#include "views/checks/checks_table.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"

class QToolButton;

namespace tenon::views {

/// What troubleshooting guides warn of, looked for in the document that is shown, or in the project and the run that is
/// shown.
class ChecksView : public View {
  Q_OBJECT
 public:
  ChecksView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 private:
  using Results = std::shared_ptr<const std::vector<projects::CheckResult>>;

  void refresh();
  void check();
  void check_shown_document();
  void waits();
  void show_results();
  /// A job's results, where they still are of what is shown.
  void take(const QString& of, Results results);
  /// What results are of: a document with its rank, or a file and a run; empty: there is nothing to check.
  QString subject() const;

  Results results_;
  QString of_;  ///< the subject() of the results
  ElidedLabel* said_;
  QToolButton* all_;
  TableList* list_;
};

}  // namespace tenon::views
