// What a memory snapshot holds beside its events: memory as it was when it was taken, stacks, settings.
#include <algorithm>

#include "projects/query/query_table.h"
#include "projects/query/snapshot_rows.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

struct Segments final : SnapshotRows {
  using SnapshotRows::SnapshotRows;
  int64_t end() const override { return static_cast<int64_t>(s->segments.size()); }
  const snapshot::Segment& operator[](int64_t i) const { return s->segments[static_cast<size_t>(i)]; }
};

const bool registered_segments = register_query_table(
    QueryKind::snapshot,
    {"segments",
     30,
     "what the allocator holds of each device when the snapshot was taken",
     QueryColumns<Segments>()
         .add(
             "id", Unit::count, "its number", [](const Segments&, int64_t i, QueryCell& c) { c.put(i); }, Found::unique,
             Leads::segment)
         .add("device", Unit::count, "its number; -1: pinned memory of the host",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(s[i].device); })
         .add("address", Unit::count, "printf('%x', address) writes it as debuggers do",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(s[i].address)); })
         .add("total", Unit::bytes, "its size", [](const Segments& s, int64_t i, QueryCell& c) { c.put(s[i].total); })
         .add("allocated", Unit::bytes, "of blocks in use",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(s[i].allocated); })
         .add("active", Unit::bytes, "of blocks in use, and those that wait for another stream",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(s[i].active); })
         .add("requested", Unit::bytes, "that were asked for, before rounding",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(s[i].requested); })
         .add("stream", Unit::count, "number of the CUDA stream",
              [](const Segments& s, int64_t i, QueryCell& c) { s.put_stream(c, s[i].stream); })
         .add("large", Unit::count, "1: of the pool of large blocks, else 0",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(int64_t{s[i].large}); })
         .add("expandable", Unit::count, "1: it may grow, else 0",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(int64_t{s[i].expandable}); })
         .add("pool", Unit::text, "private pool, as \"1.0\"; NULL: the default pool",
              [](const Segments& s, int64_t i, QueryCell& c) { s.put_pool(c, s[i].pool); })
         .add("blocks", Unit::count, "how many it is cut into",
              [](const Segments& s, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(s[i].blocks)); })
         .add("stack", Unit::count, "number of its stack in frames; NULL where none was recorded",
              [](const Segments& s, int64_t i, QueryCell& c) { s.put_stack(c, s[i].stack); })
         .add(
             "site", Unit::text, "the place in the code that made the allocator take it; NULL without a stack",
             [](const Segments& s, int64_t i, QueryCell& c) { s.put_site(c, s[i].stack); }, Found::by_looking,
             Leads::place),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<Segments>(s.snapshot); },
     {{"Segments by unused memory",
       "SELECT id, total - active AS unused, total, blocks, stream, pool\nFROM segments ORDER BY unused DESC LIMIT "
       "50"}}});

struct Blocks final : SnapshotRows {
  explicit Blocks(std::shared_ptr<const snapshot::Snapshot> of)
      : SnapshotRows(std::move(of)), segment(s->blocks.size()) {
    for (size_t g = 0; g < s->segments.size(); ++g)
      for (size_t b = 0; b < s->segments[g].blocks; ++b)
        if (s->segments[g].first_block + b < segment.size())
          segment[s->segments[g].first_block + b] = static_cast<uint32_t>(g);
  }
  int64_t end() const override { return static_cast<int64_t>(s->blocks.size()); }
  const snapshot::Block& operator[](int64_t i) const { return s->blocks[static_cast<size_t>(i)]; }
  std::vector<uint32_t> segment;  ///< by block
};

const bool registered_blocks = register_query_table(
    QueryKind::snapshot,
    {"blocks",
     40,
     "what the segments are cut into",
     QueryColumns<Blocks>()
         .add(
             "id", Unit::count, "its number", [](const Blocks&, int64_t i, QueryCell& c) { c.put(i); }, Found::unique,
             Leads::block)
         .add(
             "segment", Unit::count, "id in segments",
             [](const Blocks& b, int64_t i, QueryCell& c) { c.put(int64_t{b.segment[static_cast<size_t>(i)]}); },
             Found::by_looking, Leads::segment)
         .add("address", Unit::count, "printf('%x', address) writes it as debuggers do",
              [](const Blocks& b, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(b[i].address)); })
         .add("size", Unit::bytes, "rounded", [](const Blocks& b, int64_t i, QueryCell& c) { c.put(b[i].size); })
         .add("requested", Unit::bytes, "that were asked for",
              [](const Blocks& b, int64_t i, QueryCell& c) { c.put(b[i].requested); })
         .add("state", Unit::text, "active, inactive, or pending_free: it waits for another stream",
              [](const Blocks& b, int64_t i, QueryCell& c) {
                static constexpr const char* kNames[] = {"inactive", "active", "pending_free"};
                c.put_standing(kNames[static_cast<int>(b[i].state)]);
              })
         .add("stack", Unit::count, "number of its stack in frames; NULL where none was recorded",
              [](const Blocks& b, int64_t i, QueryCell& c) { b.put_stack(c, b[i].stack); })
         .add(
             "site", Unit::text, "the place in the code that asked for it; NULL without a stack",
             [](const Blocks& b, int64_t i, QueryCell& c) { b.put_site(c, b[i].stack); }, Found::by_looking,
             Leads::place),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<Blocks>(s.snapshot); },
     {{"Blocks by their state",
       "SELECT state, count(*) AS blocks, sum(size), sum(requested)\nFROM blocks GROUP BY state"}}});

