// Sweeps as rows of a project: chosen, trained, ended, gone on with.
#include "projects/sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "tests/messages.h"
#include "tests/projects/old_versions.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::TempDir;
using testing_words::has;
using testing_words::message_of;

const Settings kKeys = {{"optimizer.lr", "log:1e-4..1e-1"}, {"optimizer.type", "adam,sgd"}};
/// Short runs that are judged after every epoch.
const Settings kShort = {{"epochs", "4"}, {"data.samples", "200"}, {"data.batch_size", "20"}, {"eval_every", "1"}};

struct SweepTest : ::testing::Test {
  TempDir dir;
  std::shared_ptr<Project> project;
  void SetUp() override { project = make("a.tenon"); }
  std::shared_ptr<Project> make(const std::string& file) {
    const Template& t = find_template("spirals");
    return Project::create(dir / file, t.model, t.recipe.to_json());
  }
  static int64_t begin(Project& p, const Settings& keys, const std::vector<Attr>& attrs = {}) {
    return begin_sweep(p, "", keys, attrs, kShort).id;
  }
  /// Trains so many trials, one after the other; the number of those that there were.
  static int play(const std::shared_ptr<Project>& p, int64_t sweep, int most = 1000) {
    int n = 0;
    for (; n < most; ++n) {
      const auto trial = next_trial(*p, sweep);
      if (!trial) break;
      if (const auto driver = start_trial(p, *trial)) driver->wait();
    }
    settle_trials(*p, sweep);
    return n;
  }
  static std::vector<std::string> lines(const Project& p, int64_t sweep) {
    std::vector<std::string> out;
    for (const TrialInfo& t : p.sweep(sweep).trials)
      out.push_back(t.settings.dump() + " " + t.state + " " + nlohmann::json(t.value).dump() + " " + t.error);
    return out;
  }
};

TEST_F(SweepTest, every_trial_is_a_run_of_the_project) {
  const int64_t id = begin(*project, kKeys, {{"method", "random"}, {"runs", int64_t{5}}});
  EXPECT_EQ(play(project, id), 5);
  const SweepInfo sweep = project->sweep("sweep-01");
  const SweepPlan plan = plan_of(sweep);
  EXPECT_TRUE(is_over(sweep, plan));
  ASSERT_EQ(sweep.trials.size(), 5u);
  ASSERT_EQ(project->runs().size(), 5u);
  double least = INFINITY;
  for (const TrialInfo& t : sweep.trials) {
    const RunInfo run = project->run(t.run);
    EXPECT_EQ(run.name, "sweep-01-0" + std::to_string(t.number));
    EXPECT_EQ(run.status, "finished");
    EXPECT_EQ(t.state, "finished");
    const auto points = project->metric(run.id, "test_loss");
    ASSERT_EQ(points.size(), 4u);
    double best = INFINITY;
    for (const MetricPoint& p : points) best = std::min(best, p.value);
    EXPECT_EQ(t.value, best);
    least = std::min(least, best);
    const Recipe told = Recipe::from_json(run.recipe);
    for (const auto& [key, value] : settings_of(t)) EXPECT_EQ(attr_text(told.at(key)), value);
    EXPECT_EQ(told.integer("epochs"), 4);
  }
  EXPECT_EQ(best_trial(sweep, plan)->value, least);
  EXPECT_NE(project->recipe(), sweep.recipe) << "--set is of the sweep alone";
  EXPECT_EQ(play(project, id), 0) << "it is over";
}

