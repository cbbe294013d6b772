#pragma once
#include <memory>

#include "views/frame/view.h"
#include "views/plan/plan_model.h"

class QLabel;
class QToolButton;

namespace tenon::views {

/// The plan of a step of the run that is shown, or of a fresh start where the project has no run yet. It is made on a
/// worker once somebody asks for it, by a session of its own: that of a run that trains is not touched.
class PlanView : public View {
  Q_OBJECT
 public:
  PlanView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~PlanView() override;
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && !planning_; }

 private:
  /// What a plan is of. A fresh start is one of the project as it stands.
  struct Of {
    std::weak_ptr<projects::Project> project;
    int64_t run = 0;
    ModelSpec model;  ///< of a fresh start, as its recipe
    Recipe recipe;
    bool same(const Of& o) const {
      return project.lock() == o.project.lock() && run == o.run && (run || (model == o.model && recipe == o.recipe));
    }
  };

  void build();
  void refresh();
  void show_why_empty();
  void fill();
  /// What became of plans in the run that is shown, a line each. `links`: rich text whose steps can be clicked.
  QStringList events(bool links) const;
  void show_events();
  /// The rows and the sentence of what is selected.
  void follow();
  void plan();
  void drop();
  Of wanted() const;
  /// A run is shown, or there is none at all.
  bool can_plan() const;
  QString run_name() const;

  PlanModel& model_;
  TableList* list_ = nullptr;
  ElidedLabel* told_ = nullptr;  ///< of the kernel that is selected
  QLabel* headline_ = nullptr;
  QLabel* events_ = nullptr;
  QToolButton* again_ = nullptr;
  QToolButton* step_ = nullptr;
  Of of_;  ///< planned last, or being planned
  bool planning_ = false;
  bool cancelled_ = false;
  QString fault_;  ///< why it could not be found out
};

}  // namespace tenon::views
