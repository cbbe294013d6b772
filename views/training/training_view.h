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

 protected:
  void contextMenuEvent(QContextMenuEvent* e) override;

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
  /// After the chosen step, or the last one.
  void open_branch(bool with_model);
  int64_t chosen_step() const;
  ElidedLabel* where_;
  QComboBox* over_;
  QSlider* smooth_;
};

}  // namespace tenon::views
