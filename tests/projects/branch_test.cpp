// Runs that go on from a step of another one.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/data/dataset.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "projects/run_driver.h"
#include "projects/samples.h"
#include "projects/time_travel.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

using testing_files::KeyValues;
using testing_words::has;
using testing_words::message_of;

using Branches = testing_files::BranchesTest;

TEST_F(Branches, without_a_change_it_has_the_digests_of_its_parent) {
  const RunInfo parent = project->run("parent");
  for (int64_t at : {0, 7, 20, 33}) {
    const RunInfo child = branch(from("parent", at));
    EXPECT_EQ(child.branch.run, parent.id);
    EXPECT_EQ(child.branch.step, at);
    EXPECT_EQ(child.branch.name, "parent");
    EXPECT_EQ(child.steps, 60);
    EXPECT_EQ(child.total_steps, 60);
    // Also before it was one.
    for (int64_t step : {int64_t{0}, int64_t{3}, at, at + 1, int64_t{40}, int64_t{60}})
      EXPECT_EQ(digest_of(child, step), digest_of(parent, step)) << "from " << at << ", step " << step;
    const auto mine = project->metric(child.id, "loss"), theirs = project->metric(parent.id, "loss");
    ASSERT_EQ(mine.size(), static_cast<size_t>(60 - at));
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i].step, theirs[i + static_cast<size_t>(at)].step);
      EXPECT_EQ(mine[i].value, theirs[i + static_cast<size_t>(at)].value);
    }
    // Its seconds go on where those of the parent are at that step.
    if (at > 0) {
      EXPECT_GE(mine[0].wall, theirs[static_cast<size_t>(at) - 1].wall);
    }
  }
  EXPECT_EQ(project->run("parent-b4").branch.step, 33);
}

TEST_F(Branches, differs_from_its_parent_by_what_it_was_told) {
  const RunInfo child = branch(from("parent", 20, {{"optimizer.lr", "0.5"}, {"max_steps", "50"}}));
  EXPECT_EQ(child.total_steps, 50);
  const RunInfo parent = project->run("parent");
  const auto keys = differences(Recipe::from_json(parent.recipe), Recipe::from_json(child.recipe));
  ASSERT_EQ(keys.size(), 2u);
  const double base = Recipe::from_json(parent.recipe).number("optimizer.lr");  // of which the schedule takes a part
  EXPECT_DOUBLE_EQ(project->metric(child.id, "lr").front().value / 0.5,
                   project->metric(parent.id, "lr").at(20).value / base);
  EXPECT_EQ(digest_of(child, 19), digest_of(parent, 19));
  EXPECT_NE(digest_of(child, 21), digest_of(parent, 21));
  EXPECT_EQ(record_step(*project, child.id, 25)->loss, project->metric(child.id, "loss").at(4).value);
  EXPECT_EQ(record_step(*project, child.id, 5)->loss, project->metric(parent.id, "loss").at(4).value);
}

TEST_F(Branches, leaves_samples_out_and_moves_no_other) {
  const auto rows = record_step(*project, project->run("parent").id, 22)->samples;
  const RunInfo child = branch(from("parent", 20, {{"data.without", std::to_string(rows[3])}}));
  const auto mine = project->metric(child.id, "loss"), theirs = project->metric(project->run("parent").id, "loss");
  EXPECT_EQ(mine[0].value, theirs[20].value);
  EXPECT_NE(mine[1].value, theirs[21].value);
  auto left = rows;
  left.erase(left.begin() + 3);
  EXPECT_EQ(record_step(*project, child.id, 22)->samples, left);

  // A step whose batch is left out has a rate and no loss.
  std::string all;
  for (int64_t r : rows) all += (all.empty() ? "" : ",") + std::to_string(r);
  const RunInfo none = branch(from("parent", 20, {{"data.without", all}}));
  const auto loss = project->metric(none.id, "loss");
  EXPECT_EQ(loss[0].step, 21);
  EXPECT_EQ(loss[1].step, 23);
  EXPECT_EQ(project->metric(none.id, "lr").size(), loss.size() + 1);
  EXPECT_EQ(none.steps, 60);
}

