// The points of metrics, and the sums that are kept beside them.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/projects/old_versions.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Every sum is what its points come to, one by one.
void expect_true_sums(const Project& p, int64_t run) {
  std::vector<MetricSum> sums = p.metric_sums(run);
  size_t at = 0;
  for (const std::string& name : p.metric_names(run)) {
    const auto points = p.metric(run, name);
    if (points.empty()) continue;
    ASSERT_LT(at, sums.size()) << name;
    const MetricSum& s = sums[at++];
    EXPECT_EQ(s.name, name);
    EXPECT_EQ(s.run, run);
    EXPECT_EQ(s.points, static_cast<int64_t>(points.size()));
    EXPECT_EQ(s.last_step, points.back().step);
    EXPECT_TRUE(same(s.last, points.back().value)) << name << " " << s.last;
    int64_t bad = 0, low_step = 0, high_step = 0;
    double low = std::nan(""), high = std::nan("");
    for (const MetricPoint& q : points) {
      if (!std::isfinite(q.value)) {
        ++bad;
        continue;
      }
      if (std::isnan(low) || q.value < low) low = q.value, low_step = q.step;
      if (std::isnan(high) || q.value > high) high = q.value, high_step = q.step;
    }
    EXPECT_EQ(s.bad, bad) << name;
    EXPECT_TRUE(same(s.low, low) && same(s.high, high)) << name;
    EXPECT_EQ(s.low_step, low_step) << name;
    EXPECT_EQ(s.high_step, high_step) << name;
  }
  EXPECT_EQ(at, sums.size());
}

TEST(MetricSums, say_what_the_points_say_whatever_was_done_to_them) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  const int64_t run = p->new_run("", p->model(), p->recipe(), 10).id;
  const int64_t other = p->new_run("", p->model(), p->recipe(), 10).id;
  std::mt19937 random(3);
  int64_t step = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<MetricRow> rows;
    for (int i = 0; i < 20; ++i) {
      ++step;
      double v = static_cast<double>(random() % 7) - 3;
      if (random() % 9 == 0) v = std::nan("");
      if (random() % 9 == 0) v = std::numeric_limits<double>::infinity();
      rows.push_back({"loss", {step, 0.1 * static_cast<double>(step), v}});
      if (step % 7 == 0) rows.push_back({"test_loss", {step, 0, v}});
    }
    switch (random() % 4) {
      case 0:  // a run that goes on from an earlier step
        step -= static_cast<int64_t>(random() % 30);
        p->truncate_metrics(run, std::max<int64_t>(step, 0));
        step = std::max<int64_t>(step, 0);
        break;
      case 1:  // points that are written again
        p->append_metrics(run, rows);
        break;
      default:
        break;
    }
    for (MetricRow& r : rows) r.point.value += 1;
    p->append_metrics(run, rows);
    if (round % 10 == 0) expect_true_sums(*p, run);
  }
  expect_true_sums(*p, run);
  p->truncate_metrics(run, 0);
  EXPECT_TRUE(p->metric_sums(run).empty());
  p->append_metrics(other, {{"nothing", {1, 0, std::nan("")}}});
  expect_true_sums(*p, other);
  EXPECT_EQ(p->metric_sums().size(), 1u) << "of all runs";
}

TEST(MetricSums, of_a_file_of_before_there_were_any) {
  TempDir dir;
  testing_files::make_version_1(dir / "old.tenon");
  testing_files::make_version_1(dir / "read.tenon");
  {
    auto p = Project::open(dir / "read.tenon", true);
    expect_true_sums(*p, p->run("old").id);
  }
  auto p = Project::open(dir / "old.tenon");
  const int64_t run = p->run("old").id;
  p->append_metrics(run, {{"loss", {3, 0.3, -7}}, {"lr", {3, 0.3, 1}}});
  expect_true_sums(*p, run);
  EXPECT_EQ(p->metric_sums(run).front().low, -7);
}

TEST(Metrics, what_a_run_took_reaches_as_far_as_its_points) {
  TempDir dir;
  auto p = Project::create(dir / "p.tenon", small_model(), small_recipe());
  const RunInfo run = p->new_run("", p->model(), p->recipe(), 10);
  p->append_metrics(run.id, {{"loss", {1, 0.25, 3}}, {"loss", {2, 0.5, 2}}});
  EXPECT_EQ(p->run(run.id).steps, 2);
  EXPECT_EQ(p->run(run.id).seconds, 0.5) << "a run that is killed now took so long";
  p->append_metrics(run.id, {{"loss", {2, 0, 2}}});
  EXPECT_EQ(p->run(run.id).seconds, 0.5) << "points that know no time";
}

TEST(MetricSums, are_kept_once_they_were_worked_out) {
  TempDir dir;
  testing_files::make_version_1(dir / "old.tenon");
  { EXPECT_EQ(Project::open(dir / "old.tenon")->metric_sums().size(), 1u); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((dir / "old.tenon").c_str(), &db), SQLITE_OK);
  int rows = 0;
  sqlite3_exec(
      db, "SELECT count(*) FROM series_sums",
      [](void* out, int, char** v, char**) { return *static_cast<int*>(out) = std::atoi(v[0]), 0; }, &rows, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(rows, 1);
}

TEST(Checkpoints, of_every_run_are_those_of_each) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  for (int r = 0; r < 3; ++r) {
    const int64_t run = p->new_run("", p->model(), p->recipe(), 10).id;
    for (int64_t step : {5, 2})
      if (r != 1) p->save_checkpoint(run, {step + r, {}, {{"step", step + r}}});
  }
  std::vector<std::pair<int64_t, int64_t>> all, each;
  for (const CheckpointInfo& c : p->all_checkpoints()) all.emplace_back(c.run, c.step);
  for (const RunInfo& r : p->runs())
    for (const CheckpointInfo& c : p->checkpoints(r.id)) each.emplace_back(c.run, c.step);
  EXPECT_EQ(all, each);
  EXPECT_EQ(all.size(), 4u);
}

}  // namespace
}  // namespace tenon::projects
