#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "views/memory/memory_model.h"
#include "views/shared/bookmarked_picture.h"

namespace tenon::views {

/// Moments of a snapshot's recording that a person marked, and how they left its picture.
class SnapshotBookmarks : public BookmarkedPicture {
 public:
  explicit SnapshotBookmarks(MemoryModel& model) : model_(model) {}
  bool holds(const Document& document) const override { return document.snapshot != nullptr; }
  bool shows_document() const override { return model_.snapshot() && !model_.shows_beginning(); }
  const std::vector<Bookmark>& bookmarks() const override { return model_.snapshots().bookmarks(); }
  void set_bookmarks(std::vector<Bookmark> bookmarks) override { model_.set_bookmarks(std::move(bookmarks)); }
  Bookmark bookmark_here() const override { return model_.snapshots().bookmark_here(); }
  Selection selection(const Document& document, const Bookmark& bookmark) const override;
  std::vector<Table::Column> columns() const override;
  std::vector<Table::Cell> cells(const Document& document, const Bookmark& bookmark) const override;
  void look_as(int document, const DocumentState& state) override;
  void take_down(int document, DocumentState& state) const override;

 private:
  MemoryModel& model_;
};

/// The device's part of a snapshot that an event, counted through all of them, belongs to; nothing where there is no
/// such event.
std::optional<size_t> trace_of_event(const Document& document, int64_t event);

}  // namespace tenon::views
