// The traces of several ranks as one: which of a folder are taken, and all of them in one store on one axis.
#include "tracing/analyses/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tests/tracing/made_ranks.h"
#include "tracing/analyses/ranks.h"

namespace tenon::tracing {
namespace {

class ASession : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "session_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Session read() { return read_session({folder_}, {.read_cache = false, .write_cache = false}); }
  std::string folder_;
};

TEST_F(ASession, IsJoinedWithoutLosingAnythingAndOnOneAxis) {
  const int64_t clocks[] = {0, 3500000, -120000};
  for (int rank : {2, 0, 1}) write_rank(folder_, rank, clocks[rank]);
  const Session session = read();
  EXPECT_TRUE(session.left_out.empty());
  ASSERT_EQ(session.ranks.size(), 3u);
  const auto joined = join_ranks(session.ranks, folder_);
  const traces::Trace& whole = *joined.whole;
  ASSERT_EQ(joined.parts.size(), 3u);
  size_t events = 0, launches = 0, rows = 0;
  for (const traces::TracePart& part : joined.parts) {
    const traces::Trace& t = *part.trace;
    EXPECT_EQ(part.first_event, events);
    EXPECT_EQ(part.first_row, rows);
    for (traces::EventId e = 0; e < t.size(); ++e) {
      const traces::EventId w = part.first_event + e;
      ASSERT_EQ(whole.event_name(w), t.event_name(e));
      ASSERT_EQ(whole.category(w).name, t.category(e).name);
      ASSERT_EQ(whole.kind(w), t.kind(e));
      ASSERT_EQ(whole.start(w), t.start(e) + part.shift);
      ASSERT_EQ(whole.duration(w), t.duration(e));
      ASSERT_EQ(whole.row_of(w), part.first_row + t.row_of(e));
      const traces::EventId up = t.parent(e), call = t.launch_of(e);
      ASSERT_EQ(whole.parent(w), up == traces::kNone ? traces::kNone : up + part.first_event);
      ASSERT_EQ(whole.launch_of(w), call == traces::kNone ? traces::kNone : call + part.first_event);
      if (e % 50 == 0) {
        ASSERT_EQ(whole.event_text(w), t.event_text(e));
      }
    }
    events += t.size(), launches += t.launches().size(), rows += t.rows().size();
  }
  EXPECT_EQ(whole.size(), events);
  EXPECT_EQ(whole.launches().size(), launches);
  EXPECT_EQ(whole.rows().size(), rows);
  EXPECT_TRUE(whole.rows().front().process.starts_with("rank 0"));
  // The last collective ends for all at once, whatever their clocks say, as the analysis of ranks has it.
  const auto offsets = align_clocks(session.ranks);
  int64_t ends[3] = {};
  for (size_t r = 0; r < 3; ++r) {
    const traces::TracePart& part = joined.parts[r];
    EXPECT_EQ(session.ranks[r]->rank(), static_cast<int64_t>(r));
    EXPECT_EQ(part.shift, r ? -offsets[r].ahead_ns : 0);
    for (traces::EventId e = 0; e < part.trace->size(); ++e)
      if (part.trace->event_name(e).starts_with("nccl")) ends[r] = std::max(ends[r], whole.end(part.first_event + e));
  }
  EXPECT_NEAR(static_cast<double>(ends[1] - ends[0]), 0, 40000);
  EXPECT_NEAR(static_cast<double>(ends[2] - ends[0]), 0, 40000);
  EXPECT_EQ(whole.begin(),
            std::min({joined.parts[0].trace->begin(), joined.parts[1].trace->begin() + joined.parts[1].shift,
                      joined.parts[2].trace->begin() + joined.parts[2].shift}));
}

TEST_F(ASession, LeavesOutWhatCannotBeReadAndWhatIsThereTwice) {
  write_rank(folder_, 0, 0);
  write_rank(folder_, 1, 0);
  write_rank(folder_, 1, 60000000, "again");  // of the next cycle
  std::ofstream(folder_ + "/config.json") << "{\"layers\": 4}";
  std::ofstream(folder_ + "/empty.json") << "[]";
  std::ofstream(folder_ + "/notes.txt") << "no trace";
  const Session session = read();
  ASSERT_EQ(session.ranks.size(), 2u);
  EXPECT_TRUE(session.ranks[1]->path().ends_with("again_1.pt.trace.json")) << session.ranks[1]->path();
  ASSERT_EQ(session.left_out.size(), 3u);
  EXPECT_TRUE(session.left_out[0].starts_with("config.json is no trace: ")) << session.left_out[0];
  EXPECT_EQ(session.left_out[1], "empty.json holds no events.");
  EXPECT_EQ(session.left_out[2],
            "host_1.pt.trace.json is of rank 1, of which again_1.pt.trace.json begins later and is taken.");
}

TEST_F(ASession, WithoutATraceIsAnErrorThatSaysSo) {
  auto message = [&] {
    try {
      read();
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(), "there is no trace in " + folder_);
  std::ofstream(folder_ + "/config.json") << "{\"layers\": 4}";
  EXPECT_TRUE(message().starts_with("there is no trace in " + folder_ + " that can be read: config.json is no trace: "))
      << message();
}

TEST_F(ASession, IsStoppedByItsProgressWithinAnyFile) {
  for (int rank = 0; rank < 3; ++rank) write_rank(folder_, rank, 0);
  uint64_t last = 0, all = 0;
  read_session({folder_}, {.read_cache = false, .write_cache = false, .progress = [&](uint64_t done, uint64_t total) {
                             EXPECT_GE(done, last);
                             last = done, all = total;
                             return true;
                           }});
  EXPECT_EQ(last, all);
  int calls = 0;
  EXPECT_THROW(read_session({folder_}, {.read_cache = false,
                                        .write_cache = false,
                                        .progress = [&](uint64_t, uint64_t) { return ++calls < 2; }}),
               Error);
}

TEST_F(ASession, WhoseTracesShareNothingBeginsTogetherWhereNoClockTells) {
  MadeTrace first(0, 5000000000), second(1, 77000000000);
  for (MadeTrace* t : {&first, &second}) t->op("aten::op", 1000, "kernel", 2000);
  const std::vector<std::shared_ptr<const traces::Trace>> ranks = {traces::parse_trace(first.text()),
                                                                   traces::parse_trace(second.text())};
  const auto joined = join_ranks(ranks, "session");
  EXPECT_EQ(joined.parts[1].shift, ranks[0]->begin() - ranks[1]->begin());
  EXPECT_EQ(joined.whole->begin(), ranks[0]->begin());
}

}  // namespace
}  // namespace tenon::tracing
