#pragma once
#include "views/frame/view.h"

namespace tenon::views {

class AutogradView : public View {
  Q_OBJECT
 public:
  explicit AutogradView(Workbench& bench, QWidget* parent = nullptr);

 private:
  void refresh();
};

}  // namespace tenon::views
