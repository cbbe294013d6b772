#include "views/memory/snapshot_bookmarks.h"

#include <algorithm>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

std::optional<size_t> trace_of_event(const Document& d, int64_t event) {
  for (size_t i = 0; d.snapshot && i < d.snapshot->traces.size(); ++i) {
    const snapshot::DeviceTrace& t = d.snapshot->traces[i];
    if (event >= static_cast<int64_t>(t.begin) && event < static_cast<int64_t>(t.end)) return i;
  }
  return {};
}

Selection SnapshotBookmarks::selection(const Document& document, const Bookmark& b) const {
  return Selection::event(document.id, static_cast<int64_t>(b.from), "bookmarks");
}

std::vector<Table::Column> SnapshotBookmarks::columns() const {
  return {{tr("Event"), true}, {tr("Device"), true}, {tr("Alive then"), true}};
}

std::vector<Table::Cell> SnapshotBookmarks::cells(const Document& d, const Bookmark& b) const {
  const auto event = static_cast<int64_t>(b.from);
  const auto trace = trace_of_event(d, event);
  if (!trace || *trace >= d.timelines.size())  // the file is another by now
    return {Table::Cell::number(b.from, format_grouped(event)), {}, {tr("no such event"), 0, {}, Ink::none}};
  const snapshot::DeviceTrace& t = d.snapshot->traces[*trace];
  const auto at = static_cast<size_t>(event) - t.begin;
  const auto alive = static_cast<double>(d.timelines[*trace]->bytes(at));
  return {Table::Cell::number(b.from, format_grouped(static_cast<int64_t>(at))),
          Table::Cell::number(static_cast<double>(t.device),
                              t.device == snapshot::kHost ? tr("host") : std::to_string(t.device)),
          Table::Cell::number(alive, format_bytes(alive))};
}

void SnapshotBookmarks::look_as(int document, const DocumentState& state) {
  const DocumentState::Memory& m = state.memory;
  if (m.trace < 0) return;
  SnapshotPlot::Sight sight{.trace = static_cast<size_t>(m.trace),
                            .over_time = m.over_time,
                            .whole = state.hi <= state.lo,
                            .lo = state.lo,
                            .hi = state.hi,
                            .cursor = static_cast<size_t>(m.cursor)};
  for (int by = 0; by < snapshot::kUsageBys; ++by)
    if (m.by == snapshot::name(static_cast<snapshot::UsageBy>(by))) sight.by = static_cast<snapshot::UsageBy>(by);
  model_.snapshots().set_sight(document, sight);
}

void SnapshotBookmarks::take_down(int document, DocumentState& state) const {
  const auto sight = model_.snapshots().sight(document);
  if (!sight) return;
  if (sight->usual) {
    state.lo = state.hi = 0;
    state.memory = {};
    return;
  }
  state.lo = sight->whole ? 0 : sight->lo, state.hi = sight->whole ? 0 : sight->hi;
  state.memory = {static_cast<int64_t>(sight->trace), snapshot::name(sight->by), sight->over_time,
                  static_cast<int64_t>(sight->cursor)};
}

}  // namespace tenon::views
