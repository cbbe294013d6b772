#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "projects/spikes/cause.h"
#include "views/frame/view.h"
#include "views/shared/finding_page.h"

class QToolButton;

namespace tenon::views {

class FindingPane;

/// What made the loss of the shown run jump: told by replays without it, and gone on without it.
class SpikeView : public View {
  Q_OBJECT
 public:
  SpikeView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  void set_theme(ThemeName theme) override;

 private:
  /// A spike with what its search may cost, or what was found. The inquiry keeps what a report points to.
  struct Known {
    std::unique_ptr<projects::Inquiry> inquiry;
    projects::CausePlan plan;
    std::optional<projects::SpikeReport> report;
    std::shared_ptr<const FindingPage> page;
  };
  using Search = std::shared_ptr<const Known>;

  QWidget* build();
  /// The chosen step, where its loss may be meant; below 0: whichever stands out most.
  int64_t chosen_step() const;
  void forget();
  void refresh();
  /// What a search would cost, told before it begins.
  void look(int64_t step);
  void search(bool all);
  /// A job of the view; `what` is said while it is waited for, `failed` is the title of what it throws.
  void start(const QString& title, const QString& what, const QString& failed,
             std::function<void(const Jobs::Report&, Known&)> work);
  void show_found();
  bool can_branch() const;
  void branch();

  int64_t of_ = 0;  ///< the run that is known about
  Search known_;
  ElidedLabel* said_;
  QToolButton *branch_, *sample_, *all_;
  FindingPane* pane_;
};

}  // namespace tenon::views
