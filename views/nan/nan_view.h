#pragma once
#include "views/frame/view.h"

namespace tenon::views {

class NanView : public View {
  Q_OBJECT
 public:
  explicit NanView(Workbench& bench, QWidget* parent = nullptr);

 private:
  void refresh();
  TableList* table_;
};

}  // namespace tenon::views
