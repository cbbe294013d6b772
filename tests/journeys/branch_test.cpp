// What would have become of a run: branches and the search for what made a loss jump, on the command line.
#include <gtest/gtest.h>
#include <random>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct Branch : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    const Outcome o = tenon({"train", project, "--run", "whole", "--set", "data.batch_size=10", "--set",
                             "checkpoint_every=37", "--epochs", "6"});
    ASSERT_EQ(o.status, 0) << o.err;
  }
};

TEST_F(Branch, says_what_it_is_of_and_what_is_other) {
  const Outcome o = tenon({"train", project, "--from", "whole@500", "--set", "optimizer.lr=0.05", "--without-samples",
                           "7, 20-22", "--run", "b", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.json().front().at("parent").at("run"), "whole");
  EXPECT_EQ(o.json().front().at("parent").at("step"), 500);
  EXPECT_EQ(o.json().back().at("step"), 1200);
  const auto run = tenon({"run", project, "b", "--json"}).json().front();
  EXPECT_EQ(run.at("parent").at("step"), 500);
  EXPECT_EQ(run.at("recipe").at("data").at("without"), "7, 20-22");
  EXPECT_NE(tenon({"run", project, "b"}).out.find("whole after step 500"), std::string::npos);
  EXPECT_EQ(digest(project, "b", "499"), digest(project, "whole", "499"));
  EXPECT_EQ(digest(project, "b", "123"), digest(project, "whole", "123"));
  EXPECT_NE(digest(project, "b", "501"), digest(project, "whole", "501"));
  EXPECT_EQ(tenon({"query", project, "select parent, parent_step from runs where name = 'b'", "--csv"})
                    .out.find("whole,500") != std::string::npos,
            true);
  EXPECT_EQ(tenon({"train", project, "--from", "whole@9999"}).status, 2);
  EXPECT_EQ(tenon({"train", project, "--from", "nobody@3"}).status, 2);
}

TEST_F(Branch, without_a_change_is_its_parent_also_after_kills) {
  std::mt19937 random(20261125);
  for (int round = 0; round < 6; ++round) {
    const std::string run = "b" + std::to_string(round);
    train_through_a_kill(project, run, {"--from", "whole@431"}, 30000 + static_cast<int64_t>(random() % 300000));
    EXPECT_EQ(digest(project, run, "last"), digest(project, "whole", "last"));
    EXPECT_EQ(digest(project, run, "777", 1), digest(project, "whole", "777"));
  }
}

TEST_F(Branch, the_cause_of_a_jump_is_named_and_left_out) {
  const Outcome jump = tenon({"train", project, "--resume", "whole", "--set", "optimizer.lr=30", "--set", "epochs=7"});
  ASSERT_EQ(jump.status, 0) << jump.err;
  const Outcome plan = tenon({"spike", project, "whole", "--plan", "--json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  const auto most = plan.json().back().at("most");
  const Outcome first = tenon({"spike", project, "whole", "--json"}),
                second = tenon({"spike", project, "whole", "--json"});
  ASSERT_EQ(first.status, 0) << first.err << first.out;
  EXPECT_EQ(first.json().back(), second.json().back());
  const auto found = first.json().back();
  EXPECT_EQ(found.at("cause"), "rate");
  EXPECT_EQ(found.at("without_it").at("from"), 1200);
  EXPECT_LE(found.at("replays"), most.at("replays"));
  const Outcome words = tenon({"spike", project, "whole"});
  EXPECT_NE(words.out.find("--from whole@1200"), std::string::npos) << words.out;
  EXPECT_EQ(tenon({"spike", project, "whole", "--step", "1"}).status, 2) << "no jump there";
}

}  // namespace
}  // namespace tenon::journeys
