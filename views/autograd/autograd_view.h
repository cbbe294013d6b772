#pragma once
#include "views/autograd/autograd_model.h"
#include "views/frame/view.h"

namespace tenon::views {

class AutogradView : public View {
  Q_OBJECT
 public:
  AutogradView(const ViewDef& def, Bench& bench, QWidget* parent);

 private:
  AutogradModel& model_;
  void refresh();
};

}  // namespace tenon::views
