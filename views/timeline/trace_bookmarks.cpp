#include "views/timeline/trace_bookmarks.h"

#include <algorithm>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

Selection TraceBookmarks::selection(const Document& document, const Bookmark& b) const {
  Selection s = Selection::range(b.from, std::max(b.to, b.from + 1), "bookmarks");
  s.document = document.id;
  return s;
}

std::vector<Table::Column> TraceBookmarks::columns() const { return {{tr("At"), true}, {tr("Length"), true}}; }

std::vector<Table::Cell> TraceBookmarks::cells(const Document&, const Bookmark& b) const {
  return {Table::Cell::number(b.from, format_ns(b.from)),
          Table::Cell::number(b.to - b.from, b.to > b.from ? format_ns(b.to - b.from) : tr("a moment"))};
}

void TraceBookmarks::look_as(int document, const DocumentState& state) {
  if (state.hi > state.lo || !state.folded.empty() || !state.pinned.empty())
    model_.set_sight(document, {.lo = state.lo, .hi = state.hi, .folded = state.folded, .pinned = state.pinned});
}

void TraceBookmarks::take_down(int document, DocumentState& state) const {
  const TimelineModel::Sight sight = model_.sight(document);
  auto some = [](const std::vector<bool>& of) {
    return std::find(of.begin(), of.end(), true) != of.end() ? of : std::vector<bool>();
  };
  state.lo = sight.whole ? 0 : sight.lo, state.hi = sight.whole ? 0 : sight.hi;
  state.folded = some(sight.folded);
  state.pinned = some(sight.pinned);
}

}  // namespace tenon::views
