#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"

namespace tenon::views {

/// What the export in fewer bits that was made last did to each layer.
class QuantizationView : public View {
  Q_OBJECT
 public:
  QuantizationView(const ViewDef& def, Bench& bench, QWidget* parent);

 private:
  void refresh();

  ElidedLabel* said_;
  TableList* list_;
};

}  // namespace tenon::views
