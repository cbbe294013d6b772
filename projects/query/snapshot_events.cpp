// The events of a memory snapshot, and the allocations that they make and end.
#include <algorithm>

#include "projects/query/query_table.h"
#include "projects/query/snapshot_rows.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

struct SnapshotEvents final : SnapshotRows {
  using SnapshotRows::SnapshotRows;
  int64_t end() const override { return static_cast<int64_t>(s->events.size_()); }
  const snapshot::Events& events() const { return s->events; }
};

const bool registered_snapshot_events = register_query_table(
    QueryKind::snapshot,
    {"events",
     10,
     "what the allocator did, as it was recorded, device after device",
     QueryColumns<SnapshotEvents>()
         .add(
             "id", Unit::count, "number of the event in the file",
             [](const SnapshotEvents&, int64_t i, QueryCell& c) { c.put(i); }, Found::unique, Leads::event)
         .add("action", Unit::text, "alloc, free_requested, free_completed, segment_alloc, segment_free, oom, ...",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
                c.put_standing(snapshot::name(e.events().action[static_cast<size_t>(i)]));
              })
         .add("address", Unit::count,
              "printf('%x', address) writes it as debuggers do; of an oom the bytes that the driver reported free",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
                c.put(static_cast<int64_t>(e.events().address[static_cast<size_t>(i)]));
              })
         .add("size", Unit::bytes, "that were asked for",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) { c.put(e.events().size[static_cast<size_t>(i)]); })
         .add("time_us", Unit::count, "microseconds, as the file has them; NULL where they were not recorded",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) { e.put_time(c, i); })
         .add("device", Unit::count, "its number; -1: pinned memory of the host",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) { c.put(e.device_of(i)); })
         .add("stream", Unit::count, "number of the CUDA stream",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
                e.put_stream(c, e.events().stream[static_cast<size_t>(i)]);
              })
         .add("pool", Unit::text, "private pool, as \"1.0\"; NULL: the default pool, or not told",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) { e.put_pool(c, i); })
         .add("category", Unit::text, "what PyTorch's memory profiler calls it; NULL where it does not",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
                e.put_text(c, e.events().category_of(static_cast<size_t>(i)));
              })
         .add("context", Unit::text, "what was told beside it: the compiled graph, metadata; NULL: nothing",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
                e.put_text(c, e.events().extra_of(static_cast<size_t>(i)));
              })
         .add("stack", Unit::count, "number of its stack in frames; NULL where none was recorded",
              [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
                e.put_stack(c, e.events().stack[static_cast<size_t>(i)]);
              })
         .add(
             "site", Unit::text, "the place in the code that its stack leads to; NULL without a stack",
             [](const SnapshotEvents& e, int64_t i, QueryCell& c) {
               e.put_site(c, e.events().stack[static_cast<size_t>(i)]);
             },
             Found::by_looking, Leads::place),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<SnapshotEvents>(s.snapshot); },
     {{"What the allocator did",
       "SELECT action, count(*) AS events, sum(size)\nFROM events GROUP BY action ORDER BY events DESC"}}});

/// Who is alive when, of every device one after the other.
struct Allocations final : SnapshotRows {
  explicit Allocations(std::shared_ptr<const snapshot::Snapshot> of) : SnapshotRows(std::move(of)) {
    for (size_t t = 0; t < s->traces.size(); ++t) {
      lines.push_back(std::make_unique<snapshot::Timeline>(*s, t));
      ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<int64_t>(lines.back()->elements()));
    }
  }
  int64_t end() const override { return ends.empty() ? 0 : ends.back(); }
  size_t trace_of(int64_t i) const {
    return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
  }
  snapshot::Element element(int64_t i) const {
    const size_t t = trace_of(i);
    return lines[t]->element(static_cast<uint32_t>(i - (t ? ends[t - 1] : 0)));
  }
  /// The event that made it, and the one that ended it, by their numbers in the file; -1: none.
  int64_t born(int64_t i) const {
    const snapshot::Element e = element(i);
    return e.before ? -1 : static_cast<int64_t>(s->traces[trace_of(i)].begin + e.born);
  }
  int64_t died(int64_t i) const {
    const size_t t = trace_of(i);
    const snapshot::Element e = element(i);
    return e.died >= lines[t]->events() ? -1 : static_cast<int64_t>(s->traces[t].begin + e.died);
  }
  std::vector<std::unique_ptr<snapshot::Timeline>> lines;
  std::vector<int64_t> ends;
};

