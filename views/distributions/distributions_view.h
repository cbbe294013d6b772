#pragma once
#include <QTimer>
#include <memory>
#include <tuple>

#include "views/distributions/distributions_model.h"
#include "views/frame/table_list.h"
#include "views/frame/view.h"

class QLineEdit;
class QToolButton;

namespace tenon::views {

/// Works out the distributions of the run that is shown, once it is seen, and shows them. What was read stays until
/// another run is shown or this one has gone on.
class DistributionsView : public View {
  Q_OBJECT
 public:
  DistributionsView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~DistributionsView() override;
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && !reading_; }

 protected:
  void came_into_sight() override { refresh(); }

 private:
  struct Latest;
  /// What a reading is of: a run with so many steps; of one that trains, with about so many checkpoints.
  using Of = std::tuple<int64_t, int64_t>;

  void build();
  void refresh();
  /// The sentence that stands where there is nothing to show.
  void show_why_empty();
  void fill();
  void follow();
  void read();
  void take(DistributionsModel::Shared d);
  void take_partial();
  void end_reading();
  bool can_read() const { return bench_.has_project() && bench_.shown_run() && bench_.shown_steps() > 0; }
  bool trains() const { return bench_.trains(bench_.shown_run()); }
  size_t known_checkpoints() const;
  Of wanted() const;
  QString run_name() const;

  DistributionsModel& model_;
  TableList* list_;
  QLineEdit* filter_;
  ElidedLabel* headline_;
  QToolButton* again_;
  QTimer partial_;
  std::shared_ptr<Latest> latest_;
  std::weak_ptr<projects::Project> of_project_;
  Of of_{};               ///< read last, or being read
  bool reading_ = false;  ///< a job of ours waits or runs
  bool cancelled_ = false;
  QString fault_;  ///< why they could not be read
};

}  // namespace tenon::views
