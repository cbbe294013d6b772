#pragma once
#include <QWidget>
#include <map>
#include <memory>
#include <string>

#include "views/frame/bench.h"
#include "views/shared/bookmarked_picture.h"

class QLineEdit;
class QToolButton;

namespace tenon::views {

class TableList;

/// The bookmarks of the document that is shown, as a list: made, noted and removed here. They, and how it was seen
/// last, are kept with the document from one opening to the next.
class BookmarkList : public QWidget {
  Q_OBJECT
 public:
  /// `view`: whose objects' names begin so. `what`: what is kept by *Add*.
  BookmarkList(Bench& bench, std::unique_ptr<BookmarkedPicture> picture, const QString& view, const QString& what,
               QWidget* parent = nullptr);
  ~BookmarkList() override;
  /// One more, of where the picture is; its note can be typed at once.
  void add();
  /// Follows what is open and which of it is shown.
  void refresh();
  /// "Bookmarks (2)"
  QString title() const;

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
  std::unique_ptr<BookmarkedPicture> picture_;
  std::map<int, Kept> kept_;  ///< by document
  Selection chosen_;
  TableList* list_;
  QLineEdit* note_;
  QToolButton *add_, *remove_;
};

}  // namespace tenon::views
