#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/sweeps/sweep_form_view.h"
#include "views/sweeps/sweeps_model.h"

class QComboBox;
class QLineEdit;
class QToolButton;

namespace tenon::views {

/// Searches over keys of the recipe: begun here, trained one trial after the other, and looked at.
class SweepsView : public View {
  Q_OBJECT
 public:
  SweepsView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && (bench_.training() || !later_.isActive()); }

 protected:
  bool eventFilter(QObject* of, QEvent* e) override;

 private:
  QWidget* build_results();
  void refresh();
  void refresh_state();
  void fill();
  void read_importance();
  bool free() const;   ///< nothing trains, and something could
  bool edits() const;  ///< a sweep is shown that may be renamed
  void begin_rename();
  /// Of the sweep that it was begun for; nothing where another one is shown by now.
  void end_rename(bool keeps);
  void toggle();
  void follow(const Selection& s);

  SweepsModel& model_;
  SweepForm* form_;
  QComboBox* which_;
  QLineEdit* name_;  ///< in its place, while the sweep that is shown is given another name
  ElidedLabel* said_;
  QToolButton* go_;
  QStackedWidget* results_;
  EmptyState* none_;
  TableList* list_;
  QTimer later_;
  int64_t chosen_ = 0;   ///< by hand; 0: the newest
  int64_t renamed_ = 0;  ///< the sweep whose name is being typed; 0: none
  std::weak_ptr<projects::Project> of_;
};

}  // namespace tenon::views
