#pragma once
#include <QTimer>
#include <memory>
#include <vector>

#include "projects/watches.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"

class QToolButton;

namespace tenon::views {

class WatchLine;

/// What the watches of the shown run saw, and the search for the first step at which a condition holds.
class WatchesView : public View {
  Q_OBJECT
 public:
  WatchesView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && !later_.isActive(); }

 protected:
  void came_into_sight() override { read(); }

 private:
  using Summaries = std::vector<projects::WatchSummary>;

  QWidget* make_find(QWidget* parent);
  void follow();
  void read();
  void show(const Summaries& all);
  QString asked() const;
  void say_plan();
  void find();
  void told(const projects::FoundStep& found, bool bisected);
  bool can_find() const { return bench_.has_project() && bench_.shown() && bench_.shown()->steps > 0; }

  QTimer later_;  ///< what a run that trains sees is read once a second at most
  ElidedLabel *said_, *answer_;
  TableList* list_;
  WatchLine* condition_;
  QToolButton *halving_, *find_, *go_;
  int64_t found_ = 0;  ///< the step; 0: none
  QString told_of_;    ///< what the answer that stands there is of: asked() then; empty: it is a plan
};

}  // namespace tenon::views
