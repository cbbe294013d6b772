#pragma once
#include <QDialog>

#include "views/training/training_model.h"

class QVBoxLayout;

namespace tenon::views {

/// Which metrics stand together in one chart, and which charts are seen: what is changed holds at once.
class ChartsForm : public QDialog {
  Q_OBJECT
 public:
  ChartsForm(TrainingModel& model, QWidget* parent);

 private:
  void change(const std::function<void(Charts&)>& what);
  /// What is in the form, by the model's charts.
  void rebuild();
  QWidget* rows();

  TrainingModel& model_;
  QVBoxLayout* box_;
  QWidget* rows_ = nullptr;
  QPushButton* usual_;
};

}  // namespace tenon::views
