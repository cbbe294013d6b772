#pragma once
#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/results/results_model.h"
#include "views/results/samples_view.h"

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
  void show_page(ResultsModel::Page page);
  void add_placements(ViewBar* bar);
  /// Places the embedding's samples so, or along its two directions again.
  void place_by(const projects::Placement* placement);
  void work_out(const projects::Placement& placement);
  int64_t sample() const;  ///< the selected one; -1: none
  ResultsModel& model_;
  TableList* list_;
  SampleGallery* gallery_;
  ElidedLabel *headline_, *listed_;
  QToolButton *inside_, *errors_, *curves_, *embedding_;
  std::vector<QToolButton*> placements_;  ///< as projects::placements()
};

}  // namespace tenon::views
