#pragma once
#include <memory>

#include "projects/leaks/leak.h"
#include "views/frame/view.h"
#include "views/shared/finding_page.h"

class QSpinBox;
class QToolButton;

namespace tenon::views {

class FindingPane;

/// Who holds the memory that steps of the shown run take and never give back, proven by a replay without them.
class LeaksView : public View {
  Q_OBJECT
 public:
  LeaksView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;

 private:
  struct Known {
    projects::LeakReport report;
    std::shared_ptr<const FindingPage> page;
  };
  using Search = std::shared_ptr<const Known>;

  QWidget* build();
  void refresh();
  /// The steps that are offered: the last ones, or those that end at the chosen step.
  void offer_steps();
  void say_plan();
  void search();
  projects::LeakOptions asked() const;

  int64_t of_ = 0, steps_ = 0;  ///< the run that is known about, and how many steps it had when steps were offered
  Search known_;
  QSpinBox *from_, *to_;
  QToolButton* look_;
  ElidedLabel *plan_, *edit_;
  QWidget* below_;  ///< what ends the leak
  FindingPane* pane_;
};

}  // namespace tenon::views
