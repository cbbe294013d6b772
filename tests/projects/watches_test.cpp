// Watches of runs: what they do and leave in the project, through pauses, kills and replays, and the search for the
// first step of a condition.
#include "projects/watches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "engine/nn/module.h"
#include "engine/train/recipe.h"
#include "tests/messages.h"
#include "tests/projects/old_versions.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using State = RunStatus::State;
using testing_files::KeyValues;

struct Watches : testing_files::SpiralsTest {
  std::unique_ptr<RunDriver> begin(const std::string& name, const KeyValues& set, int64_t steps = 60) {
    TrainOptions o;
    o.run_name = name;
    o.max_steps = steps;
    o.set = set;
    return RunDriver::start(project, o);
  }
  static void wait_for(const RunDriver& d, State state) {
    while (d.status().state != state) {
      ASSERT_TRUE(is_active(d.status().state)) << d.status().error;
      std::this_thread::yield();
    }
  }
  std::vector<WatchHit> hits(const std::string& run) { return project->watch_hits(project->run(run).id); }
  std::string end_of(const std::string& run) {
    const RunInfo r = project->run(run);
    return digest_at(*project, r.id, r.steps);
  }
  std::vector<double> values(const std::string& run, const std::string& metric) {
    std::vector<double> v;
    for (const MetricPoint& p : project->metric(project->run(run).id, metric)) v.push_back(p.value);
    return v;
  }
  /// "3! 4 9!" of one watch: its steps, and where it began to hold.
  static std::string steps_of(const std::vector<WatchHit>& all, const std::string& watch) {
    std::string text;
    for (const WatchHit& h : all)
      if (h.watch == watch) text += std::to_string(h.step) + (h.begins ? "! " : " ");
    return text;
  }
};

TEST_F(Watches, an_armed_run_has_the_bits_and_records_of_one_without) {
  train("bare", {}, 60);
  train("armed",
        {{"watches",
          "loss > 0: checkpoint; norm(grad(*)) > 0; dead(activation(*)) >= 0 every 5: count; "
          "ratio(update(*)) > 0; loss > median(loss, 10)"}},
        60);
  EXPECT_EQ(end_of("armed"), end_of("bare"));
  EXPECT_EQ(values("armed", "loss"), values("bare", "loss"));
  EXPECT_TRUE(hits("bare").empty());
  const RunInfo r = project->run("armed");
  const std::vector<WatchSummary> all = watch_summaries(*project, r);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].condition, "loss > 0");
  EXPECT_EQ(all[0].action, WatchAction::checkpoint);
  EXPECT_EQ(all[0].held, 60);
  EXPECT_EQ(all[0].began, 1);
  EXPECT_EQ(all[0].first.step, 1);
  EXPECT_EQ(all[0].last.step, 60);
  EXPECT_EQ(all[2].held, 12);
  for (const WatchSummary& s : all) {
    EXPECT_TRUE(s.armed) << s.condition;
    EXPECT_GT(s.share, 0) << s.condition;
    EXPECT_LT(s.share, 1) << s.condition;
  }
  // The step at which the first one began to hold was kept.
  bool kept = false;
  for (const CheckpointInfo& c : project->checkpoints(r.id)) kept |= c.step == 1;
  EXPECT_TRUE(kept);
  for (const WatchHit& h : hits("armed"))
    if (h.watch == "loss > 0") {
      EXPECT_EQ(h.value, values("armed", "loss")[static_cast<size_t>(h.step - 1)]);
    }
}

TEST_F(Watches, a_median_fires_where_the_recorded_losses_say_so) {
  train("r", {{"watches", "loss > 1.02 * median(loss, 7)"}}, 80);
  const std::vector<double> loss = values("r", "loss");
  std::string expected;
  bool held = false;
  for (size_t i = 7; i < loss.size(); ++i) {
    std::vector<double> last(loss.begin() + static_cast<int64_t>(i) - 7, loss.begin() + static_cast<int64_t>(i));
    std::sort(last.begin(), last.end());
    const bool holds = loss[i] > 1.02 * last[3];
    if (holds) expected += std::to_string(i + 1) + (held ? " " : "! ");
    held = holds;
  }
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(steps_of(hits("r"), "loss > 1.02 * median(loss, 7)"), expected);
}

