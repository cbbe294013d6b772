#pragma once
#include "views/frame/view.h"
#include "views/sweeps/sweep_form_view.h"
#include "views/sweeps/sweeps_model.h"

class QComboBox;
class QToolButton;

namespace tenon::views {

/// Searches over keys of the recipe: begun here, trained one trial after the other, and looked at.
class SweepsView : public View {
  Q_OBJECT
 public:
  SweepsView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && (bench_.training() || !later_.isActive()); }

 private:
  QWidget* build_results();
  void refresh();
  void refresh_state();
  void fill();
  void read_importance();
  bool free() const;  ///< nothing trains, and something could
  void toggle();
  void follow(const Selection& s);

  SweepsModel& model_;
  SweepForm* form_;
  QComboBox* which_;
  ElidedLabel* said_;
  QToolButton* go_;
  QStackedWidget* results_;
  EmptyState* none_;
  TableList* list_;
  QTimer later_;
  int64_t chosen_ = 0;  ///< by hand; 0: the newest
  std::weak_ptr<projects::Project> of_;
};

}  // namespace tenon::views
