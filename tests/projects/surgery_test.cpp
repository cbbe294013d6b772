// Branches with another model: what they begin with, and that every replay of them is the same.
#include "projects/surgery.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "projects/results.h"
#include "tests/messages.h"
#include "tests/projects/spirals.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

using testing_words::error_of;
using testing_words::has;

struct SurgeryOfRuns : testing_files::BranchesTest {
  RunInfo parent;
  std::string first;  ///< a Linear whose channels may change
  std::shared_ptr<const ModelSpec> wide;
  void SetUp() override {
    BranchesTest::SetUp();
    parent = project->run("parent");
    for (const LayerSpec& l : parent.model.layers)
      if (first.empty() && l.type == "Linear") first = l.name;
    wide = std::make_shared<const ModelSpec>(with_layer(parent.model, first + ".out_features", "80"));
  }
  TrainOptions other(int64_t step, const std::shared_ptr<const ModelSpec>& model) {
    TrainOptions o = from("parent", step);
    o.model = model;
    return o;
  }
};

TEST_F(SurgeryOfRuns, the_plan_says_what_stays_and_that_the_function_is_kept) {
  const SurgeryPlan plan = plan_surgery(*project, parent, 20, *wide);
  EXPECT_TRUE(plan.keeps_function()) << plan.loss << " and " << plan.loss_after;
  EXPECT_GT(plan.loss, 0);
  EXPECT_TRUE(has(model_changes(plan.before, plan.model), first + ".out_features"));
  EXPECT_TRUE(has(plan.text(), "the function is kept"));
  EXPECT_EQ(project->runs().size(), 1u) << "nothing is written";
  EXPECT_TRUE(has(error_of([&] { plan_surgery(*project, parent, 20, parent.model); }), "already"));
  EXPECT_THROW(plan_surgery(*project, parent, 99, *wide), Error);
  const SurgeryPlan anew = plan_surgery(*project, parent, 20, *wide, {{"init.anew", first + ".*"}});
  EXPECT_FALSE(anew.keeps_function());
  const SurgeryPlan batch = plan_surgery(*project, parent, 20, *wide, {{"data.batch_size", "20"}});
  EXPECT_TRUE(batch.keeps_function()) << "the same batch is compared";
}

TEST_F(SurgeryOfRuns, the_loss_of_the_step_is_that_of_the_parent_and_time_travel_crosses_it) {
  const RunInfo child = branch(other(20, wide));
  EXPECT_EQ(child.model, *wide);
  EXPECT_EQ(project->run("parent").model, parent.model);
  EXPECT_EQ(child.steps, 60);
  EXPECT_EQ(child.branch.step, 20);
  double was = 0, is = 0;
  for (const MetricPoint& p : project->metric(parent.id, "loss"))
    if (p.step == 21) was = p.value;
  for (const MetricPoint& p : project->metric(child.id, "loss"))
    if (p.step == 21) is = p.value;
  EXPECT_GT(was, 0);
  EXPECT_NEAR(is, was, 1e-6 * std::max(1.0, was));
  EXPECT_EQ(digest_of(child, 19), digest_of(parent, 19)) << "before, it is its parent";
  EXPECT_NE(digest_of(child, 20), digest_of(parent, 20));
  EXPECT_EQ(digest_of(child, 47, 1), digest_of(child, 47, 2));
  // From checkpoints that are gone it is replayed from its beginning.
  const std::string at47 = digest_of(child, 47), at60 = digest_of(child, 60);
  for (const CheckpointInfo& c : project->checkpoints(child.id)) project->delete_checkpoint(c.id);
  EXPECT_EQ(digest_of(child, 47), at47);
  EXPECT_EQ(digest_of(child, 60), at60);
  const Results r = results_at(*project, child, 30);
  EXPECT_GT(r.evaluation.samples, 0);
  const auto record = record_step(*project, child.id, 21);
  EXPECT_EQ(record->loss, is);
}