TEST_F(Watches, a_pause_holds_the_run_after_its_step_and_it_goes_on_by_hand) {
  train("bare", {}, 40);
  const std::vector<double> loss = values("bare", "loss");
  auto d = begin("r", {{"watches", "grad_norm > 0: pause; lr > 0: stop"}}, 40);
  // Both begin with the first step: a stop is stronger.
  d->wait();
  EXPECT_EQ(d->status().state, State::stopped);
  EXPECT_EQ(d->status().step, 1);
  EXPECT_SAYS(d->status().error, "lr > 0 at step 1: lr is ");
  EXPECT_EQ(project->run("r").status, "stopped");
  d.reset();
  // It held already: neither pause nor stop comes again.
  train("", {}, 0, "r");
  EXPECT_EQ(project->run("r").steps, 40);
  EXPECT_EQ(end_of("r"), end_of("bare"));
  EXPECT_EQ(hits("r").size(), 80u);

  // The first step after 10 whose loss is lower than all before.
  double least = loss[0];
  for (size_t i = 0; i < 10; ++i) least = std::min(least, loss[i]);
  size_t at = 10;
  while (at < loss.size() && loss[at] >= least) ++at;
  ASSERT_LT(at, loss.size());
  const std::string below = "loss < " + std::to_string(least);
  const auto first = std::find_if(loss.begin(), loss.end(), [&](double v) { return v < std::stod(below.substr(7)); });
  const int64_t step = first - loss.begin() + 1;
  d = begin("paused", {{"watches", below + ": pause"}}, 40);
  wait_for(*d, State::paused);
  EXPECT_EQ(d->status().step, step);
  EXPECT_SAYS(d->status().paused_by, below + " at step " + std::to_string(step));
  EXPECT_EQ(d->status().hits, 1);
  EXPECT_EQ(project->run("paused").status, "paused");
  EXPECT_EQ(hits("paused").size(), 1u) << "who sees the pause finds what was seen in the project";
  std::vector<WatchHit> drained;
  d->drain(drained);
  EXPECT_EQ(drained, hits("paused"));
  d->step_once();
  while (d->status().step == step) std::this_thread::yield();
  // Whether or not it holds in the next step: it goes on until it begins to hold again.
  while (is_active(d->status().state)) {
    if (d->status().state == State::paused) d->resume();
    std::this_thread::yield();
  }
  d->wait();
  EXPECT_EQ(d->status().state, State::finished);
  EXPECT_EQ(d->status().paused_by, "");
  EXPECT_EQ(end_of("paused"), end_of("bare"));
}

TEST_F(Watches, a_run_that_is_cut_anywhere_has_the_hits_of_one_that_went_through) {
  const KeyValues set = {
      {"checkpoint_every", "10"},
      {"eval_every", "1"},
      {"watches",
       "loss > 1.02 * median(loss, 7); max_abs(grad(*)) > 0.05; norm(update(*.weight)) > 0.02 every 4; "
       "dead(activation(*)) > 0.4: count; test_loss < 10; loss < 2 * median(test_loss, 1): count"}};
  train("through", set, 90);
  const std::vector<WatchHit> expected = hits("through");
  EXPECT_GT(expected.size(), 60u);
  int cuts = 0;
  for (const int64_t cut : {1, 9, 10, 11, 23, 37, 64, 65}) {
    const std::string name = "cut-" + std::to_string(cut);
    TrainOptions o;
    o.run_name = name;
    o.max_steps = 90;
    o.set = set;
    o.start_paused = true;
    auto d = RunDriver::start(project, o);
    for (int64_t i = 0; i < cut; ++i) d->step_once();
    while (d->status().step < cut || d->status().state != State::paused) std::this_thread::yield();
    d->stop();
    d->wait();
    d.reset();
    // As if it had been killed: the last checkpoint and what came after it are of no help.
    const RunInfo r = project->run(name);
    const auto checkpoints = project->checkpoints(r.id);
    if (checkpoints.back().step > 0 && cut % 10 != 0) project->delete_checkpoint(checkpoints.back().id);
    train("", {}, 0, name);
    EXPECT_EQ(hits(name), expected) << cut;
    EXPECT_EQ(end_of(name), end_of("through")) << cut;
    ++cuts;
  }
  EXPECT_EQ(cuts, 8);
}

TEST_F(Watches, a_replay_sees_what_the_run_saw) {
  const std::string watches =
      "loss > 1.02 * median(loss, 7); max_abs(grad(*)) > 0.05; norm(update(*.weight)) > 0.02 every 4; "
      "dead(activation(*)) > 0.4: count; loss < 2 * median(test_loss, 1): count";
  train("r", {{"checkpoint_every", "10"}, {"eval_every", "1"}, {"watches", watches}}, 90);
  train("bare", {{"checkpoint_every", "10"}, {"eval_every", "1"}}, 90);
  const std::vector<WatchHit> seen = hits("r");
  const auto sorted = [](std::vector<WatchHit> all) {
    std::sort(all.begin(), all.end(), [](const WatchHit& a, const WatchHit& b) {
      return std::tie(a.step, a.watch) < std::tie(b.step, b.watch);
    });
    return all;
  };
  EXPECT_EQ(sorted(replay_watches(*project, project->run("r").id, parse_watches(watches), 1, 90)), seen);
  EXPECT_EQ(sorted(replay_watches(*project, project->run("bare").id, parse_watches(watches), 1, 90)), seen)
      << "also of a run that had none";
  std::vector<WatchHit> part;
  for (const WatchHit& h : seen)
    if (h.step >= 34 && h.step <= 71) part.push_back(h);
  EXPECT_EQ(sorted(replay_watches(*project, project->run("r").id, parse_watches(watches), 34, 71)), part);
}

