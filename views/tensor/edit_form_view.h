#pragma once
#include <QDialog>
#include <functional>

#include "views/tensor/edit_draft.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace tenon::views {

/// Asks how the values of a tensor are changed at an op of a step, and gives the word to go on as a branch.
class EditForm : public QDialog {
  Q_OBJECT
 public:
  EditForm(EditDraft draft, QWidget* parent);
  std::function<void(const projects::TrainOptions&)> on_train;
  /// Why nothing can be trained just now; empty: it can.
  void set_busy(const QString& why);

 private:
  void refresh();

  EditDraft draft_;
  QComboBox *which_, *how_;
  QLineEdit *value_, *upper_;
  QLabel *and_, *said_;
  QPushButton* train_;
  QString busy_;
};

}  // namespace tenon::views