struct Frames final : SnapshotRows {
  using SnapshotRows::SnapshotRows;
  int64_t end() const override { return static_cast<int64_t>(s->stack_frames.size()); }
  size_t stack(int64_t i) const {
    return static_cast<size_t>(std::upper_bound(s->stack_ends.begin(), s->stack_ends.end(), static_cast<uint64_t>(i)) -
                               s->stack_ends.begin());
  }
  /// Null where a damaged file names a frame that it does not have.
  const snapshot::Snapshot::Frame* frame(int64_t i) const {
    const uint32_t f = s->stack_frames[static_cast<size_t>(i)];
    return f < s->frames.size() ? &s->frames[f] : nullptr;
  }
};

const bool registered_frames = register_query_table(
    QueryKind::snapshot,
    {"frames",
     50,
     "the lines of every stack, the most recent call first",
     QueryColumns<Frames>()
         .add(
             "stack", Unit::count, "as events, allocations, segments and blocks name it",
             [](const Frames& f, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(f.stack(i))); }, Found::sorted)
         .add("depth", Unit::count, "0: the most recent call",
              [](const Frames& f, int64_t i, QueryCell& c) {
                const size_t stack = f.stack(i);
                c.put(i - static_cast<int64_t>(stack ? f.s->stack_ends[stack - 1] : 0));
              })
         .add("function", Unit::text, "its name",
              [](const Frames& f, int64_t i, QueryCell& c) {
                if (const auto* frame = f.frame(i)) f.put_text(c, frame->function);
              })
         .add("file", Unit::text, "of the code",
              [](const Frames& f, int64_t i, QueryCell& c) {
                if (const auto* frame = f.frame(i)) f.put_text(c, frame->file);
              })
         .add("line", Unit::count, "in the file",
              [](const Frames& f, int64_t i, QueryCell& c) {
                if (const auto* frame = f.frame(i)) c.put(frame->line);
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<Frames>(s.snapshot); },
     {{"Stack of the largest block",
       "SELECT depth, function, file, line FROM frames\nWHERE stack = (SELECT stack FROM blocks ORDER BY size DESC "
       "LIMIT "
       "1)"}}});

using Texts = QueryList<std::pair<std::string, std::string>>;

const bool registered_snapshot_settings = register_query_table(
    QueryKind::snapshot, {"settings", 60, "of the allocator",
                          QueryColumns<Texts>()
                              .add("key", Unit::text, "its name",
                                   [](const Texts& t, int64_t i, QueryCell& c) { c.put_standing(t[i].first); })
                              .add("value", Unit::text, "as text",
                                   [](const Texts& t, int64_t i, QueryCell& c) { c.put_standing(t[i].second); }),
                          [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
                            return std::make_unique<Texts>(s.snapshot->settings);
                          }});

using Annotations = QueryList<snapshot::Annotation>;

const bool registered_annotations = register_query_table(
    QueryKind::snapshot, {"annotations", 70, "what was marked while memory was recorded (record_function)",
                          QueryColumns<Annotations>()
                              .add("name", Unit::text, "of the mark",
                                   [](const Annotations& a, int64_t i, QueryCell& c) { c.put_standing(a[i].name); })
                              .add("begins", Unit::count, "1: it begins here, 0: it ends",
                                   [](const Annotations& a, int64_t i, QueryCell& c) { c.put(int64_t{a[i].start}); })
                              .add("device", Unit::count, "its number",
                                   [](const Annotations& a, int64_t i, QueryCell& c) { c.put(a[i].device); })
                              .add("time_us", Unit::count, "microseconds, as the file has them",
                                   [](const Annotations& a, int64_t i, QueryCell& c) { c.put(a[i].time_us); }),
                          [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
                            return std::make_unique<Annotations>(s.snapshot->annotations);
                          }});

using PassedOver = QueryList<std::pair<std::string, uint64_t>>;

const bool registered_snapshot_repairs = register_query_table(
    QueryKind::snapshot,
    {"repairs", 80, "what of the file was passed over when it was read",
     QueryColumns<PassedOver>()
         .add("kind", Unit::text, "what was wrong",
              [](const PassedOver& r, int64_t i, QueryCell& c) { c.put_standing(r[i].first); })
         .add("count", Unit::count, "how often",
              [](const PassedOver& r, int64_t i, QueryCell& c) { c.put(static_cast<int64_t>(r[i].second)); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<PassedOver>(s.snapshot->repairs);
     }});

}  // namespace
}  // namespace tenon::projects
