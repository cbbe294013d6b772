#pragma once
#include <QWidget>
#include <map>

#include "views/frame/bench.h"
#include "views/timeline/timeline_model.h"

class QLineEdit;
class QToolButton;

namespace tenon::views {

class TableList;

/// The bookmarks of the trace that is shown, as a list: made, noted and removed here. They, and what of a trace was
/// seen last, are kept with the document from one opening to the next.
class BookmarksView : public QWidget {
  Q_OBJECT
 public:
  BookmarksView(Bench& bench, TimelineModel& model, QWidget* parent = nullptr);
  ~BookmarksView() override;
  /// One more, of what is marked or selected; its note can be typed at once.
  void add();
  /// Follows what is open and which of it is shown.
  void refresh();
  int count() const;

 signals:
  void counted();

 private:
  struct Kept {
    std::string path;
    DocumentState was, is;  ///< as it was read, and as it is
  };
  Kept* shown();
  void keep(int document, Kept& kept);
  void save(Kept& kept, bool aloud);
  void note_typed();
  void remove();
  void fill();
  int chosen() const;

  Bench& bench_;
  TimelineModel& model_;
  std::map<int, Kept> kept_;  ///< by document
  double chosen_from_ = 0, chosen_to_ = -1;
  TableList* list_;
  QLineEdit* note_;
  QToolButton *add_, *remove_;
};

}  // namespace tenon::views
