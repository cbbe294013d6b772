// Memory over time divided among groups: every figure is compared with what is alive event by event.
#include "tracing/snapshot/stacked_usage.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "tests/tracing/made_snapshot.h"

namespace tenon::snapshot {
namespace {

/// Allocations of places of very different sizes, freed in any order; some stay.
std::shared_ptr<const Snapshot> busy(int events) {
  MadeSnapshot m;
  const Philox random{5, 1};
  std::vector<uint64_t> alive;
  uint64_t drawn = 0;
  for (int i = 0; i < events; ++i) {
    if (alive.size() > 3 && random.below(drawn++, 5) < 2) {
      const size_t which = random.below(drawn++, alive.size());
      m.free(alive[which]);
      alive.erase(alive.begin() + static_cast<ptrdiff_t>(which));
      continue;
    }
    const int place = static_cast<int>(random.below(drawn++, 20));
    const auto bytes = 1 + static_cast<int64_t>(random.below(drawn++, 1000)) * (place + 1) * (place + 1);
    const auto stream = static_cast<int64_t>(random.below(drawn++, 2)) * 7;
    alive.push_back(m.alloc("place" + std::to_string(place) + ".py", bytes, stream));
  }
  return m.done();
}

std::map<std::string, int64_t> alive_by(const Snapshot& s, const Timeline& t, size_t at,
                                        const std::vector<StackedUsage::Band>& bands) {
  std::map<std::string, int64_t> sums;
  for (const auto& b : bands) sums[b.name] = 0;
  for (const uint32_t id : t.live(at)) {
    const std::string site = s.site(t.element(id).stack);
    sums[sums.count(site) ? site : "everything else"] += t.element(id).bytes;
  }
  return sums;
}

TEST(StackedUsage, every_moment_is_what_is_alive_then) {
  const auto s = busy(3000);
  const Timeline t(*s, 0);
  const StackedUsage usage(*s, t, {.bands = 6});
  ASSERT_EQ(usage.bands().size(), 7u);
  EXPECT_TRUE(usage.bands().back().rest);
  for (size_t at = 0; at < t.events(); at += 97) {
    const auto expected = alive_by(*s, t, at, usage.bands());
    const auto got = usage.bytes(at);
    for (size_t b = 0; b < got.size(); ++b) EXPECT_EQ(got[b], expected.at(usage.bands()[b].name)) << at << " " << b;
  }
  const auto peak = usage.bytes(t.peak());
  for (size_t b = 0; b < peak.size(); ++b) EXPECT_EQ(peak[b], usage.bands()[b].at_peak);
  for (size_t b = 2; b + 1 < usage.bands().size(); ++b)
    EXPECT_GE(usage.bands()[b - 1].at_peak, usage.bands()[b].at_peak) << "the largest at the peak stand lowest";
}

TEST(StackedUsage, a_column_shows_the_highest_moment_of_its_events) {
  const auto s = busy(3000);
  const Timeline t(*s, 0);
  const StackedUsage usage(*s, t, {.bands = 5});
  const size_t n = t.events();
  for (auto [from, to] : {std::pair<size_t, size_t>{0, n},
                          {0, 1},
                          {n - 1, n},
                          {255, 257},
                          {256, 512},
                          {100, 2000},
                          {511, 1800},
                          {n / 2, n}}) {
    const auto c = usage.highest(from, to);
    int64_t most = INT64_MIN;
    for (size_t i = from; i < to; ++i) most = std::max(most, t.bytes(i));
    EXPECT_EQ(c.total, most) << from << "-" << to;
    EXPECT_EQ(t.bytes(c.event), most);
    EXPECT_GE(c.event, from);
    EXPECT_LT(c.event, to);
    EXPECT_EQ(c.bands, usage.bytes(c.event));
    EXPECT_EQ(std::accumulate(c.bands.begin(), c.bands.end(), int64_t{0}), most);
  }
}

TEST(StackedUsage, a_walk_from_column_to_column_shows_what_each_shows_alone) {
  const auto s = busy(3000);
  const Timeline t(*s, 0);
  const StackedUsage usage(*s, t, {.bands = 5});
  for (const size_t step : {1u, 7u, 100u, 256u, 300u, 513u, 900u}) {
    StackedUsage::Walk walk;
    for (size_t from = 3; from < t.events(); from += step) {
      const size_t to = std::min(from + step, t.events());
      const auto walked = usage.highest(from, to, &walk), alone = usage.highest(from, to);
      ASSERT_EQ(walked.event, alone.event) << from << "-" << to;
      ASSERT_EQ(walked.total, alone.total);
      ASSERT_EQ(walked.bands, alone.bands);
    }
    // One that does not begin where the last one ended starts anew.
    EXPECT_EQ(usage.highest(40, 90, &walk).bands, usage.highest(40, 90).bands);
  }
}

TEST(StackedUsage, what_is_pinned_has_a_band_however_small) {
  const auto s = busy(2000);
  const Timeline t(*s, 0);
  const StackedUsage plain(*s, t, {.bands = 3});
  const std::string small = "f (place0.py:1)";
  for (const auto& b : plain.bands()) ASSERT_NE(b.name, small);
  const StackedUsage pinned(*s, t, {.bands = 3, .pinned = small});
  ASSERT_EQ(pinned.bands().size(), 5u);
  EXPECT_EQ(pinned.bands()[0].name, small);
  for (size_t at = 0; at < t.events(); at += 61)
    EXPECT_EQ(pinned.bytes(at)[0], alive_by(*s, t, at, pinned.bands()).at(small));
  EXPECT_EQ(StackedUsage(*s, t, {.bands = 3, .pinned = "nobody"}).bands().size(), plain.bands().size());
}

TEST(StackedUsage, by_size_and_stream_the_bands_add_up_to_the_same) {
  const auto s = busy(1500);
  const Timeline t(*s, 0);
  for (const UsageBy by : {UsageBy::place, UsageBy::size, UsageBy::stream, UsageBy::category}) {
    const StackedUsage usage(*s, t, {.by = by});
    for (size_t at = 0; at < t.events(); at += 101) {
      const auto bands = usage.bytes(at);
      EXPECT_EQ(std::accumulate(bands.begin(), bands.end(), int64_t{0}), t.bytes(at)) << name(by);
    }
  }
  const StackedUsage streams(*s, t, {.by = UsageBy::stream});
  ASSERT_EQ(streams.bands().size(), 2u);
  for (uint32_t id = 0; id < t.elements(); ++id) {
    const std::string stream = "stream " + std::to_string(s->streams[t.element(id).stream]);
    EXPECT_EQ(streams.bands()[streams.band_of(id)].name, stream);
  }
}

TEST(StackedUsage, what_was_there_before_counts_from_the_first_event_on) {
  MadeSnapshot m;
  m.alloc("a.py", 10);
  m.segment(1 << 20, 4096, {{1000, true, "before.py"}, {3096, false, ""}});
  const auto s = m.done();
  const Timeline t(*s, 0);
  const StackedUsage usage(*s, t, {});
  const auto first = alive_by(*s, t, 0, usage.bands());
  EXPECT_EQ(first.at("f (before.py:1)"), 1000);
  EXPECT_EQ(usage.highest(0, 1).total, 1010);
}

TEST(StackedUsage, is_stopped_when_asked_and_nothing_is_no_error) {
  const auto s = busy(500);
  const Timeline t(*s, 0);
  EXPECT_THROW(StackedUsage(*s, t, {.progress = [](uint64_t, uint64_t) { return false; }}), Error);
  MadeSnapshot bare;
  bare.segment(1 << 20, 4096, {{4096, false, ""}});
  const auto empty = bare.done();
  const Timeline nothing(*empty, 0);
  const StackedUsage none(*empty, nothing, {});
  EXPECT_TRUE(none.bands().empty());
  EXPECT_TRUE(none.bytes(0).empty());
}

}  // namespace
}  // namespace tenon::snapshot
