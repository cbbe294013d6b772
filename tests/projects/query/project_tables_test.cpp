// The tables of a project against what the project says.
#include <cmath>
#include <nlohmann/json.hpp>

#include "projects/finish.h"
#include "projects/project.h"
#include "projects/recipe_keys.h"
#include "tests/projects/query/asked.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using namespace testing_query;

struct ProjectTables : testing_files::SpiralsTest {
  void SetUp() override {
    SpiralsTest::SetUp();
    train("one", {{"optimizer.lr", "0.05"}}, 12);
    train("two", {{"optimizer.lr", "0.01"}, {"seed", "3"}}, 8);
    train("gone", {}, 4);
    project->delete_runs({project->run("gone").id});
    project->describe_run(1, "looks fine", {"good", "first"});
  }
};

TEST_F(ProjectTables, runs_are_those_that_are_not_deleted) {
  QueryBase b({.project = project});
  const auto all = rows(b, "SELECT id, name, status, steps, total_steps, seconds, created, tags, note FROM runs");
  const auto runs = project->runs();
  ASSERT_EQ(all.size(), 2u);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], (Row{runs[i].id, runs[i].name, status_text(runs[i]), runs[i].steps, runs[i].total_steps,
                           runs[i].seconds, runs[i].created, std::string(i == 0 ? "good, first" : ""), runs[i].note}));
  ASSERT_FALSE(runs[0].best.is_null());
  EXPECT_EQ(text(rows(b, "SELECT best_metric, best_value, best_step FROM runs WHERE id = 1").at(0)),
            text({runs[0].best["metric"].get<std::string>(), runs[0].best["value"].get<double>(),
                  runs[0].best["step"].get<int64_t>()}));
}

TEST_F(ProjectTables, the_recipe_has_a_row_a_key) {
  QueryBase b({.project = project});
  int64_t keys = 0;
  for (const RunInfo& r : project->runs())
    each_recipe_key(r.recipe, [&](const std::string&, const nlohmann::json&) { ++keys; });
  EXPECT_EQ(number(b, "SELECT count(*) FROM recipe"), keys);
  EXPECT_GT(keys, 20);
  EXPECT_EQ(text(rows(b, "SELECT run_name, number FROM recipe WHERE key = 'optimizer.lr' AND run = 2").at(0)),
            "two|0.01");
  EXPECT_EQ(rows(b, "SELECT 1 FROM recipe WHERE run = 1").size(),
            rows(b, "SELECT 1 FROM recipe WHERE +run = 1").size());
}

TEST_F(ProjectTables, a_key_that_was_changed_has_its_values_with_their_steps) {
  train("", {{"optimizer.lr", "0.002"}, {"max_steps", "12"}}, 0, "two");
  QueryBase b({.project = project});
  const auto all = rows(b, "SELECT number, since FROM recipe WHERE run_name = 'two' AND key = 'optimizer.lr'");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(text(all[0]), "0.01|0");
  EXPECT_EQ(text(all[1]), "0.002|8");
}

TEST_F(ProjectTables, metrics_are_every_point) {
  QueryBase b({.project = project});
  size_t points = 0;
  for (const RunInfo& r : project->runs())
    for (const std::string& name : project->metric_names(r.id)) {
      const auto expected = project->metric(r.id, name);
      const auto found = rows(b, "SELECT step, seconds, value FROM metrics WHERE run = " + std::to_string(r.id) +
                                     " AND metric = '" + name + "'");
      ASSERT_EQ(found.size(), expected.size()) << name;
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(found[i], (Row{expected[i].step, expected[i].wall,
                                 std::isnan(expected[i].value) ? QueryValue() : QueryValue(expected[i].value)}));
      points += expected.size();
    }
  EXPECT_GT(points, 20u);
  EXPECT_EQ(number(b, "SELECT count(*) FROM metrics"), static_cast<int64_t>(points));
  expect_narrowed(b, "metrics", "run_name = 'one' AND metric = 'loss'", "+run_name = 'one' AND +metric = 'loss'");
  expect_narrowed(b, "metrics", "run > 1", "+run > 1");
  EXPECT_TRUE(rows(b, "SELECT 1 FROM metrics WHERE metric = 'no such'").empty());
}

