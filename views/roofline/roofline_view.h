#pragma once
#include "views/frame/view.h"
#include "views/roofline/roofline_model.h"

class QLabel;
class QToolButton;

namespace tenon::views {

/// The roofline of the step that is loaded. The processor's ceilings come from the cache folder, or are measured on a
/// worker once somebody asks for it.
class RooflineView : public View {
  Q_OBJECT
 public:
  RooflineView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && !looking_up_ && !measuring_; }

 protected:
  void came_into_sight() override { refresh(); }

 private:
  void refresh();
  void follow();
  /// Reads what was measured before.
  void look_up();
  void measure();
  bool can_measure() const { return !measuring_ && !bench_.training(); }

  RooflineModel& model_;
  TableList* list_;
  ElidedLabel* measured_;  ///< whose ceilings these are
  QLabel* headline_;
  QToolButton* again_;
  int threads_ = 0;  ///< that the ceilings, known or not, were looked up for; 0: not yet
  bool looking_up_ = false, measuring_ = false, measure_if_none_ = false;
  QString fault_;  ///< why they could not be measured
};

}  // namespace tenon::views
