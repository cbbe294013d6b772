// How a run's weights, gradients and updates are spread, as a script sees it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/formats/npy.h"
#include "tests/journeys/tenon_process.h"
#include "tracing/record/numbers.h"

namespace tenon::journeys {
namespace {

struct DistributionsCommand : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override { ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0); }
  void train(std::vector<std::string> more) {
    std::vector<std::string> words = {"train", project, "--set", "checkpoint_every=5"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = tenon(words);
    ASSERT_EQ(o.status, 0) << o.err;
  }
};

TEST_F(DistributionsCommand, tells_of_every_parameter_and_of_each_step) {
  train({"--run", "first", "--max-steps", "20"});
  train({"--run", "second", "--max-steps", "3"});
  const Outcome table = tenon({"distributions", project, "--run", "first"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_NE(table.out.find("first: weights after step 20, gradients and updates of step 16 · 5 points"),
            std::string::npos)
      << table.out;
  for (const char* word : {"LOG10 RATIO", "GRADIENT NORM", "layers.0.weight", "layers.4.bias"})
    EXPECT_NE(table.out.find(word), std::string::npos) << table.out;

  const Outcome json = tenon({"distributions", project, "--run", "first", "--parameter", "*.4.weight", "--json"});
  ASSERT_EQ(json.status, 0) << json.err;
  const auto lines = json.json();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines.front().at("step"), 1);
  EXPECT_EQ(lines.back().at("step"), 20);
  EXPECT_TRUE(lines.back().at("gradient").is_null());
  EXPECT_TRUE(lines.back().at("update_by_weight").is_null());
  for (size_t i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(lines[i].at("update_by_weight").get<double>(),
                     lines[i].at("update").at("norm").get<double>() / lines[i].at("weight").at("norm").get<double>());

  // The same numbers as those of a tensor that another command writes.
  const std::string file = folder / "w.npy";
  ASSERT_EQ(
      tenon({"goto", project, "first", "--step", "16", "--tensor", "model/layers.4.weight", "--out", file}).status, 0);
  const tracing::Statistics s = tracing::statistics(formats::load_npy(file));
  const auto& weight = lines[3].at("weight");
  ASSERT_EQ(lines[3].at("step"), 16);
  EXPECT_EQ(weight.at("count"), s.count);
  EXPECT_DOUBLE_EQ(weight.at("norm").get<double>(), s.norm);
  EXPECT_DOUBLE_EQ(weight.at("std").get<double>(), s.deviation);
  EXPECT_EQ(weight.at("quantiles").front().at(1).get<double>(), s.min);
  EXPECT_EQ(weight.at("quantiles").back().at(1).get<double>(), s.max);
  EXPECT_EQ(
      json.out,
      tenon({"distributions", project, "--run", "first", "--parameter", "*.4.weight", "--json", "--threads", "1"}).out);

  std::set<std::string> names;
  const Outcome latest = tenon({"distributions", project, "--json"});
  for (const auto& j : latest.json()) {
    EXPECT_EQ(j.at("run"), "second");
    names.insert(j.at("parameter").get<std::string>());
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_NE(tenon({"distributions", project, "--parameter", "*.bias"}).out.find("layers.2.bias, 64 elements"),
            std::string::npos);
}

TEST_F(DistributionsCommand, says_what_is_not_there) {
  const Outcome none = tenon({"distributions", project});
  EXPECT_NE(none.status, 0);
  EXPECT_NE(none.err.find("run"), std::string::npos) << none.err;
  train({"--run", "first", "--max-steps", "3"});
  const Outcome typo = tenon({"distributions", project, "--parameter", "layers.0.wieght"});
  EXPECT_EQ(typo.status, 2);
  EXPECT_NE(typo.err.find("layers.0.weight"), std::string::npos) << typo.err;
  EXPECT_EQ(tenon({"distributions", project, "--run", "nobody"}).status, 2);
}

TEST_F(DistributionsCommand, tells_of_a_run_that_is_not_finite) {
  train({"--run", "first", "--max-steps", "12", "--set", "optimizer.lr=1e30", "--set", "on_nan=continue"});
  EXPECT_NE(tenon({"distributions", project}).out.find("not finite"), std::string::npos);
  int64_t bad = 0;
  const Outcome json = tenon({"distributions", project, "--json"});
  for (const auto& j : json.json()) bad += j.at("weight").at("not_finite").get<int64_t>();
  EXPECT_GT(bad, 0);
}

}  // namespace
}  // namespace tenon::journeys
