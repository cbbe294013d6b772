#pragma once
#include <memory>

#include "views/frame/view.h"
#include "views/numbers/numbers_model.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;
class QToolButton;

namespace tenon::views {

/// Where the numbers of a step begin to differ from a reference: the step again, f64, ONNX Runtime, an ONNX file.
class NumbersView : public View {
  Q_OBJECT
 public:
  NumbersView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;

 private:
  QWidget* build();
  QWidget* build_asked(QWidget* parent);
  void refresh();
  void offer_step();
  /// What the chosen reference is asked with; false where something typed does not fit, which is said.
  bool asked(projects::AuditOptions& options);
  /// Only what the chosen reference reads can be typed.
  void offer_fields();
  void compare();
  void show_found();
  /// Selects what the chosen row is: the op where its step is loaded, else its module.
  void chose(int64_t row);
  Selection selection_of(int64_t row) const;
  void choose_file();

  int64_t of_ = 0, steps_ = 0;  ///< the run that is known about, and how many steps it had when one was offered
  NumbersModel model_;
  QComboBox* against_;
  QSpinBox* step_;
  QLineEdit *set_, *file_, *within_;
  QToolButton *look_, *choose_;
  QLabel* said_;
  ElidedLabel* fault_;
  QWidget* found_;  ///< the picture and its rows
  TableList* list_;
};

}  // namespace tenon::views
