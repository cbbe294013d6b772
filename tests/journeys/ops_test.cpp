// What an op is, and one call of it in a step of a run, on the command line.
#include <gtest/gtest.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

TEST(OpsJourney, a_definition_is_shown_with_its_source) {
  const Outcome all = tenon({"ops"});
  EXPECT_EQ(all.status, 0);
  EXPECT_NE(all.out.find("\nconv2d "), std::string::npos);
  const Outcome one = tenon({"ops", "gelu"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.out.find("gelu takes 1 input"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("\nGradient\n"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("engine/ops/"), std::string::npos) << one.out;
  const Outcome wrong = tenon({"ops", "geul"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("gelu"), std::string::npos) << wrong.err;
}

TEST(OpsJourney, a_call_is_followed_to_its_gradient) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "6"}).status, 0);
  const Outcome calls = tenon({"ops", "linear", "--project", project, "--step", "3", "--json"});
  ASSERT_EQ(calls.status, 0) << calls.err;
  const auto listed = calls.json().at(0);
  EXPECT_EQ(listed.at("step"), "3");
  ASSERT_GE(listed.at("calls").size(), 2u) << listed.dump();
  const std::string number = std::to_string(listed.at("calls").at(0).at("call").get<int64_t>());
  const Outcome story = tenon({"ops", "--project", project, "--step", "3", "--call", number});
  EXPECT_EQ(story.status, 0) << story.err;
  EXPECT_NE(story.out.find("linear #" + number + " of "), std::string::npos) << story.out;
  EXPECT_NE(story.out.find("matmul"), std::string::npos) << story.out;
  EXPECT_EQ(tenon({"ops", "linear", "--step", "3"}).status, 2);
  EXPECT_EQ(tenon({"ops", "--project", project}).status, 2);
  EXPECT_EQ(tenon({"ops", "--project", project, "--call", "9999"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
