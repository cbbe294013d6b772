// A run goes on with another recipe, and is named, found, deleted and brought back, on the command line.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct RunCare : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    ASSERT_EQ(tenon({"train", project, "--run", "first", "--max-steps", "40"}).status, 0);
  }
  std::string digest(const std::string& run, const std::string& step) {
    const Outcome o = tenon({"digest", project, run, "--step", step});
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  }
  nlohmann::json about(const std::string& run) {
    const Outcome o = tenon({"run", project, run, "--json"});
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status ? nlohmann::json() : o.json().at(0);
  }
  size_t listed(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"runs", project, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words).json().size();
  }
};

TEST_F(RunCare, a_run_goes_on_with_another_rate_and_is_the_same_when_it_was_killed_on_the_way) {
  const std::vector<std::string> more = {"--set", "max_steps=3000", "--set", "epochs=40", "--set", "optimizer.lr=0.02"};
  std::vector<std::string> go_on{"train", project, "--resume", "first"};
  go_on.insert(go_on.end(), more.begin(), more.end());
  // Killed somewhere behind the change, and gone on with by a plain resume.
  (void)tenon_signalled(go_on, SIGKILL, 350000);
  if (about("first").at("changes").empty()) (void)tenon_signalled(go_on, SIGKILL, 2000000);
  ASSERT_EQ(about("first").at("changes").size(), 1u);
  ASSERT_EQ(tenon({"train", project, "--resume", "first"}).status, 0);

  ASSERT_EQ(tenon({"train", project, "--run", "second", "--max-steps", "40"}).status, 0);
  go_on[3] = "second";
  const Outcome whole = tenon(go_on);
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(about("second").at("changes").at(0).at("step"), 40);
  EXPECT_EQ(about("second").at("changes").at(0).at("recipe").at("optimizer").at("lr"), 0.02);
  for (const char* step : {"40", "41", "last"}) EXPECT_EQ(digest("first", step), digest("second", step)) << step;
  EXPECT_NE(tenon({"run", project, "second"}).out.find("after step 40: "), std::string::npos);
  EXPECT_NE(tenon({"run", project, "second", "--against", "first"}).out.find("told the same"), std::string::npos);

  const Outcome refused = tenon({"train", project, "--resume", "first", "--set", "data.batch_size=7"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("data.batch_size cannot change"), std::string::npos) << refused.err;
}

TEST_F(RunCare, named_found_deleted_and_brought_back) {
  ASSERT_EQ(tenon({"train", project, "--max-steps", "3", "--set", "optimizer.lr=0.5"}).status, 0);
  const Outcome o = tenon(
      {"run", project, "first", "--rename", "warm", "--tag", "good", "--tag", "two words", "--note", "half the rate"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(about("warm").at("note"), "half the rate");
  EXPECT_EQ(about("warm").at("tags"), nlohmann::json({"good", "two words"}));
  EXPECT_EQ(listed({"--filter", "tags ~ good"}), 1u);
  EXPECT_EQ(tenon({"run", project, "warm", "--untag", "bad"}).status, 2);
  EXPECT_EQ(tenon({"run", project, "warm", "--untag", "good"}).status, 0);
  EXPECT_EQ(listed({"--filter", "tags ~ good"}), 0u);
  const Outcome against = tenon({"run", project, "spirals-01", "--against", "warm"});
  EXPECT_NE(against.out.find("optimizer.lr"), std::string::npos) << against.out;

  ASSERT_EQ(tenon({"run", project, "warm", "--delete"}).status, 0);
  EXPECT_EQ(listed(), 1u);
  EXPECT_EQ(listed({"--deleted"}), 1u);
  EXPECT_EQ(tenon({"train", project, "--resume", "warm"}).status, 2);
  EXPECT_TRUE(about("warm").at("deleted"));
  ASSERT_EQ(tenon({"run", project, "warm", "--undelete"}).status, 0);
  EXPECT_EQ(listed(), 2u);
  EXPECT_EQ(about("warm").at("note"), "half the rate");
  EXPECT_EQ(tenon({"run", project, "nobody"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