TEST_F(Branches, takes_another_seed_batch_and_precision) {
  const RunInfo seed = branch(from("parent", 13, {{"seed", "77"}}));
  EXPECT_EQ(Recipe::from_json(seed.recipe).integer("data.seed"),
            Recipe::from_json(project->run("parent").recipe).integer("seed"));
  const RunInfo batch = branch(from("parent", 13, {{"data.batch_size", "20"}, {"max_steps", "40"}}));
  EXPECT_EQ(batch.epoch.shift, 6 - 13);  // 130 of 200 samples: the seventh batch of 20
  EXPECT_DOUBLE_EQ(*batch.epoch.epochs_after(17), 1);
  EXPECT_EQ(*batch.epoch.samples_after(17), 200);
  const RunInfo low = branch(from("parent", 13, {{"amp", "bf16"}}));
  for (const RunInfo& r : {seed, batch, low}) {
    const std::string end = digest_of(r, 35);
    for (const CheckpointInfo& c : project->checkpoints(r.id))
      if (c.step > 13) project->delete_checkpoint(c.id);
    EXPECT_EQ(digest_of(r, 35), end);
    EXPECT_NE(end, digest_of(project->run("parent"), 35));
  }
}

TEST_F(Branches, of_a_branch_and_of_a_step_before_it) {
  const RunInfo child = branch(from("parent", 20, {{"optimizer.lr", "0.01"}}));
  const RunInfo grandchild = branch(from(child.name, 40, {{"optimizer.lr", "0.02"}}));
  EXPECT_EQ(grandchild.name, "parent-b1-b1");
  EXPECT_EQ(digest_of(grandchild, 39), digest_of(child, 39));
  EXPECT_EQ(digest_of(grandchild, 19), digest_of(project->run("parent"), 19));
  EXPECT_EQ(digest_of(grandchild, 9), digest_of(project->run("parent"), 9));
  // What the child did before it was one, its parent did.
  const RunInfo early = branch(from(child.name, 10));
  EXPECT_EQ(early.branch.name, "parent");
  EXPECT_EQ(digest_of(early, 60), digest_of(project->run("parent"), 60));
  // Also where the parent is deleted since.
  project->delete_runs({project->run("parent").id});
  EXPECT_EQ(project->run(child.id).branch.name, "parent");
  EXPECT_EQ(digest_of(grandchild, 9).size(), 64u);
}

TEST_F(Branches, is_resumed_and_changed_like_any_run) {
  const std::string whole = digest_of(branch(from("parent", 20, {{"optimizer.lr", "0.02"}})), 60);
  TrainOptions o = from("parent", 20, {{"optimizer.lr", "0.02"}});
  o.run_name = "cut";
  o.start_paused = true;
  {
    auto d = RunDriver::start(project, o);
    for (int i = 0; i < 9; ++i) d->step_once();
    while (d->status().step < 29) std::this_thread::yield();
    d->stop();
    d->wait();
  }
  EXPECT_EQ(project->run("cut").steps, 29);
  TrainOptions again;
  again.resume = "cut";
  EXPECT_EQ(digest_of(branch(again), 60), whole);
  EXPECT_EQ(project->metric(project->run("cut").id, "loss").size(), 40u);

  // As after a kill before its first checkpoint.
  for (const CheckpointInfo& c : project->checkpoints(project->run("cut").id)) project->delete_checkpoint(c.id);
  EXPECT_EQ(digest_of(project->run("cut"), 29), digest_of(project->run("parent-b1"), 29));
  project->set_run_status(project->run("cut").id, "stopped");
  EXPECT_EQ(digest_of(branch(again), 60), whole);

  // Another rate on the way.
  again.set = {{"max_steps", "80"}, {"epochs", "9"}, {"optimizer.lr", "0.001"}};
  const RunInfo longer = branch(again);
  EXPECT_EQ(longer.steps, 80);
  EXPECT_EQ(longer.branch.step, 20);
  EXPECT_EQ(longer.changes.size(), 1u);
}