TEST_F(ProjectTables, a_nan_is_null_and_is_counted) {
  project->append_metrics(1, {{"odd", {1, 0, 0.5}}, {"odd", {2, 0, std::nan("")}}, {"odd", {3, 0, INFINITY}}});
  QueryBase b({.project = project});
  EXPECT_EQ(text(rows(b, "SELECT count(*), count(value), max(value) FROM metrics WHERE metric = 'odd'").at(0)),
            "3|2|inf");
  EXPECT_EQ(text(rows(b, "SELECT points, not_finite, low, low_step, high FROM metric_sums WHERE metric = 'odd'").at(0)),
            "3|2|0.5|1|0.5");
}

TEST_F(ProjectTables, sums_checkpoints_and_artifacts) {
  project->add_artifact(1, 7, "note", "n.txt", "looked at");
  project->add_artifact(0, 0, "finding", "t.json: why", R"({"sentence": "The GPU waits.", "figures": []})");
  QueryBase b({.project = project});
  const auto sums = project->metric_sums(1);
  const auto found = rows(b, "SELECT metric, points, last, last_step FROM metric_sums WHERE run = 1");
  ASSERT_EQ(found.size(), sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(text(found[i]), text({sums[i].name, sums[i].points, sums[i].last, sums[i].last_step}));
  const auto kept = project->checkpoints(1);
  const auto checkpoints = rows(b, "SELECT id, step, bytes, stored_bytes, best FROM checkpoints WHERE run = 1");
  ASSERT_EQ(checkpoints.size(), kept.size());
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(checkpoints[i],
              (Row{kept[i].id, kept[i].step, kept[i].bytes, kept[i].stored_bytes, int64_t{kept[i].best}}));
  EXPECT_EQ(text(rows(b, "SELECT run, step, name, bytes FROM artifacts WHERE kind = 'note'").at(0)), "1|7|n.txt|9");
  EXPECT_EQ(text(rows(b, "SELECT name, sentence, json_array_length(json, '$.figures') FROM findings").at(0)),
            "t.json: why|The GPU waits.|0");
}

TEST_F(ProjectTables, what_watches_saw) {
  train("watched", {{"watches", "loss > 0: count; norm(grad(*)) > 0 every 3"}}, 7);
  QueryBase b({.project = project});
  const auto seen = project->watch_hits(project->run("watched").id);
  const auto found = rows(b, "SELECT run_name, step, watch, at, value, bound, begins, action FROM watch_hits");
  ASSERT_EQ(found.size(), seen.size());
  ASSERT_EQ(seen.size(), 9u);
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_EQ(found[i],
              (Row{std::string("watched"), seen[i].step, seen[i].watch, seen[i].at, seen[i].value, seen[i].bound,
                   int64_t{seen[i].begins}, std::string(seen[i].watch == "loss > 0" ? "count" : "mark")}));
  EXPECT_EQ(number(b, "SELECT count(*) FROM watch_hits WHERE run = 1"), 0);
}

TEST_F(ProjectTables, sweeps_and_trials) {
  const auto sweep = project->new_sweep("rates", {{"method", "grid"}, {"metric", "test_accuracy"}, {"goal", "max"}},
                                        project->model(), project->recipe());
  using nlohmann::json;
  project->add_trial({sweep.id, 1}, json::array({json::array({"optimizer.lr", "0.1"}), json::array({"seed", "4"})}));
  project->end_trial({sweep.id, 1}, "failed", std::nan(""), "no data");
  QueryBase b({.project = project});
  EXPECT_EQ(text(rows(b, "SELECT name, method, metric, goal, trials FROM sweeps").at(0)),
            "rates|grid|test_accuracy|max|1");
  EXPECT_EQ(text(rows(b, "SELECT sweep_name, trial, run, state, value, settings, error FROM trials").at(0)),
            "rates|1||failed||optimizer.lr=0.1 seed=4|no data");
  project->delete_sweep(sweep.id);
  QueryBase after({.project = project});
  EXPECT_EQ(number(after, "SELECT count(*) FROM trials"), 0);
}

}  // namespace
}  // namespace tenon::projects