TEST_F(SweepTest, goes_on_as_if_it_had_not_been_stopped) {
  const std::vector<Attr> attrs = {{"runs", int64_t{9}}, {"seed", int64_t{4}}, {"prune", int64_t{10}}};
  const int64_t whole = begin(*project, kKeys, attrs);
  play(project, whole);
  auto other = make("b.tenon");
  const int64_t parts = begin(*other, kKeys, attrs);
  play(other, parts, 3);
  // A trial that was chosen, and never begun.
  ASSERT_TRUE(next_trial(*other, parts));
  EXPECT_EQ(other->sweep(parts).trials.back().run, 0);
  play(other, parts, 2);
  // One that is stopped in its middle.
  auto trial = next_trial(*other, parts);
  ASSERT_TRUE(trial);
  trial->options.start_paused = true;
  if (auto driver = start_trial(other, *trial)) {
    for (int i = 0; i < 7; ++i) driver->step_once();
    while (driver->status().step < 7 && is_active(driver->status().state)) std::this_thread::yield();
    driver->stop();
    driver->wait();
    EXPECT_EQ(driver->status().state, RunStatus::State::stopped);
  }
  other.reset();
  other = Project::open(dir / "b.tenon");
  EXPECT_EQ(next_trial(*other, parts)->options.resume, other->run(other->sweep(parts).trials.back().run).name);
  play(other, parts);
  EXPECT_EQ(lines(*other, parts), lines(*project, whole));
}

TEST_F(SweepTest, trials_at_the_same_time_choose_as_one_after_the_other) {
  const std::vector<Attr> attrs = {{"runs", int64_t{10}}, {"side_by_side", int64_t{3}}, {"prune", int64_t{10}}};
  const int64_t alone = begin(*project, kKeys, attrs);
  play(project, alone);
  auto other = make("b.tenon");
  const int64_t together = begin(*other, kKeys, attrs);
  std::map<int64_t, std::unique_ptr<RunDriver>> at_work;
  size_t most = 0;
  while (true) {
    std::set<int64_t> numbers;
    for (const auto& [n, d] : at_work) numbers.insert(n);
    if (const auto trial = next_trial(*other, together, numbers)) {
      at_work[trial->of.number] = start_trial(other, *trial);
      most = std::max(most, at_work.size());
      continue;
    }
    if (at_work.empty()) break;
    for (auto d = std::prev(at_work.end()); !at_work.empty(); d = std::prev(at_work.end())) {  // the last one first
      if (d->second) d->second->wait();
      at_work.erase(d);
      if (at_work.empty()) break;
    }
  }
  EXPECT_EQ(most, 3u);
  EXPECT_EQ(lines(*other, together), lines(*project, alone));
}

TEST_F(SweepTest, a_trial_that_fails_does_not_end_the_sweep) {
  const int64_t id =
      begin(*project, {{"optimizer.type", "sgd"}, {"data.batch_size", "20,5000"}, {"optimizer.lr", "0.1,1e30"}},
            {{"method", "grid"}});
  EXPECT_EQ(play(project, id), 4);
  const auto trials = project->sweep(id).trials;
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_EQ(trials[0].state, "finished");
  EXPECT_EQ(trials[1].state, "failed");
  EXPECT_TRUE(has(trials[1].error, "not finite")) << trials[1].error;
  EXPECT_NE(trials[1].run, 0);
  EXPECT_EQ(trials[2].state, "failed");
  EXPECT_TRUE(has(trials[2].error, "larger than the data set")) << trials[2].error;
  EXPECT_EQ(trials[2].run, 0) << "it never began";
  EXPECT_TRUE(std::isnan(trials[1].value) && std::isnan(trials[2].value));
}

TEST_F(SweepTest, a_pruned_run_ends_early_and_says_why) {
  const int64_t id = begin(*project, {{"optimizer.lr", "0.05,1e-7,0.04"}},
                           {{"method", "grid"}, {"prune", int64_t{20}}, {"prune_factor", int64_t{2}}});
  play(project, id);
  const auto trials = project->sweep(id).trials;
  EXPECT_EQ(trials[0].state, "finished");
  EXPECT_EQ(trials[1].state, "pruned");
  EXPECT_FALSE(std::isnan(trials[1].value));
  const RunInfo run = project->run(trials[1].run);
  EXPECT_EQ(run.status, "pruned");
  EXPECT_EQ(run.steps, 20) << "judged at the end of an epoch of 10 steps";
  EXPECT_EQ(project->checkpoints(run.id).back().step, 20);
  EXPECT_TRUE(has(run.error, "pruned at step 20: its best test_loss so far is")) << run.error;
  EXPECT_EQ(trials[1].error, run.error);
  // A person may go on with it all the same; what it counts as stays.
  RunDriver::start(project, {.resume = run.name})->wait();
  EXPECT_EQ(project->run(run.id).status, "finished");
  settle_trials(*project, id);
  EXPECT_EQ(project->sweep(id).trials[1].state, "pruned");
}

