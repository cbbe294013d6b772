#pragma once
#include <QDialog>
#include <QTimer>
#include <functional>
#include <memory>

#include "projects/shrink.h"

class QCheckBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace tenon::views {

class TableList;

/// Asks which channels go out of a trained model, and shows what is left of each layer.
class PruneDialog : public QDialog {
  Q_OBJECT
 public:
  PruneDialog(QWidget* parent, std::shared_ptr<const projects::TrainedModel> trained);
  projects::ShrinkOptions options() const;
  std::function<void(const projects::ShrinkOptions&)> on_prune;

 private:
  void add_form(class QVBoxLayout* all);
  void add_buttons(class QVBoxLayout* all);
  void plan();

  std::shared_ptr<const projects::TrainedModel> trained_;
  QSpinBox* amount_;
  QLineEdit* layers_;
  QCheckBox* zeros_;
  TableList* table_;
  QLabel* said_;
  QPushButton* go_;
  QTimer wait_;  ///< a model of many weights is not planned at every key
};

}  // namespace tenon::views
