// A step op by op on the command line: its ops, what one of them read and gave, breaks; a value that is changed and
// gone on with; one element over steps.
#include <gtest/gtest.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct WalkJourney : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    const Outcome o = tenon({"train", project, "--run", "r", "--max-steps", "40", "--set", "checkpoint_every=10"});
    ASSERT_EQ(o.status, 0) << o.err;
  }
  Outcome walk(std::vector<std::string> more) {
    std::vector<std::string> words = {"walk", project, "r", "--step", "12"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  }
  std::vector<nlohmann::json> walked(std::vector<std::string> more) {
    more.push_back("--json");
    const Outcome o = walk(more);
    EXPECT_EQ(o.err, "");
    return o.json();
  }
};

TEST_F(WalkJourney, lists_the_ops_and_shows_one_with_its_tensors) {
  const auto ops = walked({});
  ASSERT_GT(ops.size(), 20u);
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(ops[i].at("seq"), i + 1);
  EXPECT_EQ(ops.front().at("phase"), "forward");
  EXPECT_EQ(ops.back().at("phase"), "optimizer");
  EXPECT_NE(walk({}).out.find("linear"), std::string::npos);

  const auto last = walked({"--at", std::to_string(ops.size())}).front();
  bool written = false;
  for (const auto& t : last.at("tensors")) {
    if (t.at("role") != "written over") continue;
    written = true;
    EXPECT_NE(t.at("before").at("max"), t.at("after").at("max")) << t.dump();
  }
  EXPECT_TRUE(written) << last.dump();
  EXPECT_GT(last.at("alive").size(), 4u);
  const Outcome said = walk({"--at", std::to_string(ops.size()), "--alive"});
  EXPECT_NE(said.out.find("written over"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("before the step"), std::string::npos) << said.out;
  EXPECT_EQ(walk({"--at", "9999"}).status, 2);
}

TEST_F(WalkJourney, runs_on_to_breaks) {
  const auto every = walked({"--break", "op linear", "--every"});
  ASSERT_GE(every.size(), 2u);
  for (const auto& j : every) EXPECT_EQ(j.at("op"), "linear");
  const auto first = walked({"--break", "op linear"});
  EXPECT_EQ(first.front().at("seq"), every.front().at("seq"));
  const auto second = walked({"--break", "op linear", "--at", std::to_string(every[0].at("seq").get<int>())});
  EXPECT_EQ(second.front().at("seq"), every[1].at("seq"));
  const auto back = walked({"--break", "op linear", "--back"});
  EXPECT_EQ(back.front().at("seq"), every.back().at("seq"));
  const auto held = walked({"--break", "max_abs(output(*)) > 0.1"});
  EXPECT_GT(held.front().at("value").get<double>(), 0.1);
  EXPECT_NE(walk({"--break", "max_abs(output(*)) > 0.1"}).out.find("Stopped at "), std::string::npos);
  const Outcome none = walk({"--break", "nonfinite(output(*)) > 0"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.out.find("No break holds"), std::string::npos);
  EXPECT_EQ(walk({"--break", "max_abs(grad(*)) > 1"}).status, 2);
  EXPECT_EQ(walk({"--back"}).status, 2);
}

TEST_F(WalkJourney, a_value_is_changed_and_gone_on_with) {
  const auto ops = walked({"--break", "op linear"});
  const std::string op = std::to_string(ops.front().at("seq").get<int>());
  const Outcome o = tenon({"train", project, "--from", "r@11", "--run", "b", "--edit", "#" + op + ": output[0,0] = 9"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(digest(project, "b", "11"), digest(project, "r", "11"));
  EXPECT_NE(digest(project, "b", "12"), digest(project, "r", "12"));
  EXPECT_EQ(digest(project, "b", "12"), digest(project, "b", "12", 1));
  const auto run = tenon({"run", project, "b", "--json"}).json().front();
  EXPECT_EQ(run.at("recipe").at("edits"), "12 #" + op + ": output[0, 0] = 9");
  // Another process replays it with the edit.
  const auto there = tenon({"walk", project, "b", "--step", "12", "--at", op, "--json"}).json().front();
  double most = 0;
  for (const auto& t : there.at("tensors"))
    if (t.at("role") == "output") most = t.at("after").at("max").get<double>();
  EXPECT_EQ(most, 9);
  // Where nothing changes it is the parent.
  ASSERT_EQ(tenon({"train", project, "--from", "r@11", "--run", "same", "--edit", "#" + op + ": output * 1"}).status,
            0);
  EXPECT_EQ(digest(project, "same", "40"), digest(project, "r", "40"));
  EXPECT_EQ(tenon({"train", project, "--from", "r@11", "--edit", "#9999: output = 0"}).status, 1);
  EXPECT_EQ(tenon({"train", project, "--from", "r@11", "--edit", "output = 0"}).status, 2);
  EXPECT_EQ(tenon({"runs", project, "--json"}).json().size(), 3u);
}

TEST_F(WalkJourney, one_element_is_followed_over_steps) {
  const auto tensors = tenon({"goto", project, "r", "--step", "30", "--json"}).json();
  std::string weight;
  for (const auto& t : tensors)
    if (t.at("name").get<std::string>().starts_with("model/") && t.at("shape").size() == 2)
      weight = t.at("name").get<std::string>().substr(6);
  const auto steps =
      tenon({"history", project, "r", weight, "--element", "1,1", "--step", "30", "--last", "4", "--json"}).json();
  ASSERT_EQ(steps.size(), 4u);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(steps[i].at("before"), steps[i - 1].at("after"));
  EXPECT_EQ(steps[3].at("step"), 30);
  EXPECT_EQ(steps[3].at("writes").size(), 1u);
  const Outcome said = tenon({"history", project, "r", weight, "--element", "1,1", "--last", "3"});
  EXPECT_NE(said.out.find("steps 38 to 40: written by "), std::string::npos) << said.out;
  EXPECT_EQ(tenon({"history", project, "r", weight, "--element", "0"}).status, 2);
  EXPECT_EQ(tenon({"history", project, "r", weight, "--element", "a,b"}).status, 2);
  EXPECT_EQ(tenon({"history", project, "r", "nobody", "--element", "0"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
