#pragma once
#include <map>
#include <memory>

#include "views/frame/table_list.h"
#include "views/frame/view.h"
#include "views/timeline/timeline_model.h"

class QComboBox;
class QLineEdit;
class QMenu;
class QTabWidget;
class QToolButton;

namespace tenon::views {

class BookmarkList;

class TimelineView : public View {
  Q_OBJECT
 public:
  TimelineView(const ViewDef& def, Bench& bench, QWidget* parent);
  std::vector<Command> commands() override;

 protected:
  void contextMenuEvent(QContextMenuEvent* e) override;
  void came_into_sight() override;

 private:
  TimelineModel& model_;
  void refresh();
  /// The beginning that is shown, or the document.
  const Document* shown() const;
  void refresh_documents();
  void refresh_found();
  void refresh_tables();
  void refresh_names();
  /// Shows or hides what explains the trace, and works it out where it is not known yet.
  void refresh_story();
  /// Has it worked out: in sight, which it is known to be once the docks stand where they will.
  void ask_story();
  bool wants_story() const;
  void forget_stories();
  void refresh_bookmarks();
  /// The memory of snapshots that are open and were recorded meanwhile stands among the trace's counters.
  void refresh_beside();
  /// Of two that are compared the one that is shown now shows the time that was seen of the other.
  void follow_time();
  void bookmark();
  ViewBar* make_bar(QWidget* page);
  /// Every row of the trace, to be pinned and unpinned.
  QToolButton* make_pins(QWidget* bar);
  void fill_pins(QMenu* menu);
  std::vector<Command> pin_commands();
  QComboBox *documents_, *colour_;
  QToolButton *path_, *gaps_, *pins_;
  BookmarkList* bookmarks_;
  using Part = std::pair<int, size_t>;  ///< a document, and a rank of it
  std::map<Part, std::shared_ptr<const tracing::TraceStory>> stories_;
  std::pair<int, std::vector<int>> beside_;  ///< a trace, and the snapshots that were looked at beside it
  Part asked_;                               ///< whose story is worked out
  int seen_ = Document::kProject;            ///< the document that is shown
  bool begun_ = false;                       ///< the beginning of a trace is shown
  bool marked_ = false;                      ///< the tables hold what a marked stretch does
  QLineEdit* search_;
  QLabel* found_;
  QTabWidget* tabs_;
  TableList *operators_, *modules_, *events_, *names_;
};

}  // namespace tenon::views
