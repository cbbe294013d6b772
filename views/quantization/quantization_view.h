#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/quantization/quantization_plan_model.h"

class QStackedWidget;
class QToolButton;

namespace tenon::views {

/// What the export in fewer bits that was made last did to each layer, and all the exports that there could be.
class QuantizationView : public View {
  Q_OBJECT
 public:
  QuantizationView(const ViewDef& def, Bench& bench, QWidget* parent);
  void set_theme(ThemeName theme) override;

 private:
  QWidget* make_layers(QWidget* parent);
  QWidget* make_plan(QWidget* parent);
  void show_page(int page);
  void refresh();
  void refresh_plan();
  /// The state that would be measured: the last one of the run that is shown; 0 where there is none.
  int64_t measured_step() const;
  void measure();
  void export_chosen();

  QuantizationPlanModel plan_;
  QStackedWidget* pages_;
  QToolButton *show_layers_, *show_plan_, *measure_, *export_;
  ElidedLabel *said_, *plan_said_;
  TableList* list_;
};

}  // namespace tenon::views
