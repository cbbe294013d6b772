#pragma once
#include <utility>
#include <vector>

#include "views/shared/bookmarked_picture.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {

/// Stretches of a trace's time that a person marked, and how they left the timeline.
class TraceBookmarks : public BookmarkedPicture {
 public:
  explicit TraceBookmarks(TimelineModel& model) : model_(model) {}
  bool holds(const Document& document) const override { return document.trace != nullptr; }
  bool shows_document() const override { return model_.shows_document() && !model_.shows_beginning(); }
  const std::vector<Bookmark>& bookmarks() const override { return model_.bookmarks(); }
  void set_bookmarks(std::vector<Bookmark> bookmarks) override { model_.set_bookmarks(std::move(bookmarks)); }
  Bookmark bookmark_here() const override { return model_.bookmark_here(); }
  Selection selection(const Document& document, const Bookmark& bookmark) const override;
  std::vector<Table::Column> columns() const override;
  std::vector<Table::Cell> cells(const Document& document, const Bookmark& bookmark) const override;
  void look_as(int document, const DocumentState& state) override;
  void take_down(int document, DocumentState& state) const override;

 private:
  TimelineModel& model_;
};

}  // namespace tenon::views
