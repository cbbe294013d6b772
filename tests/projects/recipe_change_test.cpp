// Runs whose recipe was changed on the way: every step can be gone back to all the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

using testing_files::TempDir;
using State = RunStatus::State;
using Settings = std::vector<std::pair<std::string, std::string>>;

struct RecipeChanges : testing_files::SpiralsTest {
  std::unique_ptr<RunDriver> paused_at(int64_t step, const Settings& set = {}) {
    TrainOptions o;
    o.run_name = "r";
    o.max_steps = 60;
    o.start_paused = true;
    o.set = set;
    auto d = RunDriver::start(project, o);
    go_to(*d, step);
    return d;
  }
  static void go_to(RunDriver& d, int64_t step) {
    for (int64_t i = d.status().step; i < step; ++i) d.step_once();
    while (d.status().step < step || d.status().state != State::paused) {
      ASSERT_NE(d.status().state, State::failed) << d.status().error;
      std::this_thread::yield();
    }
  }
  static void change(RunDriver& d, const Settings& set) {
    const int64_t before = d.status().changes;
    d.change(set);
    while (d.status().changes == before && d.status().refused.empty()) std::this_thread::yield();
    EXPECT_EQ(d.status().refused, "");
  }
  void finish(std::unique_ptr<RunDriver> d) {
    d->resume();
    d->wait();
    EXPECT_EQ(d->status().state, State::finished) << d->status().error;
  }
  /// All but the first.
  void delete_checkpoints(int64_t after) {
    for (const CheckpointInfo& c : project->checkpoints(project->run("r").id))
      if (c.step > after) project->delete_checkpoint(c.id);
  }
  std::string digest_of(int64_t step) { return digest_at(*project, project->run("r").id, step); }
  static double number(const nlohmann::json& recipe, const char* key) { return Recipe::from_json(recipe).number(key); }
};

TEST_F(RecipeChanges, every_step_of_a_changed_run_can_be_gone_back_to) {
  auto d = paused_at(10);
  change(*d, {{"optimizer.lr", "0.05"}, {"optimizer.clip_norm", "0.5"}});
  EXPECT_EQ(d->recipe().number("optimizer.clip_norm"), 0.5);
  go_to(*d, 25);
  change(*d, {{"schedule.type", "exponential"}, {"schedule.gamma", "0.5"}});
  finish(std::move(d));

  const RunInfo r = project->run("r");
  ASSERT_EQ(r.changes.size(), 2u);
  EXPECT_EQ(r.changes[0].step, 10);
  EXPECT_EQ(number(r.recipe_after(9), "optimizer.clip_norm"), number(r.recipe, "optimizer.clip_norm"));
  EXPECT_EQ(number(r.recipe_after(10), "optimizer.lr"), 0.05);
  EXPECT_EQ(Recipe::from_json(r.recipe_after(60)).text("schedule.type"), "exponential");
  const auto lr = project->metric(r.id, "lr");
  EXPECT_NE(lr.at(9).value, lr.at(10).value);  // of steps 10 and 11

  std::map<int64_t, std::string> digests;
  for (int64_t step : {9, 10, 11, 24, 25, 26, 60}) digests[step] = digest_of(step);
  delete_checkpoints(0);  // now every replay has to make the changes itself
  for (const auto& [step, was] : digests) EXPECT_EQ(digest_of(step), was) << "step " << step;
  EXPECT_EQ(record_step(*project, r.id, 40)->loss, project->metric(r.id, "loss").at(39).value);
}

TEST_F(RecipeChanges, a_run_that_goes_back_behind_a_change_makes_it_again) {
  auto d = paused_at(10);
  change(*d, {{"optimizer.lr", "0.05"}});
  go_to(*d, 20);
  change(*d, {{"optimizer.weight_decay", "0.3"}});
  finish(std::move(d));
  const std::string whole = digest_of(60);

  // As after a kill whose last checkpoint was before both.
  delete_checkpoints(0);
  project->set_run_status(project->run("r").id, "stopped");
  TrainOptions again;
  again.resume = "r";
  finish(RunDriver::start(project, again));
  EXPECT_EQ(digest_of(60), whole);
  EXPECT_EQ(project->run("r").changes.size(), 2u);

  // Another decision on the way: what was decided after it before no longer holds.
  delete_checkpoints(0);
  again.start_paused = true;
  auto other = RunDriver::start(project, again);
  go_to(*other, 15);
  change(*other, {{"optimizer.lr", "0.01"}});
  finish(std::move(other));
  const RunInfo r = project->run("r");
  ASSERT_EQ(r.changes.size(), 2u);
  EXPECT_EQ(r.changes[0].step, 10);
  EXPECT_EQ(r.changes[1].step, 15);
  const std::string now = digest_of(60);
  EXPECT_NE(now, whole);
  delete_checkpoints(0);
  EXPECT_EQ(digest_of(60), now);
}

TEST_F(RecipeChanges, a_finished_run_goes_on_for_more_steps_at_another_rate) {
  finish(paused_at(1));
  TrainOptions more;
  more.resume = "r";
  more.set = {{"max_steps", "80"}, {"optimizer.lr", "0.001"}};
  auto d = RunDriver::start(project, more);
  EXPECT_EQ(d->status().total_steps, 80);
  finish(std::move(d));
  const RunInfo r = project->run("r");
  EXPECT_EQ(r.steps, 80);
  EXPECT_EQ(r.total_steps, 80);
  ASSERT_EQ(r.changes.size(), 1u);
  EXPECT_EQ(r.changes[0].step, 60);
  EXPECT_EQ(project->metric(r.id, "loss").size(), 80u);
  const std::string end = digest_of(80);
  delete_checkpoints(0);
  EXPECT_EQ(digest_of(80), end);

  more.set = {{"seed", "3"}};
  EXPECT_THROW(RunDriver::start(project, more), Error);
  EXPECT_EQ(project->run("r").status, "finished");
}

TEST_F(RecipeChanges, what_cannot_change_is_refused_and_the_run_goes_on) {
  auto d = paused_at(5);
  EXPECT_THROW(d->change({{"data.batch_size", "8"}}), Error);
  EXPECT_THROW(d->change({{"optimizer.lr", "fast"}}), Error);
  EXPECT_THROW(d->change({{"no.such.key", "1"}}), Error);
  d->change({{"optimizer.groups", "nothing.*: lr=2"}});  // only the model knows
  while (d->status().refused.empty()) std::this_thread::yield();
  EXPECT_NE(d->status().refused.find("optimizer.groups"), std::string::npos) << d->status().refused;
  EXPECT_EQ(d->recipe().text("optimizer.groups"), "");
  change(*d, {{"optimizer.lr", "0.5"}});
  finish(std::move(d));
  EXPECT_EQ(project->run("r").changes.size(), 1u);
}

}  // namespace
}  // namespace tenon::projects
