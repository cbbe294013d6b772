#pragma once
#include "views/frame/view.h"
#include "views/training/training_model.h"

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
  void show_changes();
  void compare();
  ElidedLabel* where_;
  QSlider* smooth_;
};

}  // namespace tenon::views
