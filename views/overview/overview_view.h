#pragma once
#include <map>

#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/overview/overview_model.h"

class QStackedWidget;
class QTabWidget;
class QToolButton;

namespace tenon::views {

class FigureRow;

/// A trace, or the step that is loaded, at one glance: what bounds its steps, their time by part, what to try, the
/// largest kernels and ops. Worked out once it is seen, and kept for every open trace.
class OverviewView : public View {
  Q_OBJECT
 public:
  OverviewView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 protected:
  void came_into_sight() override { ask(); }
  void resizeEvent(QResizeEvent* e) override;

 private:
  using Page = std::shared_ptr<const OverviewPage>;
  void build();
  QWidget* build_head(QWidget* parent);
  QWidget* build_lists(QWidget* parent);
  TableList* make_list(const char* title, QWidget* parent);
  void refresh();
  void ask();
  void stopped();
  void show_page(Page page);
  void show_other(const Document& d);
  /// What the chosen recommendation says in whole.
  void tell_advice();
  void open_timeline() { bench_.ask("view.timeline"); }
  void show_cause();

  OverviewModel& model_;
  std::shared_ptr<const traces::Trace> trace_;  ///< that is looked at
  std::shared_ptr<const traces::Trace> asked_;  ///< of which a job works out the overview
  std::map<int, std::pair<std::shared_ptr<const traces::Trace>, Page>> pages_;  ///< by document
  ElidedLabel* subject_;
  QLabel *sentence_, *told_, *none_;
  QToolButton* cause_;
  FigureRow* figures_;
  QStackedWidget* advised_;
  TableList* advice_;
  QTabWidget* tabs_;
};

}  // namespace tenon::views
