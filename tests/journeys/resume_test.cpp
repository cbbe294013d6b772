// A run that is killed at any moment and resumed is, bit for bit, the run that was never killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <random>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

const std::vector<std::string> kRecipe = {"--set", "data.batch_size=10", "--set", "checkpoint_every=37", "--epochs",
                                          "12"};
constexpr int kSteps = 2400;  // 2,000 samples

std::vector<std::string> train(const std::string& project, const std::string& run) {
  std::vector<std::string> words = {"train", project, "--run", run, "--json"};
  words.insert(words.end(), kRecipe.begin(), kRecipe.end());
  return words;
}

/// Every point of a metric without its wall time, which differs between runs.
std::vector<std::pair<int64_t, std::string>> values(const std::string& project, const std::string& run,
                                                    const std::string& metric) {
  std::vector<std::pair<int64_t, std::string>> out;
  for (const auto& j : tenon({"metrics", project, run, metric, "--json"}).json())
    out.emplace_back(j.at("step").get<int64_t>(), j.at("value").dump());
  return out;
}

struct Resume : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    const Outcome whole = tenon(train(project, "whole"));
    ASSERT_EQ(whole.status, 0) << whole.err;
    ASSERT_EQ(whole.json().back().at("step"), kSteps);
  }
  /// Goes on with a run until it has finished; without kills.
  void finish(const std::string& run) {
    const Outcome o = tenon({"train", project, "--resume", run});
    ASSERT_EQ(o.status, 0) << o.err;
  }
  bool exists(const std::string& run) {
    for (const auto& j : tenon({"runs", project, "--json"}).json())
      if (j.at("name") == run) return true;
    return false;
  }
  void expect_same(const std::string& run) {
    EXPECT_EQ(digest(project, run, "last"), digest(project, "whole", "last"));
    EXPECT_EQ(digest(project, run, "1111", 1), digest(project, "whole", "1111"));
    for (const char* metric : {"loss", "lr", "grad_norm", "test_loss", "test_accuracy"})
      EXPECT_EQ(values(project, run, metric), values(project, "whole", metric)) << metric;
    EXPECT_EQ(values(project, run, "loss").size(), static_cast<size_t>(kSteps));
  }
};

TEST_F(Resume, after_kills_at_random_moments) {
  std::mt19937 random(20261121);
  int kills = 0;
  for (int victim = 0; kills < 24; ++victim) {
    ASSERT_LT(victim, 200) << "the program ends before it can be killed";
    const std::string run = "victim-" + std::to_string(victim);
    for (int round = 0; round < 6; ++round) {
      const bool fresh = !exists(run);
      const auto words = fresh ? train(project, run) : std::vector<std::string>{"train", project, "--resume", run};
      const Outcome o = tenon_signalled(words, SIGKILL, 3000 + static_cast<int64_t>(random() % 250000));
      ASSERT_TRUE(o.status == -SIGKILL || o.status == 0) << o.err;
      if (o.status == 0) break;
      ++kills;
    }
    if (!exists(run)) continue;
    finish(run);
    expect_same(run);
    if (HasFailure()) return;
  }
}

TEST_F(Resume, after_ctrl_c) {
  Outcome o;
  for (int64_t wait = 2000000; wait > 1000; wait = wait * 2 / 3) {  // somewhere between the first step and the last
    const std::string run = "stopped-" + std::to_string(wait);
    o = tenon_signalled(train(project, run), SIGINT, wait);
    if (o.status != 0 || o.json().empty() || o.json().back().at("status") != "stopped") continue;
    EXPECT_LT(o.json().back().at("step").get<int>(), kSteps);
    finish(run);
    expect_same(run);
    return;
  }
  ADD_FAILURE() << "no run could be interrupted: " << o.out << o.err;
}

TEST_F(Resume, a_run_keeps_what_it_stands_on_and_one_that_is_done_has_nothing_to_go_on_with) {
  EXPECT_EQ(tenon({"train", project, "--resume", "whole", "--set", "data.batch_size=5"}).status, 2);
  const Outcome done = tenon({"train", project, "--resume", "whole", "--set", "optimizer.lr=1"});
  EXPECT_EQ(done.status, 2);
  EXPECT_NE(done.err.find("epochs"), std::string::npos) << done.err;
  EXPECT_TRUE(tenon({"run", project, "whole", "--json"}).json().at(0).at("changes").empty());
  const Outcome o = tenon({"train", project, "--resume", "wohle"});
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("whole"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace tenon::journeys
