#pragma once
#include "views/frame/branch_dialog.h"
#include "views/training/branch_draft.h"

class QGridLayout;
class QVBoxLayout;

namespace tenon::views {

/// Asks what is to change in a branch of a run, and gives the word to train it.
class BranchForm : public BranchDialog {
  Q_OBJECT
 public:
  BranchForm(BranchDraft draft, QWidget* parent);

 private:
  projects::TrainOptions options() const override { return draft_.options(); }
  void rebuild();
  void add_row(QGridLayout* grid, size_t at);
  void refresh();

  BranchDraft draft_;
  QVBoxLayout* box_;
  QWidget* rows_;
};

}  // namespace tenon::views