TEST_F(Watches, the_first_step_is_found_as_by_trying_every_step) {
  train("r", {{"checkpoint_every", "10"}, {"eval_every", "1"}}, 90);
  const int64_t run = project->run("r").id;
  const char* conditions[] = {"loss > 0",
                              "loss < 0.66",
                              "loss > 1.02 * median(loss, 7)",
                              "loss > 1e9",
                              "test_loss < 10",
                              "test_loss < median(loss, 20)",
                              "max_abs(grad(*)) > 0.05",
                              "max_abs(grad(*)) > 0.1",
                              "norm(weight(*)) > 4",
                              "norm(weight(*)) < 1",
                              "ratio(update(*.weight)) > 0.01",
                              "dead(activation(*)) > 0.4",
                              "norm(grad(*)) < 0.2 * median(grad_norm, 5)",
                              "nonfinite(activation(*)) > 0"};
  for (const char* text : conditions) {
    const Watch w = parse_condition(text);
    int64_t brute = 0;
    if (w.of_evaluations()) {
      // What a run that had had the watch recorded.
      const std::string name = "with " + std::string(text);
      train(name, {{"eval_every", "1"}, {"watches", text}}, 90);
      if (!hits(name).empty()) brute = hits(name).front().step;
    } else {
      const auto all = replay_watches(*project, run, {w}, 1, 90);
      if (!all.empty()) brute = all.front().step;
    }
    const FindPlan plan = plan_find(project->run(run), project->checkpoints(run), w, false);
    EXPECT_EQ(plan.replayed, w.only_metrics() ? 0 : 90) << text;
    const FoundStep found = find_first(*project, run, w, false);
    EXPECT_EQ(found.found, brute > 0) << text;
    EXPECT_LE(found.replayed, plan.replayed) << text;
    if (brute > 0) {
      EXPECT_EQ(found.hit.step, brute) << text;
    }
  }
}

TEST_F(Watches, bisection_comes_to_the_same_where_a_condition_goes_on_holding) {
  train("r", {{"checkpoint_every", "10"}}, 90);
  const int64_t run = project->run("r").id;
  // The norm of a weight that grows: each bound is crossed once.
  const auto values_of = [&](const char* what) {
    std::vector<double> v;
    for (const WatchHit& h : replay_watches(*project, run, {parse_condition(std::string(what) + " > 0")}, 1, 90))
      v.push_back(h.value);
    return v;
  };
  std::string monotone;
  std::vector<double> norm;
  for (const nn::Named& p : replay_to(*project, run, 0, {})->model().parameters()) {
    const std::string what = "norm(weight(" + p.name + "))";
    const std::vector<double> v = values_of(what.c_str());
    if (v.size() == 90 && std::is_sorted(v.begin(), v.end()) && v.front() < v.back()) monotone = what, norm = v;
  }
  ASSERT_FALSE(monotone.empty());
  for (const size_t step : {1, 2, 9, 10, 11, 12, 45, 80, 81, 89, 90}) {
    const double before = step > 1 ? norm[step - 2] : norm[0] * 0.999;
    if (!(before < norm[step - 1])) continue;
    const Watch w = parse_condition(fmt::format("{} > {:.17g}", monotone, (before + norm[step - 1]) / 2));
    const FindPlan plan = plan_find(project->run(run), project->checkpoints(run), w, true);
    EXPECT_LE(plan.replayed, 16) << "an interval between checkpoints, and four halvings";
    const FoundStep found = find_first(*project, run, w, true), all = find_first(*project, run, w, false);
    ASSERT_TRUE(found.found && all.found) << w.condition;
    EXPECT_EQ(found.hit.step, static_cast<int64_t>(step)) << w.condition;
    EXPECT_EQ(all.hit.step, static_cast<int64_t>(step)) << w.condition;
    EXPECT_EQ(found.hit.value, all.hit.value);
    EXPECT_LE(found.replayed, plan.replayed);
  }
  const FoundStep never = find_first(*project, run, parse_condition(monotone + " > 1e9"), true);
  EXPECT_FALSE(never.found);
  EXPECT_LE(never.replayed, 16);
  // Whoever wants to may stop it.
  EXPECT_SAYS(testing_words::error_of([&] {
                find_first(*project, run, parse_condition(monotone + " > 1e9"), false,
                           [](int64_t done, int64_t) { return done < 5; });
              }),
              "cancelled");
}

