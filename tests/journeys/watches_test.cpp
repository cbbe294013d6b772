// Watches on the command line: they mark, pause and stop, are listed with what they saw, and any condition is found.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct WatchJourney : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override { ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0); }
  Outcome train(std::vector<std::string> more) {
    more.insert(more.begin(), {"train", project});
    return tenon(more);
  }
  std::vector<nlohmann::json> watches(std::vector<std::string> more) {
    more.insert(more.begin(), {"watches", project});
    more.push_back("--json");
    const Outcome o = tenon(more);
    EXPECT_EQ(o.err, "");
    return o.json();
  }
};

TEST_F(WatchJourney, a_run_is_held_by_a_watch_and_goes_on) {
  const Outcome held = train({"--run", "r", "--max-steps", "60", "--watch", "loss > 0 * median(loss, 12): pause",
                              "--watch", "norm(grad(*)) > 0 every 5: count"});
  ASSERT_EQ(held.status, 0) << held.err;
  EXPECT_NE(held.out.find("watch: loss > 0 * median(loss, 12) at step 13: loss is "), std::string::npos) << held.out;
  EXPECT_NE(held.out.find("run r stopped after step 13 by a watch (loss > 0"), std::string::npos) << held.out;
  ASSERT_EQ(train({"--resume", "r"}).status, 0);
  ASSERT_EQ(train({"--run", "bare", "--max-steps", "60"}).status, 0);
  EXPECT_EQ(tenon({"digest", project, "r", "--step", "60"}).out,
            tenon({"digest", project, "bare", "--step", "60"}).out);

  const auto all = watches({"r"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].at("watch"), "loss > 0 * median(loss, 12)");
  EXPECT_EQ(all[0].at("action"), "pause");
  EXPECT_EQ(all[0].at("held"), 48);
  EXPECT_EQ(all[0].at("began"), 1);
  EXPECT_EQ(all[0].at("first").at("step"), 13);
  EXPECT_EQ(all[1].at("held"), 12);
  EXPECT_GT(all[1].at("cost").get<double>(), 0);
  EXPECT_EQ(watches({"r", "--all"}).size(), 60u);
  EXPECT_NE(tenon({"watches", project, "r"}).out.find("norm(grad(*)) > 0 every 5"), std::string::npos);
  EXPECT_NE(tenon({"watches", project, "bare"}).out.find("run bare has no watches"), std::string::npos);
}

TEST_F(WatchJourney, a_killed_run_sees_the_same) {
  const std::vector<std::string> set = {"--max-steps", "1500",
                                        "--set",       "epochs=40",
                                        "--watch",     "loss > 1.05 * median(loss, 20)",
                                        "--watch",     "max_abs(grad(*)) > 0.1: count"};
  std::vector<std::string> killed{"train", project, "--run", "killed"}, whole{"train", project, "--run", "whole"};
  killed.insert(killed.end(), set.begin(), set.end());
  whole.insert(whole.end(), set.begin(), set.end());
  // On a busy machine the first ones die before there is a run.
  for (int64_t wait = 400000; wait < 30000000; wait *= 2) {
    (void)tenon_signalled(killed, SIGKILL, wait);
    if (tenon({"watches", project, "killed"}).status == 0) break;
  }
  (void)tenon_signalled({"train", project, "--resume", "killed"}, SIGKILL, 300000);
  ASSERT_EQ(tenon({"train", project, "--resume", "killed"}).status, 0);
  ASSERT_EQ(tenon(whole).status, 0);
  EXPECT_EQ(watches({"killed", "--all"}), watches({"whole", "--all"}));
  EXPECT_FALSE(watches({"whole", "--all"}).empty());
}

TEST_F(WatchJourney, the_first_step_of_a_condition_is_found_in_a_run_that_had_no_watches) {
  ASSERT_EQ(train({"--run", "r", "--max-steps", "60", "--set", "checkpoint_every=10"}).status, 0);
  const Outcome by_record = tenon({"watches", project, "r", "--find", "loss > 0"});
  EXPECT_EQ(by_record.status, 0);
  EXPECT_NE(by_record.out.find("nothing is replayed"), std::string::npos) << by_record.out;
  EXPECT_NE(by_record.out.find("step 1: loss is "), std::string::npos) << by_record.out;
  const Outcome replayed = tenon({"watches", project, "r", "--find", "norm(update(*)) > 0"});
  EXPECT_EQ(replayed.status, 0);
  EXPECT_NE(replayed.out.find("Replays up to 60 steps"), std::string::npos) << replayed.out;
  const auto bisected = watches({"r", "--find", "norm(update(*)) > 0", "--bisect"});
  ASSERT_EQ(bisected.size(), 1u);
  EXPECT_EQ(bisected[0].at("step"), 1);
  EXPECT_TRUE(bisected[0].at("bisect"));
  const Outcome never = tenon({"watches", project, "r", "--find", "nonfinite(grad(*)) > 0"});
  EXPECT_EQ(never.status, 1);
  EXPECT_NE(never.out.find("It holds at no step"), std::string::npos) << never.out;

  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"los > 1", "did you mean loss"}, {"norm(grad(nobody)) > 1", "nobody"}, {"loss > 1: pause", "ends here"}}) {
    const Outcome wrong = tenon({"watches", project, "r", "--find", text});
    EXPECT_EQ(wrong.status, 2) << text;
    EXPECT_NE(wrong.err.find(says), std::string::npos) << wrong.err;
  }
  EXPECT_EQ(train({"--watch", "los > 1"}).status, 2);
  EXPECT_EQ(tenon({"watches", project, "r", "--bisect"}).status, 2);
}

TEST_F(WatchJourney, every_part_that_keys_lists_is_a_watch) {
  int parts = 0;
  for (const nlohmann::json& row : tenon({"keys", "watches", "--json"}).json()) {
    if (!row.contains("choice")) continue;
    const std::string text = row.at("choice");
    const Outcome set = tenon({"recipe", project, "--set", "watches=" + text, "--json"});
    EXPECT_EQ(set.status, 0) << text;
    const bool other_run = text.starts_with("loss_scale") || text.starts_with("test_");  // other tasks, or fp16
    if (!other_run) {
      EXPECT_EQ(train({"--max-steps", "2"}).status, 0) << text;
    }
    ++parts;
  }
  EXPECT_GE(parts, 30);
  EXPECT_EQ(tenon({"recipe", project, "--reset", "watches"}).status, 0);
}

}  // namespace
}  // namespace tenon::journeys
