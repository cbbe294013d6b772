#pragma once
#include <QTimer>

#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/runs/runs_chart.h"
#include "views/runs/runs_model.h"

class QComboBox;
class QToolButton;
class QLineEdit;

namespace tenon::views {

class RunsView : public View {
  Q_OBJECT
 public:
  RunsView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  /// A run that trains changes its row without end.
  bool idle() const override { return View::idle() && (bench_.training() || !later_.isActive()); }

 private:
  void read();
  void refresh();
  void fill();
  bool may_write() const;
  /// The runs that a filter lists; none where nothing is filtered.
  std::vector<int64_t> listed() const;
  void offer_fields();
  void fill_chart();
  QWidget* build_chart();
  std::optional<RunField> chosen(const QComboBox* list) const;
  RunsModel model_;
  RunsChart chart_;
  QWidget* chart_page_;
  QComboBox *group_, *along_, *up_;
  bool along_chosen_ = false;  ///< by a person; until then it follows what the runs differ in
  QToolButton* all_keys_ = nullptr;
  TableList* list_;
  QLineEdit* filter_;
  ElidedLabel* found_;
  QTimer later_;
};

}  // namespace tenon::views
