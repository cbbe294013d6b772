// The benchmark of the window with large files, on small ones: what it says is there, and its flight really moves.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

const std::string kBin = std::string(TENON_BINARY_DIR) + "/bin/";

std::map<std::string, double> figures(const Outcome& o, const char* workload = "open") {
  std::map<std::string, double> found;
  for (const auto& j : o.json()) {
    EXPECT_EQ(j.at("workload"), workload);
    found[j.at("metric")] = j.at("value");
  }
  return found;
}

class BenchOpen : public ::testing::Test {
 protected:
  /// Under a display of its own.
  static Outcome measure_window(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"xvfb-run",     "-a",   "-n", "220", "-s", "-screen 0 1600x1000x24",
                                    kBin + "tenon", "bench"};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back("--json");
    return run(all);
  }
  static Outcome measure(const std::string& file) { return measure_window({"open", file}); }
  void make(const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all[0] = kBin + all[0];
    ASSERT_EQ(run(all).status, 0);
  }
  void expect_a_flight(const Outcome& o, const std::string& file) {
    if (o.status != 0 && (o.err.find("has no window") != std::string::npos || o.status == 127))
      GTEST_SKIP() << "no window, or no virtual display: " << o.err;
    ASSERT_EQ(o.status, 0) << o.err;
    auto found = figures(o);
    EXPECT_EQ(found["file"], static_cast<double>(std::filesystem::file_size(file)));
    for (const char* metric : {"first_picture", "whole", "second_first_picture", "second_whole", "rss_opened", "frame",
                               "frame_p99", "frame_worst", "frame_work", "deaf_opening_p99", "deaf_opening_worst",
                               "deaf_flight_p99", "deaf_flight_worst", "deaf_second_opening_p99"})
      EXPECT_GT(found[metric], 0) << metric;
    EXPECT_GE(found["whole"], found["first_picture"]);
    EXPECT_GE(found["frame_worst"], found["frame_p99"]);
    EXPECT_GE(found["frame_p99"], found["frame"]);
    EXPECT_GT(found["frames"], 100);
    EXPECT_GT(found["frames_moved"], 60);  // a small file is soon at its ends
    EXPECT_LE(found["frames_moved"], found["frames"]);
    for (const auto& beside : std::filesystem::directory_iterator(folder.path()))
      EXPECT_EQ(beside.path().string(), file) << "nothing is left beside the file";
  }
  Folder folder;
};

TEST_F(BenchOpen, a_trace_is_flown_through) {
  const std::string file = folder / "t.json";
  make({"make_trace", "6000000", file});
  expect_a_flight(measure(file), file);
}

TEST_F(BenchOpen, a_snapshot_is_flown_through) {
  const std::string file = folder / "s.pickle";
  make({"make_snapshot", "2000000", file});
  expect_a_flight(measure(file), file);
}

TEST_F(BenchOpen, a_graph_is_unfolded_and_flown_through) {
  const std::string file = folder / "m.onnx";
  make({"make_model", "onnx", "400", file});
  const Outcome o = measure(file);
  expect_a_flight(o, file);
  if (o.status == 0) {
    EXPECT_GT(figures(o)["unfold"], 0);
  }
}

TEST_F(BenchOpen, a_deep_model_is_worked_with_in_the_builder) {
  const Outcome o = measure_window({"builder", "--layers", "120"});
  if (o.status == 127 || o.err.find("was not measured") != std::string::npos)
    GTEST_SKIP() << "no window, or no virtual display: " << o.err;
  ASSERT_EQ(o.status, 0) << o.err;
  auto found = figures(o, "builder");
  EXPECT_GE(found["layers"], 120);
  for (const char* wait : {"open", "unfold", "arrange"}) EXPECT_GT(found[wait], 0) << wait;
  for (const char* state : {"folded", "unfolded"})
    for (const char* hand : {"zoom", "pan", "hover", "click", "band", "drag"}) {
      const std::string frame = std::string("frame_") + state + "_" + hand;
      EXPECT_GT(found[frame], 0) << frame;
      EXPECT_GE(found[frame + "_worst"], found[frame]) << frame;
    }
}

TEST_F(BenchOpen, it_wants_a_file_that_is_no_project) {
  Outcome o = tenon({"bench", "open"});
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("open needs a file"), std::string::npos) << o.err;
  o = tenon({"bench", "open", folder / "nowhere.json"});
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("nowhere.json is no file"), std::string::npos) << o.err;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  o = tenon({"bench", "open", project});
  EXPECT_NE(o.status, 0);
  EXPECT_TRUE(o.err.find("bench curves") != std::string::npos || o.err.find("has no window") != std::string::npos)
      << o.err;
}

}  // namespace
}  // namespace tenon::journeys
