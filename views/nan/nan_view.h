#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/nan/nan_model.h"

namespace tenon::views {

class NanView : public View {
  Q_OBJECT
 public:
  NanView(const ViewDef& def, Bench& bench, QWidget* parent);

  std::vector<Command> commands() override;

 private:
  void search();
  NanModel& model_;
  void refresh();
  TableList* table_;
};

}  // namespace tenon::views
