#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/tensor/tensor_model.h"

class QLineEdit;
class QToolButton;

namespace tenon::views {

class TensorView : public View {
  Q_OBJECT
 public:
  TensorView(const ViewDef& def, Bench& bench, QWidget* parent);

  ~TensorView() override;

 private:
  void count(int index);
  TensorModel& model_;
  void refresh();
  void follow();
  TableList* list_;
  QLineEdit* filter_;
  QToolButton* heat_;
};

}  // namespace tenon::views
