// Runs that a callback ends, and what it changes, through stops and replays.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "projects/finish.h"
#include "projects/time_travel.h"
#include "tests/messages.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

struct RunCallbacks : testing_files::SpiralsTest {
  const testing_files::KeyValues soon = {
      {"eval_every", "1"}, {"callbacks", "gradient_noise std=0.05; goal metric=test_accuracy value=0.85"}};
};

TEST_F(RunCallbacks, a_goal_ends_the_run_and_says_why_wherever_it_was_stopped) {
  train("through", soon, 1000);
  const RunInfo through = project->run("through");
  ASSERT_TRUE(stopped_early(through));
  EXPECT_TRUE(testing_words::has(through.error, "test_accuracy came to ")) << through.error;
  EXPECT_GE(project->metric(through.id, "test_accuracy").back().value, 0.85);
  const std::string digest = digest_at(*project, through.id, through.steps);
  const int64_t epoch = project->metric(through.id, "test_loss").front().step;
  ASSERT_GT(through.steps, epoch) << "the goal is too near";
  for (const int64_t cut : {epoch - 1, epoch, epoch + 1, through.steps}) {
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
    train("", {}, 0, name);
    const RunInfo r = project->run(name);
    EXPECT_EQ(r.steps, through.steps) << cut;
    EXPECT_EQ(r.error, through.error) << cut;
    EXPECT_EQ(digest_at(*project, r.id, r.steps), digest) << cut;
  }
  // A higher goal: it goes on.
  train("", {{"callbacks", "gradient_noise std=0.05; goal metric=test_accuracy value=2"}, {"epochs", "12"}}, 0,
        "through");
  EXPECT_GT(project->run("through").steps, through.steps);
}

}  // namespace
}  // namespace tenon::projects
