// Levels of detail against brute force: whatever a canvas asks for, counts, sums and extremes are those of the single
// events.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <random>

#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_reader.h"

namespace tenon {
namespace {

std::shared_ptr<const traces::Trace> random_trace(int events, std::mt19937& random) {
  std::string text = "[";
  for (int i = 0; i < events; ++i) {
    // Runs of short ones, rarely a long one, and some that lie in others.
    const int64_t start = static_cast<int64_t>(i) * 10, length = random() % 50 == 0 ? 400 : random() % 9;
    text += fmt::format(
        "{}{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n{}\",\"pid\":1,\"tid\":{},\"ts\":{}.{:03d},\"dur\":{}}}",
        i ? "," : "", random() % 20, random() % 3, start, random() % 1000, length);
  }
  return traces::parse_trace(text + "]");
}

TEST(Levels, OfATraceAddUpToItsEvents) {
  std::mt19937 random(11);
  auto t = random_trace(30000, random);
  const auto span = static_cast<uint64_t>(t->finish() - t->begin());
  for (int ask = 0; ask < 300; ++ask) {
    const auto lane = static_cast<uint32_t>(random() % t->lanes().size());
    int64_t from = t->begin() + static_cast<int64_t>(random() % span),
            to = t->begin() + static_cast<int64_t>(random() % span);
    if (from > to) std::swap(from, to);
    if (ask % 7 == 0) from = t->begin(), to = t->finish() + 1;
    const size_t buckets = 1 + random() % 500;
    uint64_t count = 0;
    int64_t busy = 0, longest = -1;
    const traces::Lane& l = t->lanes()[lane];
    for (traces::EventId e = l.begin; e < l.end; ++e) {
      if (t->start(e) >= to || (t->end(e) <= from && t->start(e) < from)) continue;
      ++count;
      busy += t->duration(e);
      longest = std::max(longest, t->duration(e));
    }
    auto parts = t->summarise(lane, from, to, buckets);
    EXPECT_LE(parts.size(), 2 * buckets + 2);
    uint64_t sum_count = 0;
    int64_t sum_busy = 0, most = -1, before = INT64_MIN;
    for (const traces::Summary& s : parts) {
      sum_count += s.count;
      sum_busy += s.busy;
      most = std::max(most, t->duration(s.longest));
      EXPECT_GE(s.start, before);
      before = s.start;
    }
    EXPECT_EQ(sum_count, count);
    EXPECT_EQ(sum_busy, busy);
    EXPECT_EQ(most, longest);
  }
}

TEST(Levels, OfMemoryNeverLoseAPeakOrAValley) {
  std::mt19937 random(3);
  std::string text = R"({"segments": [], "device_traces": [[)";
  std::vector<std::pair<uint64_t, int>> alive;
  for (int i = 0; i < 20000; ++i) {
    const bool frees = !alive.empty() && random() % 2;
    uint64_t address = 1000 + static_cast<uint64_t>(i);
    int size = static_cast<int>(1 + random() % (random() % 100 ? 4096 : 1000000));
    if (frees) {
      std::swap(alive[random() % alive.size()], alive.back());
      std::tie(address, size) = alive.back();
      alive.pop_back();
    } else if (random() % 40) {  // some are freed by an address that nothing took
      alive.emplace_back(address, size);
    }
    text += fmt::format("{}{{\"action\":\"{}\",\"addr\":{},\"size\":{},\"stream\":0,\"frames\":[]}}", i ? "," : "",
                        frees            ? "free_completed"
                        : random() % 200 ? "alloc"
                                         : "free_completed",
                        address, size);
  }
  auto s = snapshot::parse_snapshot(text + "]]}");
  snapshot::Timeline t(*s, 0);
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < t.events(); ++i) bytes.push_back(t.bytes(i));
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), t.peak_bytes());
  for (int ask = 0; ask < 500; ++ask) {
    size_t from = random() % t.events(), to = 1 + random() % t.events();
    if (from >= to) std::swap(from, to), ++to;
    const size_t buckets = std::min<size_t>(1 + random() % 60, to - from);
    auto usage = t.usage(from, to, buckets);
    to = std::min(to, t.events());
    ASSERT_EQ(usage.size(), std::min(buckets, to - from));
    for (size_t b = 0; b < usage.size(); ++b) {
      const size_t begin = from + (to - from) * b / usage.size(), end = from + (to - from) * (b + 1) / usage.size();
      auto [low, high] =
          std::minmax_element(bytes.begin() + static_cast<long>(begin), bytes.begin() + static_cast<long>(end));
      EXPECT_EQ(usage[b].low, *low);
      EXPECT_EQ(usage[b].high, *high);
      EXPECT_EQ(usage[b].last, bytes[end - 1]);
    }
    // Who is alive at a moment makes up what is alive.
    const size_t at = random() % t.events();
    int64_t live = 0;
    for (uint32_t id : t.live(at)) live += t.element(id).bytes;
    EXPECT_EQ(live, bytes[at]);
  }
}

}  // namespace
}  // namespace tenon
