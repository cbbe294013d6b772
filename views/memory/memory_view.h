#pragma once
#include <QTimer>
#include <optional>

#include "views/frame/view.h"
#include "views/memory/memory_model.h"

class QComboBox;
class QToolButton;

namespace tenon::views {

class MemoryView : public View {
  Q_OBJECT
 public:
  MemoryView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~MemoryView() override;
  bool idle() const override { return View::idle() && !later_.isActive() && !map_later_.isActive(); }

 private:
  ViewBar* make_bar(QWidget* page);
  void refresh();
  void refresh_step();
  // Of a snapshot: what is asked of it is worked out by a job.
  void refresh_document();
  void ask_history(const QString& pinned);
  void ask_map();
  void refresh_snapshot();

  MemoryModel& model_;
  TableList *live_, *categories_;
  ElidedLabel* at_;
  QComboBox *device_, *by_;
  QToolButton *over_time_, *who_;
  QTimer later_, map_later_;
  std::optional<SnapshotHistory::Asked> asked_;  ///< that a job works on
};

}  // namespace tenon::views
