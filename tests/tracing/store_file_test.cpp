// The saved store of a trace: what comes back is what was saved, and what is damaged is not taken.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.h"
#include "core/file.h"
#include "tests/sealed.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/analyses/whole_overview.h"
#include "tracing/trace/store_file.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::traces {
namespace {

class StoreFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("tenon-store-" + std::to_string(getpid()))).string();
    ReadOptions one;
    one.threads = 1;
    trace_ = parse_trace(read_file(std::string(TENON_SOURCE_DIR) + "/tests/fuzz/seeds/trace/kineto.json"), one);
    write_store(*trace_, key_, path_, tracing::kept_text(*tracing::whole_overview(trace_)));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
  FileKey key_{"/a/trace.json", 1256, 7, "00ff"};
  std::shared_ptr<const Trace> trace_;
};

TEST_F(StoreFiles, ComeBackAsTheyWere) {
  auto t = open_store(path_, key_);
  ASSERT_TRUE(t);
  EXPECT_TRUE(t->from_cache());
  EXPECT_EQ(t->path(), key_.path);
  ASSERT_EQ(t->size(), trace_->size());
  for (EventId e = 0; e < t->size(); ++e) {
    EXPECT_EQ(t->start(e), trace_->start(e));
    EXPECT_EQ(t->duration(e), trace_->duration(e));
    EXPECT_EQ(t->event_name(e), trace_->event_name(e));
    EXPECT_EQ(t->kind(e), trace_->kind(e));
    EXPECT_EQ(t->launch_of(e), trace_->launch_of(e));
  }
  EXPECT_EQ(t->metadata(), trace_->metadata());
  EXPECT_EQ(t->memory().size(), trace_->memory().size());
}

TEST_F(StoreFiles, GivenAsAFileItIsTheTrace) {
  const auto t = read_trace(path_);
  EXPECT_EQ(t->size(), trace_->size());
  EXPECT_TRUE(t->from_cache());
  EXPECT_TRUE(t->event_text(0).empty()) << "the trace it was saved for is gone";
  write_file(path_, read_file(path_).substr(0, 200));
  EXPECT_THROW(read_trace(path_), Error);
}

TEST_F(StoreFiles, OfOtherBytesAreNotTaken) {
  for (int field = 0; field < 4; ++field) {
    FileKey other = key_;
    if (field == 0) other.path += "x";
    if (field == 1) ++other.bytes;
    if (field == 2) ++other.changed_ns;
    if (field == 3) other.hash[0] ^= 1;
    EXPECT_FALSE(open_store(path_, other)) << field;
  }
}

TEST_F(StoreFiles, CutShortOrDamagedAreRefused) {
  const std::string whole = read_file(path_);
  for (size_t n = 0; n < whole.size(); n += 7) {
    write_file(path_, whole.substr(0, n));
    EXPECT_FALSE(open_store(path_, key_)) << n;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ (1 << at % 8));
    write_file(path_, broken);
    EXPECT_FALSE(open_store(path_, key_)) << at;
  }
}

TEST_F(StoreFiles, MadeToDoHarmAreRefusedOrHarmless) {
  const std::string whole = read_file(path_);
  std::mt19937 random(5);
  int taken = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string broken = whole;
    for (int k = 0; k < 1 + i % 3; ++k) broken[random() % broken.size()] = static_cast<char>(random());
    write_file(path_, sealed(broken));
    auto t = open_store(path_, key_);
    if (!t) continue;
    ++taken;  // the bytes hit what no rule binds: a time, a name, padding
    tracing::TraceRequest r;
    r.traces.push_back(t);
    for (const auto& a : tracing::trace_analyses())
      if (a.min_traces == 1) a.run(r);
    const auto overview = tracing::whole_overview(t);
    for (const tracing::Table& table : overview->finding.tables)
      for (const tracing::Sight& s : table.sights) ASSERT_LT(s.event, static_cast<int64_t>(t->size()));
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 2000);
}

}  // namespace
}  // namespace tenon::traces
