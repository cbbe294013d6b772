#pragma once
#include <QTimer>
#include <memory>

#include "projects/surgery.h"
#include "views/frame/branch_dialog.h"
#include "views/training/branch_draft.h"

class QCheckBox;
class QGridLayout;
class QLabel;
class QSpinBox;
class QVBoxLayout;

namespace tenon::views {

class TableList;

/// Asks what is to change in a branch of a run, and gives the word to train it. Where the project's model is another by
/// now it is offered, with what it keeps of the run's weights. For that a run that trains is paused at a step; where
/// the form is left it goes on.
class BranchForm : public BranchDialog {
  Q_OBJECT
 public:
  BranchForm(BranchDraft draft, Bench& bench, QWidget* parent);
  ~BranchForm() override;
  /// The branch has the project's model.
  void choose_model();

  void done(int result) override;

 private:
  projects::TrainOptions options() const override { return draft_.options(); }
  void add_model(QVBoxLayout* all);
  void rebuild();
  void add_row(QGridLayout* grid, size_t at);
  void refresh();
  void tell();
  void model_chosen(bool on);
  /// Whether the run of which it is a branch stands still, so that its steps are all in the file.
  bool run_rests();
  /// Soon, once nobody types any more.
  void ask_for_plan();
  void plan();
  void follow_run();
  void show_plan(std::shared_ptr<const projects::SurgeryPlan> plan);

  BranchDraft draft_;
  Bench& bench_;
  QSpinBox* step_;
  QCheckBox* with_model_ = nullptr;
  QWidget* surgery_ = nullptr;  ///< what the model keeps
  TableList* table_ = nullptr;
  QLabel* kept_ = nullptr;
  QVBoxLayout* box_;
  QWidget* rows_;
  QTimer wait_;
  QString plan_fault_;
  bool held_ = false;  ///< the run was paused for this
  bool waits_for_rest_ = false;
};

}  // namespace tenon::views
