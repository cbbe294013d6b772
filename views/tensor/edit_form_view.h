#pragma once
#include "views/frame/branch_dialog.h"
#include "views/tensor/edit_draft.h"

class QComboBox;
class QLabel;
class QLineEdit;

namespace tenon::views {

/// Asks how the values of a tensor are changed at an op of a step, and gives the word to go on as a branch.
class EditForm : public BranchDialog {
  Q_OBJECT
 public:
  EditForm(EditDraft draft, QWidget* parent);

 private:
  projects::TrainOptions options() const override { return draft_.options(); }
  void refresh();

  EditDraft draft_;
  QComboBox *which_, *how_;
  QLineEdit *value_, *upper_;
  QLabel* and_;
};

}  // namespace tenon::views
