#pragma once
#include <vector>

#include "views/shared/document.h"
#include "views/shared/document_state.h"
#include "views/shared/selection.h"
#include "views/shared/table.h"

namespace tenon::views {

/// The picture of a view in which a person marks places of an opened document, and which they find again as they left
/// it.
class BookmarkedPicture {
 public:
  virtual ~BookmarkedPicture() = default;
  /// It draws documents of that kind.
  virtual bool holds(const Document& document) const = 0;
  /// The document that the window shows is drawn, whole.
  virtual bool shows_document() const = 0;

  virtual const std::vector<Bookmark>& bookmarks() const = 0;
  virtual void set_bookmarks(std::vector<Bookmark> bookmarks) = 0;
  /// What a bookmark made now would keep.
  virtual Bookmark bookmark_here() const = 0;
  /// Leads to a bookmark, in every view.
  virtual Selection selection(const Document& document, const Bookmark& bookmark) const = 0;
  /// What the list says of each, before its note.
  virtual std::vector<Table::Column> columns() const = 0;
  virtual std::vector<Table::Cell> cells(const Document& document, const Bookmark& bookmark) const = 0;

  /// The document will be seen as it was left.
  virtual void look_as(int document, const DocumentState& state) = 0;
  /// Takes down how a document is seen, or was last; its bookmarks are left alone.
  virtual void take_down(int document, DocumentState& state) const = 0;
};

}  // namespace tenon::views
