#pragma once
#include <QDialog>
#include <functional>

#include "views/training/branch_draft.h"

class QGridLayout;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace tenon::views {

/// Asks what is to change in a branch of a run, and gives the word to train it.
class BranchForm : public QDialog {
  Q_OBJECT
 public:
  BranchForm(BranchDraft draft, QWidget* parent);
  std::function<void(const projects::TrainOptions&)> on_train;
  /// Why nothing can be trained just now; empty: it can.
  void set_busy(const QString& why);

 private:
  void rebuild();
  void add_row(QGridLayout* grid, size_t at);
  void refresh();

  BranchDraft draft_;
  QVBoxLayout* box_;
  QWidget* rows_;
  QLabel* said_;
  QPushButton* train_;
  QString busy_;
};

}  // namespace tenon::views
