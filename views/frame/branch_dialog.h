#pragma once
#include <QDialog>
#include <functional>
#include <string>

#include "projects/run_driver.h"

class QFormLayout;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace tenon::views {

class Bench;

/// Asks how a branch of a run is to differ from it, and gives the word to train it. What it asks is a subclass's, which
/// lays that out above add_end().
class BranchDialog : public QDialog {
  Q_OBJECT
 public:
  /// Opens it over the window, where what it asks for will be trained; no other run may train meanwhile.
  void open_over(Bench& bench);

 protected:
  /// `name` begins the names of its parts: "branch.train".
  BranchDialog(const QString& name, const QString& title, QWidget* parent);
  /// A row for the name of the new run.
  void add_name(QFormLayout* form, std::function<void(std::string)> given);
  /// What is said of the branch, and the buttons; a `stretch` takes the room that is left above these.
  void add_end(QVBoxLayout* all, bool stretch);
  /// Why it cannot be trained as it is told, or else what it will be.
  void say(const QString& fault, const QString& said);
  virtual projects::TrainOptions options() const = 0;

 private:
  void show_said();

  QString fault_, text_, busy_;
  QLabel* said_ = nullptr;
  QPushButton* train_ = nullptr;
  std::function<void(const projects::TrainOptions&)> on_train_;
};

}  // namespace tenon::views
