// Two windows edit one project.
#include "projects/shared_edits.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/templates/templates.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

struct SharedEditsTest : testing_files::SpiralsTest {
  std::shared_ptr<Project> here, there;
  void SetUp() override {
    SpiralsTest::SetUp();
    here = project;
    there = Project::open(dir / "a.tenon");
  }
  static Recipe with(Recipe r, const std::string& key, const std::string& value) {
    r.set(key, value);
    return r;
  }
};

TEST_F(SharedEditsTest, others_count_and_ones_own_changes_do_not) {
  const int64_t before = here->version_of_others();
  here->set_model(testing_files::small_model());
  EXPECT_EQ(here->version_of_others(), before);
  there->set_window_state("x", 1);
  const int64_t after = here->version_of_others();
  EXPECT_NE(after, before);
  EXPECT_EQ(here->version_of_others(), after);
  EXPECT_EQ(Project::open(dir / "a.tenon", true)->model(), testing_files::small_model());
}

TEST_F(SharedEditsTest, keys_set_at_both_ends_are_all_kept) {
  SharedEdits edits(here);
  const Recipe base = Recipe::from_json(here->recipe());
  there->set_recipe(with(with(base, "epochs", "9"), "seed", "3").to_json());
  const Recipe first = with(base, "seed", "4");
  Recipe kept = edits.save_recipe(base, first);
  EXPECT_EQ(kept.integer("epochs"), 9);
  EXPECT_EQ(kept.integer("seed"), 4) << "set here, and later";
  // The next edit was made before the first was known to be saved.
  kept = edits.save_recipe(base, with(first, "data.batch_size", "5"));
  EXPECT_EQ(kept.integer("epochs"), 9);
  EXPECT_EQ(kept.integer("data.batch_size"), 5);
  EXPECT_EQ(Recipe::from_json(there->recipe()), kept);
  // Back to its default here, where nobody else touched it.
  Recipe cleared = kept;
  cleared.reset("data.batch_size");
  EXPECT_EQ(edits.save_recipe(kept, cleared), cleared);
}

TEST_F(SharedEditsTest, another_optimizer_brings_its_own_keys) {
  SharedEdits edits(here);
  const Recipe base = Recipe::from_json(here->recipe());
  there->set_recipe(with(base, "epochs", "9").to_json());
  const Recipe kept = edits.save_recipe(base, with(with(base, "optimizer.type", "sgd"), "optimizer.momentum", "0.5"));
  EXPECT_EQ(kept.text("optimizer.type"), "sgd");
  EXPECT_EQ(kept.number("optimizer.momentum"), 0.5);
  EXPECT_EQ(kept.number("optimizer.lr"), with(base, "optimizer.type", "sgd").number("optimizer.lr"));
  EXPECT_EQ(kept.integer("epochs"), 9);
}

TEST_F(SharedEditsTest, only_the_model_of_somebody_else_counts_as_replaced) {
  SharedEdits edits(here);
  const ModelSpec base = here->model();
  ModelSpec one = base, two = base, theirs = base;
  one.layers[1].x += 1;
  two.layers[1].x += 2;
  theirs.layers[1].x += 3;
  edits.save_model(base, one);
  edits.save_model(base, two);  // the same hand, before it heard of the first
  EXPECT_FALSE(edits.replaced_model());
  there->set_model(theirs);
  edits.save_model(two, one);
  EXPECT_EQ(edits.replaced_model(), theirs);
  EXPECT_FALSE(edits.replaced_model());
  EXPECT_EQ(there->model(), one);
}

TEST_F(SharedEditsTest, a_recipe_that_cannot_be_read_is_replaced) {
  SharedEdits edits(here);
  there->set_recipe({{"optimizer", {{"type", "of_a_plug_in"}}}});
  const Recipe mine = with(Recipe(), "epochs", "2");
  EXPECT_EQ(edits.save_recipe(Recipe(), mine), mine);
  EXPECT_EQ(Recipe::from_json(there->recipe()), mine);
}

}  // namespace
}  // namespace tenon::projects
