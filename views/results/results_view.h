#pragma once
#include "views/frame/view.h"
#include "views/results/results_model.h"

class QToolButton;

namespace tenon::views {

class ResultsView : public View {
  Q_OBJECT
 public:
  ResultsView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 private:
  void refresh();
  void fill();
  int64_t sample() const;  ///< the selected one; -1: none
  ResultsModel& model_;
  TableList* list_;
  ElidedLabel *headline_, *listed_;
  QToolButton* inside_;
};

}  // namespace tenon::views
