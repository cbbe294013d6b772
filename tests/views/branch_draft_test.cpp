#include "views/training/branch_draft.h"

#include <gtest/gtest.h>

#include "engine/templates/templates.h"

namespace tenon::views {
namespace {

projects::RunInfo some_run() {
  projects::RunInfo r;
  r.name = "spirals-01";
  r.recipe = find_template("spirals").recipe.to_json();
  r.steps = 80;
  r.total_steps = 100;
  return r;
}

TEST(BranchDraft, begins_with_the_values_that_hold_at_its_step) {
  projects::RunInfo run = some_run();
  Recipe later = Recipe::from_json(run.recipe);
  later.set("optimizer.lr", "0.25");
  run.changes.push_back({40, later.to_json(), ""});
  BranchDraft d(run, 30);
  d.add_change();
  ASSERT_EQ(d.changes().size(), 1u);
  EXPECT_EQ(d.changes()[0].first, "optimizer.lr");
  EXPECT_EQ(d.changes()[0].second, d.recipe().at("optimizer.lr"));
  EXPECT_EQ(d.said(), "");
  d.set_step(60);
  EXPECT_EQ(d.recipe().number("optimizer.lr"), 0.25);
  d.set_step(999);
  EXPECT_EQ(d.step(), 80);
}

TEST(BranchDraft, is_what_the_command_line_would_say) {
  BranchDraft d(some_run(), 30);
  d.add_change();
  d.set_value(0, 0.5);
  d.add_change();
  EXPECT_EQ(d.changes()[1].first, "data.batch_size");
  d.set_key(1, "optimizer.type");
  d.set_value(1, std::string("adam"));
  for (const AttrDef& def : d.choices(0)) {
    EXPECT_NE(def.name, "optimizer.type") << "it has a row";
    EXPECT_NE(def.name, "data.without") << "it has a field";
  }
  d.set_left_out("7");
  d.set_name("slower");
  EXPECT_EQ(d.fault(), "");
  EXPECT_NE(d.said().find("without samples 7"), std::string::npos) << d.said();
  const projects::TrainOptions o = d.options();
  EXPECT_EQ(o.from, "spirals-01");
  EXPECT_EQ(o.from_step, 30);
  EXPECT_EQ(o.run_name, "slower");
  EXPECT_EQ(o.without, "7");
  ASSERT_EQ(o.set.size(), 2u);
  EXPECT_EQ(o.set[0], (std::pair<std::string, std::string>("optimizer.lr", "0.5")));
  EXPECT_EQ(o.set[1].second, "adam");
  d.remove(0);
  EXPECT_EQ(d.options().set.size(), 1u);
}

TEST(BranchDraft, says_where_nothing_is_left_to_train) {
  projects::RunInfo run = some_run();
  run.steps = run.total_steps;
  BranchDraft d(run, 100);
  EXPECT_NE(d.fault(), "");
  d.add_change();
  d.set_key(0, "epochs");
  EXPECT_EQ(d.fault(), "");
}

}  // namespace
}  // namespace tenon::views