TEST_F(Branches, goes_on_with_what_evaluations_made_of_its_parent) {
  const KeyValues watched = {{"data.samples", "100"},
                             {"data.batch_size", "10"},
                             {"eval_every", "1"},
                             {"schedule.type", "plateau"},
                             {"schedule.patience", "0"},
                             {"schedule.threshold", "0.9"},
                             {"epochs", "8"},
                             {"checkpoint_every", "1"},
                             {"stop.metric", "test_loss"},
                             {"stop.patience", "4"},
                             {"stop.min_delta", "10"}};
  train("watched", watched, 80);
  const RunInfo parent = project->run("watched");
  ASSERT_LT(parent.steps, 80) << "it stops early";
  for (int64_t at : {10, 20, 25}) {  // the first two where it was evaluated just then
    const RunInfo child = branch(from("watched", at));
    EXPECT_EQ(child.steps, parent.steps);
    EXPECT_EQ(digest_of(child, child.steps), digest_of(parent, parent.steps));
    // Killed right where it began.
    for (const CheckpointInfo& c : project->checkpoints(child.id))
      if (c.step > at) project->delete_checkpoint(c.id);
    project->set_run_status(child.id, "stopped");
    TrainOptions again;
    again.resume = child.name;
    EXPECT_EQ(digest_of(branch(again), parent.steps), digest_of(parent, parent.steps));
  }
}

TEST_F(Branches, what_cannot_be_is_refused) {
  EXPECT_TRUE(has(message_of([&] { RunDriver::start(project, from("nobody", 3)); }), "nobody"));
  EXPECT_TRUE(has(message_of([&] { RunDriver::start(project, from("parent", 61)); }), "there is no step 61"));
  EXPECT_TRUE(has(message_of([&] { RunDriver::start(project, from("parent", 60)); }), "nothing is left"));
  EXPECT_TRUE(has(message_of([&] { RunDriver::start(project, from("parent", 5, {{"no.key", "1"}})); }), "no.key"));
  TrainOptions both = from("parent", 5);
  both.resume = "parent";
  EXPECT_TRUE(has(message_of([&] { RunDriver::start(project, both); }), "cannot go together"));
  TrainOptions alone;
  alone.set = {{"init.anew", "*"}};
  EXPECT_TRUE(has(message_of([&] { RunDriver::start(project, alone); }), "this run is none"));
  EXPECT_EQ(project->runs().size(), 1u);
}

TEST(NamedSamples, are_found_by_number_and_by_place) {
  testing_files::TempDir dir;
  formats::save_npy(dir / "x.npy", full({20, 2}, 1));
  formats::save_npy(dir / "y.npy", full({20}, 0, DType::i64));
  Recipe recipe;
  recipe.set("data.dataset", "npy");
  recipe.set("data.dir", dir.path());
  const data::Split split = data::open_dataset("npy", {.dir = dir.path()});
  const std::string place = split.train->source(7).text();
  EXPECT_TRUE(has(place, "x.npy, row ")) << place;
  EXPECT_EQ(named_samples(recipe, "3, 1-2"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(named_samples(recipe, place + "; 9"), (std::vector<int64_t>{7, 9}));
  EXPECT_TRUE(has(message_of([&] { named_samples(recipe, "x.npy, row 999"); }), "no sample"));
  EXPECT_EQ(samples_text(*split.train, {7}), "sample 7 (" + place + ")");
  EXPECT_EQ(samples_text(*split.train, {7, 8, 9, 12}), "samples 7-9, 12");
  recipe.set("data.without", "5");
  EXPECT_EQ(also_without(recipe, {7, 6}), "5-7");
}

}  // namespace
}  // namespace tenon::projects
