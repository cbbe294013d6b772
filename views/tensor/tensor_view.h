#pragma once
#include "views/frame/view.h"

class QLineEdit;
class QToolButton;

namespace tenon::views {

class TensorView : public View {
  Q_OBJECT
 public:
  explicit TensorView(Workbench& bench, QWidget* parent = nullptr);

 private:
  void refresh();
  void follow();
  TableList* list_;
  QLineEdit* filter_;
  QToolButton* heat_;
};

}  // namespace tenon::views