TEST_F(SweepTest, a_run_killed_between_its_verdict_and_its_end_is_pruned_again) {
  const int64_t id = begin(*project, {{"optimizer.lr", "0.05,1e-7"}}, {{"method", "grid"}, {"prune", int64_t{20}}});
  play(project, id, 1);
  const auto trial = next_trial(*project, id);
  ASSERT_TRUE(trial);
  Trial whole = *trial;
  whole.options.prune = {};  // up to its verdict, and no word of it in the file
  whole.options.start_paused = true;
  auto driver = start_trial(project, whole);
  for (int i = 0; i < 20; ++i) driver->step_once();
  // Paused again: the evaluation after step 20 is over, and in the file.
  while (driver->status().step < 20 || driver->status().state != RunStatus::State::paused) std::this_thread::yield();
  driver->stop();
  driver.reset();
  const RunInfo run = project->run(project->sweep(id).trials[1].run);
  ASSERT_EQ(run.steps, 20);
  ASSERT_EQ(project->metric(run.id, "test_loss").back().step, 20);
  play(project, id);
  EXPECT_EQ(project->sweep(id).trials[1].state, "pruned");
}

TEST_F(SweepTest, an_open_trial_that_is_resumed_by_its_name_is_pruned_too) {
  const int64_t id = begin(*project, {{"optimizer.lr", "0.05,1e-7"}}, {{"method", "grid"}, {"prune", int64_t{20}}});
  play(project, id, 1);
  Trial trial = *next_trial(*project, id);
  trial.options.start_paused = true;
  auto driver = start_trial(project, trial);
  for (int i = 0; i < 5; ++i) driver->step_once();
  while (driver->status().step < 5 || driver->status().state != RunStatus::State::paused) std::this_thread::yield();
  driver->stop();
  driver.reset();
  const std::string name = project->run(project->sweep(id).trials[1].run).name;
  TrainOptions resume;
  resume.resume = name;
  driver = RunDriver::start(project, resume);
  driver->wait();
  EXPECT_EQ(driver->status().state, RunStatus::State::pruned) << driver->status().error;
  settle_trials(*project, id);
  EXPECT_EQ(project->sweep(id).trials[1].state, "pruned");
}

TEST_F(SweepTest, a_metric_that_no_run_records_is_said) {
  const int64_t id = begin(*project, kKeys, {{"metric", "test_mean_iou"}, {"runs", int64_t{5}}});
  const std::string said = message_of([&] { play(project, id); });
  EXPECT_TRUE(has(said, "cannot go on: it recorded no test_mean_iou")) << said;
  ASSERT_EQ(project->sweep(id).trials.size(), 1u) << "one is enough to know";
  const TrialInfo t = project->sweep(id).trials.at(0);
  EXPECT_EQ(t.state, "failed");
  EXPECT_TRUE(has(t.error, "recorded no test_mean_iou, but") && has(t.error, "test_accuracy")) << t.error;
}

TEST_F(SweepTest, a_deleted_run_counts_as_failed) {
  const int64_t id = begin(*project, kKeys, {{"runs", int64_t{2}}});
  const auto trial = next_trial(*project, id);
  ASSERT_TRUE(trial);
  auto driver = start_trial(project, *trial);
  driver->stop();
  driver.reset();
  project->delete_runs({project->runs().at(0).id});
  settle_trials(*project, id);
  EXPECT_EQ(project->sweep(id).trials[0].error, "its run was deleted");
  EXPECT_EQ(play(project, id), 1);
}

TEST_F(SweepTest, the_project_may_change_while_a_sweep_waits) {
  const int64_t id = begin(*project, kKeys, {{"method", "random"}, {"runs", int64_t{2}}});
  play(project, id, 1);
  project->set_model(testing_files::small_model());
  Recipe recipe = Recipe::from_json(project->recipe());
  recipe.set("epochs", "9");
  project->set_recipe(recipe.to_json());
  play(project, id);
  const auto trials = project->sweep(id).trials;
  EXPECT_EQ(trials[1].state, "finished") << trials[1].error;
  EXPECT_EQ(project->run(trials[1].run).model, project->run(trials[0].run).model);
  EXPECT_EQ(project->run(trials[1].run).total_steps, 40);
}

