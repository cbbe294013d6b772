#pragma once
#include <QTimer>
#include <memory>
#include <optional>
#include <utility>

#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/memory/memory_model.h"

class QComboBox;
class QTabWidget;
class QToolButton;

namespace tenon::views {

class BookmarkList;

class MemoryView : public View {
  Q_OBJECT
 public:
  MemoryView(const ViewDef& def, Bench& bench, QWidget* parent);
  ~MemoryView() override;
  std::vector<Command> commands() override;
  bool idle() const override { return View::idle() && !later_.isActive() && !map_later_.isActive(); }

 protected:
  void came_into_sight() override;

 private:
  ViewBar* make_bar(QWidget* page);
  QWidget* make_tables(QWidget* parent);
  /// A recording is shown whole: moments of it can be kept.
  bool can_bookmark() const;
  void bookmark();
  void refresh_bookmarks();
  /// The beginning that is shown, or the document.
  const Document* shown() const;
  void fill_choices(const Document& d);
  void follow(const Selection& s);
  void refresh();
  void refresh_step();
  // Of a snapshot: what is asked of it is worked out by a job.
  void refresh_document();
  void ask_history(const QString& pinned);
  void ask_map();
  struct Moment {
    std::shared_ptr<const snapshot::Snapshot> snapshot;
    size_t trace = 0, event = 0;
    bool operator==(const Moment&) const = default;
  };
  void work_out_map(const Moment& of);
  /// Gives the picture what was worked out, where it is of the moment that is shown.
  bool take_map();
  void refresh_snapshot();

  MemoryModel& model_;
  BookmarkList* bookmarks_;
  QTabWidget* tabs_;
  TableList *live_, *categories_;
  ElidedLabel* at_;
  QComboBox *device_, *by_;
  QToolButton *over_time_, *who_;
  QTimer later_, map_later_;
  std::optional<SnapshotHistory::Asked> asked_;  ///< that a job works on
  Moment map_of_;                                ///< what lies where is worked out of it, or was
  std::shared_ptr<const snapshot::AllocatorState> map_;
  bool begun_ = false;  ///< the beginning of a snapshot is shown
  /// What the tables say: thousands of rows are not made anew for the same moment.
  std::pair<std::shared_ptr<const SnapshotHistory>, size_t> told_;
};

}  // namespace tenon::views
