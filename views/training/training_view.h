#pragma once
#include "views/frame/view.h"
#include "views/training/training_model.h"

class QComboBox;
class QSlider;

namespace tenon::views {

class TrainingView : public View {
  Q_OBJECT
 public:
  TrainingView(const ViewDef& def, Bench& bench, QWidget* parent);

  std::vector<Command> commands() override;

 private:
  TrainingModel& model_;
  void refresh();
  /// Slider and list as the model has them, which a project may have brought.
  void show_state();
  void show_changes();
  void show_marks();
  void compare();
  void show_compared(std::vector<TrainingModel::Compared> read);
  void open_charts();
  ElidedLabel* where_;
  QComboBox* over_;
  QSlider* smooth_;
};

}  // namespace tenon::views