TEST_F(SurgeryOfRuns, another_process_replays_the_same_bits) {
  const RunInfo child = branch(other(33, wide));
  const std::string here = digest_of(child, 50);
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    std::string there = "failed";
    try {
      const auto again = Project::open(dir / "a.tenon", true);
      there = digest_at(*again, child.id, 50, 1);
    } catch (const std::exception& e) {
      there = e.what();
    }
    const ssize_t written = write(fds[1], there.data(), there.size());
    _exit(written > 0 ? 0 : 1);
  }
  close(fds[1]);
  std::string there;
  char buffer[256];
  for (ssize_t n = 0; (n = read(fds[0], buffer, sizeof buffer)) > 0;) there.append(buffer, static_cast<size_t>(n));
  close(fds[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(there, here);
}

TEST_F(SurgeryOfRuns, is_resumed_also_before_its_first_checkpoint) {
  const std::string whole = digest_of(branch(other(20, wide)), 60);
  TrainOptions o = other(20, wide);
  o.run_name = "cut";
  o.start_paused = true;
  {
    auto d = RunDriver::start(project, o);
    for (int i = 0; i < 5; ++i) d->step_once();
    while (d->status().step < 25) std::this_thread::yield();
    d->stop();
    d->wait();
  }
  for (const CheckpointInfo& c : project->checkpoints(project->run("cut").id)) project->delete_checkpoint(c.id);
  EXPECT_EQ(digest_of(project->run("cut"), 25).size(), 64u);
  project->set_run_status(project->run("cut").id, "stopped");
  TrainOptions again;
  again.resume = "cut";
  EXPECT_EQ(digest_of(branch(again), 60), whole);
}

TEST_F(SurgeryOfRuns, branches_of_branches_change_again) {
  const RunInfo child = branch(other(20, wide));
  const auto wider = std::make_shared<const ModelSpec>(with_layer(*wide, first + ".out_features", "96"));
  TrainOptions o = from(child.name, 40);
  o.model = wider;
  const RunInfo grandchild = branch(o);
  EXPECT_EQ(grandchild.model, *wider);
  EXPECT_EQ(digest_of(grandchild, 35), digest_of(child, 35));
  EXPECT_EQ(digest_of(grandchild, 12), digest_of(parent, 12));
  // A step of before the branch has the model of then.
  EXPECT_EQ(run_of_step(*project, grandchild, 15).name, "parent");
  EXPECT_EQ(run_of_step(*project, grandchild, 20).name, child.name);
  EXPECT_EQ(branch(from(grandchild.name, 10)).model, parent.model);
}

TEST_F(SurgeryOfRuns, what_cannot_be_leaves_no_run) {
  const size_t runs = project->runs().size();
  auto broken = std::make_shared<ModelSpec>(parent.model);
  broken->wires.clear();
  EXPECT_THROW(RunDriver::start(project, other(20, broken)), Error);
  TrainOptions fresh;
  fresh.model = wide;
  EXPECT_TRUE(has(error_of([&] { RunDriver::start(project, fresh); }), "--from RUN@STEP"));
  TrainOptions resume;
  resume.resume = "parent";
  resume.model = wide;
  EXPECT_TRUE(has(error_of([&] { RunDriver::start(project, resume); }), "its own model"));
  EXPECT_EQ(project->runs().size(), runs);
}

TEST_F(SurgeryOfRuns, layers_are_named_by_their_attributes) {
  EXPECT_TRUE(has(error_of([&] { with_layer(parent.model, "nolayer.out_features", "3"); }), "no layer \"nolayer\""));
  EXPECT_TRUE(has(error_of([&] { with_layer(parent.model, first + ".outputs", "3"); }), "no attribute \"outputs\""));
  EXPECT_THROW(with_layer(parent.model, first + ".out_features", "many"), Error);
  EXPECT_THROW(with_layer(parent.model, "out_features", "3"), Error);
  const ModelSpec off = with_layer(parent.model, first + ".off", "true");
  EXPECT_EQ(model_changes(parent.model, off), first + " off");
  EXPECT_EQ(model_changes(parent.model, parent.model), "");
  ModelSpec moved = parent.model;
  moved.layers[0].x += 40;
  EXPECT_EQ(model_changes(parent.model, moved), "") << "a place on the canvas computes nothing";
}

}  // namespace
}  // namespace tenon::projects