TEST_F(SweepTest, names_are_free_ones) {
  begin(*project, kKeys, {{"runs", int64_t{1}}});
  project->new_run("sweep-02-01", project->model(), project->recipe(), 1);
  const int64_t second = begin(*project, kKeys, {{"runs", int64_t{1}}});
  play(project, second);
  EXPECT_EQ(project->run(project->sweep(second).trials[0].run).name, "sweep-02-01.2");
  EXPECT_TRUE(has(message_of([&] { begin_sweep(*project, "sweep-01", kKeys, {}); }), "already has a sweep"));
  EXPECT_TRUE(has(message_of([&] { project->sweep("seep-01"); }), "no sweep \"seep-01\""));
  const auto before = project->sweeps().size();
  EXPECT_ANY_THROW(begin_sweep(*project, "", {{"optimizer.lrr", "1,2"}}, {}));
  EXPECT_EQ(project->sweeps().size(), before) << "nothing is stored of one that is wrong";
}

TEST(SweepVersion, a_project_of_version_1_learns_of_sweeps) {
  TempDir dir;
  testing_files::make_version_1(dir / "old.tenon");
  {  // who only looks does not change it
    const std::string before = testing_files::read(dir / "old.tenon");
    auto p = Project::open(dir / "old.tenon", true);
    EXPECT_EQ(p->run("old").steps, 20);
    EXPECT_TRUE(p->sweeps().empty());
    EXPECT_TRUE(has(message_of([&] { p->sweep("s"); }), "no sweep \"s\""));
    p.reset();
    EXPECT_EQ(testing_files::read(dir / "old.tenon"), before);
  }
  auto p = Project::open(dir / "old.tenon");
  EXPECT_TRUE(p->sweeps().empty());
  const SweepInfo s = p->new_sweep("", {{"keys", nlohmann::json::array()}}, p->model(), p->recipe());
  p->set_recipe({{"seed", 5}});
  EXPECT_EQ(p->sweep(s.id).recipe, s.recipe) << "its own recipe is not swept away with the project's";
}

TEST_F(SweepTest, renamed_deleted_and_brought_back_it_goes_on_where_it_was) {
  const Settings keys = {{"optimizer.lr", "0.001,0.01,0.1"}};
  const int64_t id = begin(*project, keys, {{"method", "grid"}});
  const int64_t other = begin(*project, keys, {{"method", "grid"}});
  EXPECT_EQ(play(project, id, 2), 2);
  EXPECT_TRUE(has(message_of([&] { project->rename_sweep(id, "sweep-02"); }), "already has a sweep"));
  EXPECT_TRUE(has(message_of([&] { project->rename_sweep(id, ""); }), "cannot be empty"));
  EXPECT_TRUE(has(message_of([&] { project->rename_sweep(99, "x"); }), "no sweep number 99"));
  project->rename_sweep(id, "rates");
  project->delete_sweep(id);
  project->delete_sweep(id);  // twice is once
  ASSERT_EQ(project->sweeps().size(), 1u);
  EXPECT_EQ(project->sweeps().front().id, other);
  EXPECT_TRUE(has(message_of([&] { project->sweep("rates"); }), "no sweep"));
  ASSERT_EQ(project->deleted_sweeps().size(), 1u);
  EXPECT_EQ(project->deleted_sweeps().front().trials.size(), 2u);
  EXPECT_EQ(project->runs().size(), 2u) << "its runs are ordinary ones";
  EXPECT_TRUE(has(message_of([&] { project->rename_sweep(other, "rates"); }), "already has a sweep"))
      << "the name waits for the deleted one";
  project.reset();
  project = Project::open(dir / "a.tenon");
  project->undelete_sweep(id);
  EXPECT_TRUE(project->deleted_sweeps().empty());
  EXPECT_EQ(play(project, id), 1);
  EXPECT_TRUE(is_over(project->sweep("rates"), plan_of(project->sweep("rates"))));
}

}  // namespace
}  // namespace tenon::projects