TEST_F(Watches, may_be_armed_and_disarmed_while_the_run_trains) {
  TrainOptions o;
  o.run_name = "r";
  o.max_steps = 60;
  o.start_paused = true;
  auto d = RunDriver::start(project, o);
  const auto go_to = [&](int64_t step) {
    for (int64_t i = d->status().step; i < step; ++i) d->step_once();
    while (d->status().step < step || d->status().state != State::paused) std::this_thread::yield();
  };
  const auto change = [&](const std::string& watches) {
    const int64_t before = d->status().changes;
    d->change({{"watches", watches}});
    while (d->status().changes == before && d->status().refused.empty()) std::this_thread::yield();
    return d->status().refused;
  };
  go_to(20);
  EXPECT_EQ(change("loss > 0 * median(loss, 15)"), "");
  go_to(22);
  EXPECT_SAYS(change("norm(grad(nobody)) > 0"), "no parameter that is trained and called \"nobody\"");
  EXPECT_EQ(d->recipe().text("watches"), "loss > 0 * median(loss, 15)");
  go_to(24);
  EXPECT_EQ(change("lr > 0: count"), "");
  d->resume();
  d->wait();
  EXPECT_EQ(d->status().state, State::finished);
  d.reset();
  EXPECT_EQ(steps_of(hits("r"), "loss > 0 * median(loss, 15)"), "21! 22 23 24 ") << "its window was filled at once";
  const auto all = watch_summaries(*project, project->run("r"));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].armed);
  EXPECT_TRUE(all[1].armed);
  EXPECT_EQ(all[1].held, 36);
  train("bare", {}, 60);
  EXPECT_EQ(end_of("r"), end_of("bare"));
}

TEST_F(Watches, a_text_that_is_none_begins_no_run) {
  const auto refused = [&](const std::string& watches) {
    return testing_words::error_of([&] { begin("r", {{"watches", watches}}); });
  };
  EXPECT_SAYS(refused("los > 1"), "there is no metric or measure \"los\"");
  EXPECT_SAYS(refused("norm(grad(nobody)) > 0"), "called \"nobody\"");
  EXPECT_TRUE(project->runs().empty());
}

TEST_F(Watches, the_trial_of_a_sweep_is_not_held_by_them) {
  TrainOptions o;
  o.run_name = "r";
  o.max_steps = 20;
  o.obeys_watches = false;
  o.set = {{"watches", "loss > 0: pause; lr > 0: stop"}};
  auto d = RunDriver::start(project, o);
  d->wait();
  EXPECT_EQ(d->status().state, State::finished) << d->status().error;
  EXPECT_EQ(hits("r").size(), 40u);
}

TEST_F(Watches, hits_are_kept_through_the_file_and_go_with_the_steps) {
  train("r", {{"watches", "loss > 0; norm(grad(*)) > 0"}}, 30);
  const RunInfo r = project->run("r");
  const std::vector<WatchHit> before = hits("r");
  const std::string path = project->path();
  project.reset();
  project = Project::open(path);
  EXPECT_EQ(hits("r"), before);
  project->truncate_metrics(r.id, 12);
  EXPECT_EQ(hits("r").size(), 24u);
  WatchHit odd{"w", 3, "a", std::nan(""), INFINITY, true, WatchAction::stop};
  project->append_watch_hits(r.id, {odd});
  const WatchHit back = hits("r")[4 + 2];
  EXPECT_EQ(back.watch, "w");
  EXPECT_TRUE(std::isnan(back.value) && back.bound == INFINITY && back.action == WatchAction::stop);
  project->add_watch_costs(r.id, {{"w", 1, 4}});
  project->add_watch_costs(r.id, {{"w", 1, 4}});
  for (const WatchCost& c : project->watch_costs(r.id))
    if (c.watch == "w") {
      EXPECT_EQ(c.seconds / c.trained, 0.25);
    }
  // A file of before there were watches.
  testing_files::make_version_1(dir / "old.tenon");
  const auto read_only = Project::open(dir / "old.tenon", true);
  EXPECT_TRUE(read_only->watch_hits(1).empty());
  EXPECT_TRUE(watch_summaries(*read_only, read_only->run("old")).empty());
  const auto old = Project::open(dir / "old.tenon");
  old->append_watch_hits(old->run("old").id, {odd});
  EXPECT_EQ(old->watch_hits(old->run("old").id).size(), 1u);
}

}  // namespace
}  // namespace tenon::projects
