#pragma once
#include <QTimer>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "views/frame/bench.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/recipe/memory_needs.h"

class QGridLayout;
class QScrollArea;
class QToolButton;

namespace tenon::views {

/// One line on the memory that the next run will need; opened, the layers that need it, and what would need less, each
/// with the button that makes it so. Worked out by a job, anew for each recipe that stands still for a moment.
class MemoryStrip : public QWidget {
  Q_OBJECT
 public:
  MemoryStrip(Bench& bench, QWidget* parent);
  /// What the next run is told. Nothing is worked out before work().
  void set_run(const ModelSpec& model, const Recipe& recipe);
  /// Nothing is open.
  void clear();
  /// Works out what was set last, if that was not done: for a strip that is in sight.
  void work();
  /// A recipe that needs less was chosen.
  std::function<void(const Recipe&)> on_edit;
  /// Nothing is about to be worked out.
  bool idle() const { return !pause_.isActive(); }

 private:
  void build();
  void start();
  void start_proposals();
  void show_needs();
  void show_proposals();
  void add_proposal(QGridLayout* grid, int at, const MemoryProposal& p);
  void say(const QString& text, const char* voice);

  Bench& bench_;
  ElidedLabel* said_;
  QToolButton* open_;
  QWidget* page_;
  QLabel* moment_;
  TableList* layers_;
  QScrollArea* proposals_;
  QTimer pause_;  ///< until the recipe stands still

  ModelSpec model_;
  Recipe recipe_;
  std::string of_, done_, proposed_;  ///< what is set, was worked out, and was asked for proposals; as text
  std::optional<MemoryNeeds> needs_;
  std::vector<MemoryProposal> all_;
  std::shared_ptr<const data::Split> data_;  ///< outline of the data that data_of_ tells
  std::string data_of_;
};

}  // namespace tenon::views
