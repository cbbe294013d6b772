// A trained model with fewer channels: what is written, and that it is a project to go on with.
#include "projects/shrink.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

struct ShrunkSpirals : testing_files::SpiralsTest {
  RunInfo run;
  void SetUp() override {
    SpiralsTest::SetUp();
    train("r", {{"callbacks", "prune kind=channels amount=0.25 over=100; centralize"}}, 300);
    run = project->run("r");
  }
};

TEST_F(ShrunkSpirals, zeros_go_without_a_loss_and_the_project_trains_on) {
  const ShrinkReport r = shrink_run(*project, run, run.steps, {.zeros = true}, dir / "small.tenon");
  EXPECT_EQ(r.before.correct, r.after.correct);
  EXPECT_NEAR(r.before.loss, r.after.loss, 1e-5);
  EXPECT_GT(r.before.accuracy, 0.6) << "it has learnt something";
  EXPECT_LT(r.small.parameters_after(), r.small.parameters() * 0.7);
  EXPECT_GT(r.seconds_after, 0);
  EXPECT_NE(r.text().find("tenon train " + (dir / "small.tenon")), std::string::npos);

  const auto small = Project::open(dir / "small.tenon");
  const RunInfo begun = small->run("pruned");
  EXPECT_EQ(begun.steps, 0);
  EXPECT_EQ(begun.model, r.small.model);
  EXPECT_EQ(Recipe::from_json(begun.recipe).text("callbacks"), "centralize") << "what pruned has done its work";
  TrainOptions o;
  o.run_name = "tuned", o.max_steps = 40;
  auto d = RunDriver::start(small, o);
  d->wait();
  ASSERT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
  const auto first = small->checkpoints(small->run("tuned").id).front();
  ASSERT_EQ(first.step, 0);
  const Checkpoint a = small->load_checkpoint(first.id), b = small->load_checkpoint(small->checkpoints(begun.id)[0].id);
  EXPECT_EQ(digest(a), digest(b)) << "it began with the weights that stayed";
}

TEST_F(ShrunkSpirals, of_a_run_that_learnt_from_a_teacher_no_teacher_is_asked_for) {
  train("taught", {{"distill.from", "r@300"}}, 20);
  const RunInfo taught = project->run("taught");
  shrink_run(*project, taught, taught.steps, {.amount = 0.25}, dir / "small.tenon");
  const auto small = Project::open(dir / "small.tenon");
  EXPECT_EQ(Recipe::from_json(small->recipe()).text("distill.from"), "") << "its runs are in another project";
  TrainOptions o;
  o.max_steps = 5;
  auto d = RunDriver::start(small, o);
  d->wait();
  EXPECT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
}

TEST_F(ShrunkSpirals, what_cannot_be_leaves_no_file) {
  for (const ShrinkOptions& o :
       {ShrinkOptions{.layers = "nolayer"}, ShrinkOptions{.amount = 1}, ShrinkOptions{.amount = 0}})
    EXPECT_THROW(shrink_run(*project, run, run.steps, o, dir / "small.tenon"), Error);
  EXPECT_FALSE(std::filesystem::exists(dir / "small.tenon"));
  EXPECT_THROW(shrink_run(*project, run, run.steps, {}, dir / "a.tenon"), Error) << "the name is taken";
}

TEST_F(ShrunkSpirals, the_sparsity_is_a_metric_of_the_run) {
  const auto points = project->metric(run.id, "sparsity");
  ASSERT_EQ(points.size(), 300u);
  EXPECT_EQ(points[0].value, 0);
  EXPECT_GT(points[50].value, points[10].value);
  EXPECT_NEAR(points.back().value, 0.25, 0.05);
}

}  // namespace
}  // namespace tenon::projects
