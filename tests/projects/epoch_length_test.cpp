// How runs count their steps in epochs and samples.
#include "projects/epoch_length.h"

#include <gtest/gtest.h>

#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::TempDir;

std::shared_ptr<Project> new_spirals(const std::string& path) {
  const Template& t = find_template("spirals");
  return Project::create(path, t.model, t.recipe.to_json());
}

RunInfo train(const std::shared_ptr<Project>& p, TrainOptions o) {
  auto d = RunDriver::start(p, o);
  d->wait();
  EXPECT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
  return p->run(d->status().run);
}

TEST(EpochLength, counts_as_the_session_does_step_by_step) {
  for (const char* drop : {"false", "true"}) {
    TempDir dir;
    auto p = new_spirals(dir / "a.tenon");
    TrainOptions o;
    o.epochs = 3;
    o.set = {{"data.batch_size", "300"}, {"data.drop_last", drop}, {"eval_every", "0"}};
    const RunInfo run = train(p, o);
    const EpochLength e = epoch_of(run);
    TrainingSession session(run.model, Recipe::from_json(run.recipe));
    int64_t samples = 0;
    EXPECT_EQ(e.samples_after(0), 0);
    while (!session.finished()) {
      const StepResult r = session.step();
      samples += r.samples;
      EXPECT_EQ(e.samples_after(r.step), samples) << "step " << r.step << " drop_last " << drop;
      if (r.epoch_end) {
        EXPECT_EQ(e.epochs_after(r.step), static_cast<double>(r.epoch + 1));
      }
    }
    EXPECT_EQ(e.steps, session.steps_per_epoch());
    EXPECT_EQ(e.samples % 300 == 0, drop == std::string("true")) << "else the last batch is to be a smaller one";
  }
}

TEST(EpochLength, is_the_same_after_a_run_changed_its_mind) {
  TempDir dir;
  auto p = new_spirals(dir / "a.tenon");
  TrainOptions o;
  o.run_name = "r";
  o.epochs = 2;
  o.set = {{"data.batch_size", "300"}};
  const EpochLength before = epoch_of(train(p, o));
  TrainOptions more;
  more.resume = "r";
  more.set = {{"epochs", "5"}, {"optimizer.lr", "0.001"}};
  const RunInfo run = train(p, more);
  EXPECT_EQ(run.changes.size(), 1u);
  EXPECT_EQ(epoch_of(run), before);
  EXPECT_EQ(before.epochs_after(run.steps), 5.0);
}

TEST(EpochLength, of_a_run_of_before_it_was_kept_is_what_its_recipe_tells_beyond_doubt) {
  TempDir dir;
  auto p = new_spirals(dir / "a.tenon");
  TrainOptions o;
  o.epochs = 2;
  o.set = {{"data.batch_size", "300"}};
  RunInfo run = train(p, o);
  const EpochLength kept = run.epoch;
  run.epoch = {};
  EpochLength e = epoch_of(run);
  EXPECT_EQ(e.steps, kept.steps);
  EXPECT_EQ(e.epochs_after(run.steps), 2.0);
  EXPECT_EQ(e.samples_after(1), 300) << "within the first epoch every batch but the last is a full one";
  EXPECT_EQ(e.samples_after(kept.steps), std::nullopt) << "how large the last one was is not known";
  run.recipe["max_steps"] = run.total_steps;
  EXPECT_EQ(epoch_of(run).epochs_after(1), std::nullopt) << "it may have been cut short";
  EXPECT_EQ(epoch_of(RunInfo{}).samples_after(1), std::nullopt);
}

}  // namespace
}  // namespace tenon::projects