const bool registered_allocations = register_query_table(
    QueryKind::snapshot,
    {"allocations",
     20,
     "the life of every allocation: those that the events make, and those that were there before",
     QueryColumns<Allocations>()
         .add(
             "id", Unit::count, "its number", [](const Allocations&, int64_t i, QueryCell& c) { c.put(i); },
             Found::unique, Leads::allocation)
         .add("address", Unit::count, "printf('%x', address) writes it as debuggers do",
              [](const Allocations& a, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(a.element(i).address)); })
         .add("size", Unit::bytes, "that were asked for",
              [](const Allocations& a, int64_t i, QueryCell& c) { c.put(a.element(i).bytes); })
         .add(
             "born", Unit::count, "id of the event that made it; NULL: it was there before",
             [](const Allocations& a, int64_t i, QueryCell& c) {
               if (const int64_t e = a.born(i); e >= 0) c.put(e);
             },
             Found::by_looking, Leads::event)
         .add(
             "died", Unit::count, "id of the event that ended it; NULL: it is alive at the end",
             [](const Allocations& a, int64_t i, QueryCell& c) {
               if (const int64_t e = a.died(i); e >= 0) c.put(e);
             },
             Found::by_looking, Leads::event)
         .add("lifetime_us", Unit::count, "microseconds it lived; NULL where either end is not known",
              [](const Allocations& a, int64_t i, QueryCell& c) {
                const int64_t born = a.born(i), died = a.died(i);
                if (born < 0 || died < 0) return;
                const auto& time = a.s->events.time_us;
                const int64_t from = time[static_cast<size_t>(born)], to = time[static_cast<size_t>(died)];
                if (from >= 0 && to >= 0) c.put(to - from);
              })
         .add("device", Unit::count, "its number; -1: pinned memory of the host",
              [](const Allocations& a, int64_t i, QueryCell& c) { c.put(a.s->traces[a.trace_of(i)].device); })
         .add("stream", Unit::count, "number of the CUDA stream",
              [](const Allocations& a, int64_t i, QueryCell& c) { a.put_stream(c, a.element(i).stream); })
         .add("category", Unit::text, "of the event that made it; NULL where it has none",
              [](const Allocations& a, int64_t i, QueryCell& c) {
                if (const int64_t e = a.born(i); e >= 0) a.put_text(c, a.s->events.category_of(static_cast<size_t>(e)));
              })
         .add("stack", Unit::count, "number of its stack in frames; NULL where none was recorded",
              [](const Allocations& a, int64_t i, QueryCell& c) { a.put_stack(c, a.element(i).stack); })
         .add(
             "site", Unit::text, "the place in the code that asked for it; NULL without a stack",
             [](const Allocations& a, int64_t i, QueryCell& c) { a.put_site(c, a.element(i).stack); },
             Found::by_looking, Leads::place),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<Allocations>(s.snapshot); },
     {{"Alive at the end, by site",
       "SELECT site, count(*) AS allocations, sum(size)\nFROM allocations WHERE died IS NULL\nGROUP BY site ORDER BY "
       "sum(size) DESC LIMIT 50"},
      {"The largest allocations",
       "SELECT size, born, died, lifetime_us, site\nFROM allocations ORDER BY size DESC LIMIT 50"},
      {"Small ones that live longest",
       "SELECT site, count(*) AS allocations, avg(lifetime_us) AS lifetime_us, sum(size)\nFROM allocations WHERE size "
       "< "
       "1048576\nGROUP BY site ORDER BY 3 DESC LIMIT 50"}}});

}  // namespace
}  // namespace tenon::projects
