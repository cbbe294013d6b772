// A run whose steps come from a plan: the digests of one that runs op by op, what is told, and the plan as a page.
#include <gtest/gtest.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

TEST(CompileJourney, a_compiled_run_has_the_bits_of_any_other) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  const Outcome plain = tenon({"train", project, "--run", "plain", "--max-steps", "40", "--set", "compile=false"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(plain.out.find("compiled:"), std::string::npos) << plain.out;
  const Outcome compiled = tenon({"train", project, "--run", "fast", "--max-steps", "40"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_NE(compiled.out.find("compiled: batches of f32 ["), std::string::npos) << compiled.out;
  EXPECT_NE(compiled.out.find(" steps from a plan of "), std::string::npos) << compiled.out;
  EXPECT_EQ(compiled.out.find("from here on"), std::string::npos) << "the end sums it up\n" << compiled.out;
  const Outcome events = tenon({"query", project, "SELECT run_name, step, kind, text FROM run_events", "--json"});
  ASSERT_EQ(events.status, 0) << events.err;
  EXPECT_NE(events.out.find("fast"), std::string::npos) << events.out;
  EXPECT_NE(events.out.find("from here on batches of f32 ["), std::string::npos) << events.out;
  EXPECT_EQ(events.out.find("plain"), std::string::npos) << events.out;
  const auto digest = [&](const std::string& run, const std::string& step) {
    const Outcome o = tenon({"digest", project, run, "--step", step, "--json"});
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? o.json().at(0).at("digest").get<std::string>() : run;
  };
  for (const char* step : {"3", "23", "40"}) EXPECT_EQ(digest("plain", step), digest("fast", step)) << step;
  // A recorded step is one of ops.
  const Outcome roof = tenon({"profile", project, "--run", "fast", "--step", "30", "-o", folder / "t.json"});
  ASSERT_EQ(roof.status, 0) << roof.err;
  EXPECT_NE(tenon({"trace", "ops", folder / "t.json"}).out.find("linear"), std::string::npos);
}

TEST(CompileJourney, the_plan_is_a_page) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  const Outcome page = tenon({"profile", project, "--plan"});
  ASSERT_EQ(page.status, 0) << page.err;
  EXPECT_NE(page.out.find("Forward and backward are "), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("NEEDED UNTIL #"), std::string::npos) << page.out;
  const auto j = tenon({"profile", project, "--plan", "--json"}).json().at(0);
  EXPECT_EQ(j.at("kernels").size(), j.at("kernels_count").get<size_t>());
  EXPECT_LE(j.at("arena_bytes"), j.at("value_bytes"));
  // What keeps it from one is said.
  const Outcome none = tenon({"profile", project, "--plan", "-o", folder / "t.json"});
  EXPECT_EQ(none.status, 2);
  ASSERT_EQ(tenon({"recipe", project, "--set", "data.micro_batches=2"}).status, 0);
  const Outcome parts = tenon({"profile", project, "--plan"});
  EXPECT_NE((parts.out + parts.err).find("data.micro_batches adds gradients up"), std::string::npos)
      << parts.out << parts.err;
}

}  // namespace
}  // namespace tenon::journeys
