// What the processor reaches at most, measured by tenon doctor, and the ops of a project held against it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

/// With a cache folder in which nothing is kept yet.
class RooflineJourney : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* was = std::getenv("XDG_CACHE_HOME")) before_ = was;
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  static nlohmann::json ceilings_of(const Outcome& doctor) {
    for (const nlohmann::json& j : doctor.json())
      if (j.at("what") == "ceilings") return j;
    ADD_FAILURE() << "no ceilings in " << doctor.out;
    return {};
  }
  Folder folder;
  std::string before_;
};

TEST_F(RooflineJourney, doctor_measures_once_and_remembers) {
  const auto before = ceilings_of(tenon({"doctor", "--threads", "1", "--json"}));
  EXPECT_FALSE(before.contains("flops_per_second"));
  EXPECT_NE(before.at("hint").get<std::string>().find("tenon doctor --measure"), std::string::npos);
  const Outcome measured = tenon({"doctor", "--measure", "--threads", "1", "--json"});
  ASSERT_EQ(measured.status, 0) << measured.err;
  const auto now = ceilings_of(measured);
  EXPECT_GT(now.at("flops_per_second").get<double>(), 0);
  EXPECT_GT(now.at("bytes_per_second").get<double>(), 0);
  EXPECT_EQ(now.at("threads"), 1);
  EXPECT_EQ(ceilings_of(tenon({"doctor", "--threads", "1", "--json"})), now) << "kept, not measured again";
  EXPECT_NE(tenon({"doctor", "--threads", "1"}).out.find("GB/s copied with 1 thread"), std::string::npos);
  EXPECT_FALSE(ceilings_of(tenon({"doctor", "--threads", "2", "--json"})).contains("flops_per_second"));
}

TEST_F(RooflineJourney, steps_are_held_against_what_was_measured) {
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  // Of a fresh start, with nothing measured yet.
  const Outcome first = tenon({"profile", project, "--roofline", "--steps", "2", "--threads", "1", "--json"});
  ASSERT_EQ(first.status, 0) << first.err;
  const auto j = first.json().at(0);
  EXPECT_EQ(j.at("run"), "fresh start");
  const auto kept = ceilings_of(tenon({"doctor", "--threads", "1", "--json"}));
  EXPECT_DOUBLE_EQ(j.at("peak_gflops").get<double>() * 1e9, kept.at("flops_per_second").get<double>());
  EXPECT_DOUBLE_EQ(j.at("copy_gbytes").get<double>() * 1e9, kept.at("bytes_per_second").get<double>());
  const auto& rows = j.at("ops");
  ASSERT_GT(rows.size(), 5u);
  int64_t took = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    took += rows[i].at("took_ns").get<int64_t>();
    EXPECT_GE(rows[i].at("calls"), 2) << "of two steps: " << rows[i].dump();
    EXPECT_LE(rows[i].at("to_win_ns"), rows[i > 0 ? i - 1 : 0].at("to_win_ns"));
  }
  EXPECT_EQ(took + j.at("between_ns").get<int64_t>(), j.at("step_ns").get<int64_t>());
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const auto& r) { return r.at("op") == "linear"; }));
  // Of a run, as a page; nothing is written.
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "6"}).status, 0);
  const Outcome page = tenon({"profile", project, "--roofline", "--run", "r", "--step", "3", "--steps", "1"});
  ASSERT_EQ(page.status, 0) << page.err;
  EXPECT_EQ(page.out.find("--- run r\nOf the "), 0u) << page.out;
  EXPECT_NE(page.out.find(" of step 3, "), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("TO WIN"), std::string::npos) << page.out;
  const Outcome both = tenon({"profile", project, "--roofline", "-o", folder / "t.json"});
  EXPECT_EQ(both.status, 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "t.json"));
  EXPECT_EQ(tenon({"profile", project}).status, 2) << "a trace goes somewhere";
}

}  // namespace
}  // namespace tenon::journeys
