#pragma once
#include <QDialog>
#include <functional>

#include "projects/quantize.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QSpinBox;

namespace tenon::views {

/// Asks in how few bits a model is exported, and what may be lost.
class QuantizeDialog : public QDialog {
  Q_OBJECT
 public:
  /// `program`: it becomes a program of torch.export instead of ONNX.
  QuantizeDialog(QWidget* parent, bool program);
  projects::QuantizeOptions options() const;
  std::function<void(const projects::QuantizeOptions&)> on_export;

 private:
  void add_precision(QFormLayout* form);
  void add_calibration(QFormLayout* form);
  void add_budget(QFormLayout* form);
  void refresh();

  const bool program_;
  QComboBox *precision_, *calibration_;
  QSpinBox* samples_;
  QCheckBox* limited_;
  QDoubleSpinBox* budget_;
  QLabel* said_;
};

}  // namespace tenon::views
