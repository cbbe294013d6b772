// The tables of a memory snapshot against what was read of it.
#include <nlohmann/json.hpp>

#include "tests/projects/query/asked.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::projects {
namespace {

using namespace testing_query;
using nlohmann::json;

/// Two devices: one whose events make and end allocations, of which one is from before, and one alone with a block.
std::shared_ptr<const snapshot::Snapshot> made_snapshot() {
  const auto frames = [](const char* file, int line) {
    return json{{{"filename", file}, {"line", line}, {"name", "forward"}},
                {{"filename", "train.py"}, {"line", 3}, {"name", "<module>"}}};
  };
  json events = json::array();
  const auto add = [&](const char* action, int64_t address, int64_t size, const char* file) {
    events.push_back({{"action", action},
                      {"addr", address},
                      {"size", size},
                      {"stream", 7},
                      {"time_us", 1000 + 10 * static_cast<int64_t>(events.size())},
                      {"frames", frames(file, 12)}});
  };
  add("segment_alloc", 4096, 2097152, "model.py");
  add("alloc", 4096, 512, "model.py");
  add("alloc", 8192, 1024, "head.py");
  add("free_completed", 1048576, 64, "old.py");
  add("free_requested", 4096, 512, "model.py");
  add("free_completed", 4096, 512, "model.py");
  const auto block = [&](int64_t size, const char* state) {
    return json{{"size", size}, {"requested_size", size}, {"state", state}, {"frames", frames("head.py", 12)}};
  };
  json segments = {{{"device", 0},
                    {"address", 4096},
                    {"total_size", 2097152},
                    {"allocated_size", 1024},
                    {"active_size", 1024},
                    {"requested_size", 1000},
                    {"stream", 7},
                    {"segment_type", "small"},
                    {"blocks", {block(4096, "inactive"), block(1024, "active_allocated")}}},
                   {{"device", 1},
                    {"address", 65536},
                    {"total_size", 20971520},
                    {"allocated_size", 2048},
                    {"active_size", 2048},
                    {"requested_size", 2048},
                    {"stream", 0},
                    {"segment_type", "large"},
                    {"blocks", {block(2048, "active_allocated")}}}};
  return snapshot::parse_snapshot(json{{"segments", segments}, {"device_traces", {events, json::array()}}}.dump());
}

struct SnapshotTables : ::testing::Test {
  std::shared_ptr<const snapshot::Snapshot> s = made_snapshot();
  QueryBase base{{.snapshot = s}};
};

TEST_F(SnapshotTables, events_are_those_of_the_file) {
  const auto all = rows(base, "SELECT id, action, address, size, time_us, device, stream, stack, site FROM events");
  ASSERT_EQ(all.size(), s->events.size_());
  ASSERT_EQ(all.size(), 6u);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i],
              (Row{static_cast<int64_t>(i), std::string(snapshot::name(s->events.action[i])),
                   static_cast<int64_t>(s->events.address[i]), s->events.size[i], s->events.time_us[i], int64_t{0},
                   s->streams[s->events.stream[i]], int64_t{s->events.stack[i]}, s->site(s->events.stack[i])}));
  EXPECT_EQ(number(base, "SELECT stream FROM events WHERE id = 1"), 7);
}

TEST_F(SnapshotTables, allocations_are_the_lives_of_the_timeline) {
  std::vector<std::string> expected;
  for (size_t t = 0; t < s->traces.size(); ++t) {
    const snapshot::Timeline line(*s, t);
    for (uint32_t i = 0; i < line.elements(); ++i) {
      const snapshot::Element e = line.element(i);
      const auto event = [&](bool there, size_t at) {
        return there ? QueryValue(static_cast<int64_t>(s->traces[t].begin + at)) : QueryValue();
      };
      expected.push_back(text({static_cast<int64_t>(e.address), e.bytes, event(!e.before, e.born),
                               event(e.died < line.events(), e.died), s->traces[t].device}));
    }
  }
  std::vector<std::string> found;
  for (const Row& r : rows(base, "SELECT address, size, born, died, device FROM allocations")) found.push_back(text(r));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(text(rows(base, "SELECT size, lifetime_us, site FROM allocations WHERE born = 1").at(0)),
            "512|40|forward (model.py:12)");
  EXPECT_EQ(number(base, "SELECT count(*) FROM allocations WHERE born IS NULL AND died = 3"), 1);
  // Born and died name rows of events.
  EXPECT_EQ(number(base, "SELECT count(*) FROM allocations a JOIN events e ON e.id = a.born WHERE e.action = 'alloc'"),
            2);
}

TEST_F(SnapshotTables, segments_blocks_and_frames) {
  EXPECT_EQ(text(rows(base,
                      "SELECT device, address, total, allocated, active, requested, stream, large, blocks, pool "
                      "FROM segments WHERE id = 0")
                     .at(0)),
            "0|4096|2097152|1024|1024|1000|7|0|2|");
  EXPECT_EQ(number(base, "SELECT sum(size) FROM blocks WHERE state = 'active'"), 3072);
  EXPECT_EQ(
      number(base, "SELECT count(*) FROM blocks b JOIN segments s ON s.id = b.segment WHERE b.address < s.address"), 0);
  EXPECT_EQ(number(base, "SELECT device FROM blocks b JOIN segments s ON s.id = b.segment WHERE b.size = 2048"), 1);
  EXPECT_EQ(text(rows(base,
                      "SELECT depth, function, file, line FROM frames WHERE stack = (SELECT stack FROM events "
                      "WHERE id = 2) ORDER BY depth DESC")
                     .at(0)),
            "1|<module>|train.py|3");
  for (uint32_t stack = 0; stack < s->stacks(); ++stack)
    EXPECT_EQ(number(base, "SELECT count(*) FROM frames WHERE stack = " + std::to_string(stack)),
              static_cast<int64_t>(s->stack(stack).size()));
}

TEST_F(SnapshotTables, every_table_of_an_empty_snapshot_is_empty) {
  QueryBase empty({.snapshot = std::make_shared<snapshot::Snapshot>()});
  for (const QueryTable& t : query_tables(QueryKind::snapshot))
    EXPECT_EQ(number(empty, "SELECT count(*) FROM " + t.name), 0) << t.name;
}

}  // namespace
}  // namespace tenon::projects
