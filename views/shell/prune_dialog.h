#pragma once
#include <QDialog>
#include <QTimer>
#include <functional>
#include <memory>

#include "projects/shrink.h"
#include "views/frame/jobs.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace tenon::views {

class TableList;

/// Asks how a trained model gets smaller, fewer channels or layers of lower rank, and shows what is left of each layer.
class PruneDialog : public QDialog {
  Q_OBJECT
 public:
  PruneDialog(QWidget* parent, Jobs& jobs, std::shared_ptr<const projects::TrainedModel> trained);
  projects::ShrinkOptions options() const;
  std::function<void(const projects::ShrinkOptions&)> on_prune;

 private:
  void add_form(class QVBoxLayout* all);
  void add_buttons(class QVBoxLayout* all);
  /// What would be left, worked out beside the window: singular values of a large model take seconds.
  void plan();
  void show_plan(const Shrunk& small);
  void show_fault(const QString& message, const QString& hint);

  Jobs& jobs_;
  std::shared_ptr<const projects::TrainedModel> trained_;
  QSpinBox* amount_;
  QLineEdit* layers_;
  QComboBox* how_;
  TableList* table_;
  QLabel* said_;
  QPushButton* go_;
  QTimer wait_;  ///< a model of many weights is not planned at every key
};

}  // namespace tenon::views
