#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/tensor/tensor_model.h"

class QLineEdit;
class QSpinBox;
class QToolButton;

namespace tenon::views {

class TensorView : public View {
  Q_OBJECT
 public:
  TensorView(const ViewDef& def, Bench& bench, QWidget* parent);

  ~TensorView() override;
  std::vector<Command> commands() override;

 private:
  QWidget* make_history(QWidget* parent);
  void count(int index);
  void refresh();
  void follow();
  /// Of a step of the run that is shown.
  bool has_element() const;
  /// Of the element under the cursor, over the last steps up to the one that is loaded.
  void look_back();
  bool can_change() const;
  void change();

  TensorModel& model_;
  TableList *list_, *steps_;
  QLineEdit* filter_;
  QToolButton* heat_;
  QWidget* history_;
  ElidedLabel* told_;
  QSpinBox* last_;
  int64_t history_run_ = 0;
  QString before_;  ///< the tensor and element that the history which is shown is of
};

}  // namespace tenon::views
