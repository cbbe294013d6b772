// What a store keeps of an overview is what was worked out, of every trace; what is another's is worked out anew.
#include "tracing/analyses/whole_overview.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/file.h"
#include "tests/tracing/made_training.h"
#include "tracing/trace/column_file.h"
#include "tracing/trace/store_file.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

using traces::Trace;
using SharedTrace = std::shared_ptr<const Trace>;
namespace fs = std::filesystem;

std::vector<std::string> recorded_traces() {
  std::vector<std::string> all;
  for (const auto& e : fs::recursive_directory_iterator(std::string(TENON_SOURCE_DIR) + "/tests/tracing/torch"))
    if (e.path().string().find(".json") != std::string::npos) all.push_back(e.path().string());
  std::sort(all.begin(), all.end());
  return all;
}
SharedTrace read_alone(const std::string& path) {
  return traces::read_trace(path, {.read_cache = false, .write_cache = false});
}

/// All that views and programs see of it.
nlohmann::json seen_of(const WholeOverview& w) {
  nlohmann::json all = {{"text", kept_text(w)}};
  for (const Table& t : w.finding.tables)
    for (size_t r = 0; r < t.rows.size(); ++r)
      for (size_t c = 0; c < t.columns.size(); ++c) all[t.name].push_back(cell_text(t.rows[r][c], t.columns[c].unit));
  return all;
}

TEST(WholeOverviews, kept_are_the_same_to_the_last_bit) {
  size_t seen = 0;
  for (const std::string& file : recorded_traces()) {
    SCOPED_TRACE(file);
    SharedTrace trace;
    try {
      trace = read_alone(file);
    } catch (const Error&) {
      continue;
    }
    const auto fresh = whole_overview(trace);
    if (!fresh->overview) continue;
    const auto again = read_kept(kept_text(*fresh), *trace);
    ASSERT_TRUE(again);
    EXPECT_EQ(seen_of(*again), seen_of(*fresh));
    EXPECT_EQ(again->overview->gpu_busy, fresh->overview->gpu_busy);
    EXPECT_EQ(again->overview->sum.ns, fresh->overview->sum.ns);
    ++seen;
  }
  EXPECT_GE(seen, 8u);
}

class KeptTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    std::string text = train({.steps = 400});
    ASSERT_GT(text.size(), traces::kWorthSaving) << "a store is kept of what is as large";
    write_file(path_, text);
  }
  void TearDown() override { fs::remove_all(folder_); }
  SharedTrace open() const { return traces::read_trace(path_, {.write_cache = false}); }
  std::string folder_ = (fs::temp_directory_path() / ("tenon-overview-" + std::to_string(getpid()))).string();
  std::string path_ = folder_ + "/trace.json";
};

TEST_F(KeptTrace, says_at_the_second_opening_what_it_said_at_the_first) {
  const SharedTrace first = open();
  EXPECT_TRUE(first->kept().empty());
  keep_with_overview(first);
  const SharedTrace second = open();
  ASSERT_TRUE(second->from_cache());
  ASSERT_FALSE(second->kept().empty());
  EXPECT_EQ(seen_of(*whole_overview(second)), seen_of(*whole_overview(first)));
  // And it is what was kept that was said: another sentence there is another one here.
  std::string other(second->kept());
  const size_t at = other.find("The step is ");
  ASSERT_NE(at, std::string::npos);
  other.replace(at, 12, "A step is so");
  traces::write_store(*first, traces::file_key(path_), traces::cache_path(path_), other);
  EXPECT_EQ(whole_overview(open())->overview->sentence.substr(0, 9), "A step is");
}

TEST_F(KeptTrace, comes_to_a_store_that_was_saved_without) {
  traces::keep_store(*open());
  const SharedTrace without = open();
  ASSERT_TRUE(without->from_cache());
  ASSERT_TRUE(without->kept().empty());
  keep_with_overview(without);
  EXPECT_FALSE(open()->kept().empty());
  traces::keep_store(*open());
  EXPECT_FALSE(open()->kept().empty()) << "and stays there";
}

TEST_F(KeptTrace, of_another_version_or_trace_is_not_taken) {
  const SharedTrace trace = open();
  const std::string text = kept_text(*whole_overview(trace));
  ASSERT_TRUE(read_kept(text, *trace));
  std::string older = text;
  older.replace(older.find("overview "), 9, "Overview ");
  EXPECT_FALSE(read_kept(older, *trace));
  EXPECT_FALSE(read_kept(text.substr(0, text.size() - 1), *trace));
  const SharedTrace small = traces::parse_trace(train({.steps = 2}));
  EXPECT_FALSE(read_kept(text, *small)) << "its rows are about events that are not there";
}

/// Whatever is in the text: it is refused, or can be shown.
TEST_F(KeptTrace, made_to_do_harm_is_refused_or_harmless) {
  const SharedTrace trace = traces::parse_trace(train({.steps = 3}));
  const nlohmann::json good = nlohmann::json::parse(kept_text(*whole_overview(trace)));
  std::mt19937 random(3);
  const nlohmann::json bad[] = {-1,   INT64_MAX, INT64_MIN, 4'000'000'000, 1e300, "x", nullptr, nlohmann::json::array(),
                                true, 0,         7};
  int taken = 0;
  for (int i = 0; i < 3000; ++i) {
    nlohmann::json other = good;
    other[1 + random() % (other.size() - 1)] = bad[random() % std::size(bad)];
    const auto w = read_kept(other.dump(), *trace);
    if (!w) continue;
    ++taken;
    seen_of(*w);
    EXPECT_EQ(w->overview->sum.length(),
              std::accumulate(w->overview->steps.begin(), w->overview->steps.end(), int64_t{0},
                              [](int64_t sum, const StepTimes& s) { return sum + s.parts.length(); }));
    for (const Table& t : w->finding.tables)
      for (const Sight& s : t.sights) EXPECT_LT(s.event, static_cast<int64_t>(trace->size()));
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 3000);
}

/// Where this fails, an overview says something else than before: stores still keep the old words until the number at
/// the end of kOverviewForm (whole_overview.cpp) is raised. Then the new hash belongs here.
TEST(WholeOverviews, another_overview_is_another_version_of_what_is_kept) {
  std::string all;
  for (const Training& t : {Training{.steps = 5}, Training{.steps = 5, .data = 3000000, .stacks = true}}) {
    const std::string text = kept_text(*whole_overview(traces::parse_trace(train(t))));
    all += text.substr(text.find(','));  // the version itself is no part of what it says
  }
  EXPECT_EQ(traces::content_hash(all), 4699458841746349387u);
}

}  // namespace
}  // namespace tenon::tracing
