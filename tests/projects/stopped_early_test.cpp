// Runs that end before their length because they got no better.
#include <gtest/gtest.h>

#include <thread>

#include "engine/templates/templates.h"
#include "projects/finish.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using testing_files::TempDir;
using State = RunStatus::State;
using Settings = std::vector<std::pair<std::string, std::string>>;

struct StoppedEarly : testing_files::SpiralsTest {
  /// The loss of spirals falls: what is asked for is more than it ever gets better by.
  const Settings soon = {
      {"eval_every", "1"}, {"stop.metric", "test_loss"}, {"stop.patience", "2"}, {"stop.min_delta", "100"}};
};

TEST_F(StoppedEarly, ends_as_finished_with_the_reason) {
  train("early", soon, 1000);
  const RunInfo r = project->run("early");
  EXPECT_EQ(r.status, "finished");
  EXPECT_TRUE(stopped_early(r));
  EXPECT_EQ(status_text(r), "stopped early");
  EXPECT_TRUE(testing_words::has(r.error, "test_loss was best at step ")) << r.error;
  const auto losses = project->metric(r.id, "test_loss");
  EXPECT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses.back().step, r.steps);
  EXPECT_LT(r.steps, r.total_steps);
  EXPECT_EQ(project->checkpoints(r.id).back().step, r.steps);
  train("whole", {}, 40);
  EXPECT_FALSE(stopped_early(project->run("whole")));
  EXPECT_EQ(status_text(project->run("whole")), "finished");
}

TEST_F(StoppedEarly, ends_at_the_same_step_after_a_stop_anywhere) {
  train("through", soon, 1000);
  const RunInfo through = project->run("through");
  const std::string digest = digest_at(*project, through.id, through.steps);
  const int64_t epoch = project->metric(through.id, "test_loss").front().step;
  for (const int64_t cut : {epoch - 1, epoch, epoch + 1, 2 * epoch}) {
    const std::string name = "cut-" + std::to_string(cut);
    TrainOptions o;
    o.run_name = name;
    o.max_steps = 1000;
    o.set = soon;
    o.start_paused = true;
    auto d = RunDriver::start(project, o);
    for (int64_t i = 0; i < cut; ++i) d->step_once();
    while (d->status().step < cut) std::this_thread::yield();
    d->stop();
    d->wait();
    d.reset();
    ASSERT_EQ(project->run(name).status, "stopped");
    train("", {}, 0, name);
    const RunInfo r = project->run(name);
    EXPECT_EQ(r.steps, through.steps) << cut;
    EXPECT_EQ(r.error, through.error);
    EXPECT_EQ(digest_at(*project, r.id, r.steps), digest);
  }
}

TEST_F(StoppedEarly, goes_on_only_with_more_patience) {
  train("early", soon, 200);
  const RunInfo before = project->run("early");
  ASSERT_TRUE(stopped_early(before));
  train("", {}, 0, "early");
  EXPECT_EQ(project->run("early").steps, before.steps) << "its recipe still says that it ends here";
  train("", {{"stop.patience", "3"}}, 0, "early");
  const RunInfo more = project->run("early");
  EXPECT_EQ(project->metric(more.id, "test_loss").size(), 4u);
  EXPECT_TRUE(stopped_early(more));
  train("", {{"stop.metric", "none"}}, 0, "early");
  const RunInfo all = project->run("early");
  EXPECT_EQ(all.steps, all.total_steps);
  EXPECT_EQ(status_text(all), "finished");
  EXPECT_EQ(all.error, "");
  const std::string digest = digest_at(*project, all.id, all.steps);
  for (const CheckpointInfo& c : project->checkpoints(all.id))
    if (c.step > 0 && c.step < all.steps) project->delete_checkpoint(c.id);
  EXPECT_EQ(digest_at(*project, all.id, all.steps), digest);
}

}  // namespace
}  // namespace tenon::projects
