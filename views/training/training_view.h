#pragma once
#include "views/frame/view.h"

class QSlider;

namespace tenon::views {

class TrainingView : public View {
  Q_OBJECT
 public:
  explicit TrainingView(Workbench& bench, QWidget* parent = nullptr);

 private:
  void refresh();
  ElidedLabel* where_;
  QSlider* smooth_;
};

}  // namespace tenon::views
