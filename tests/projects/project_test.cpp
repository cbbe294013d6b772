#include "projects/project.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/error.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

TEST(Project, keeps_model_recipe_and_window_state) {
  TempDir dir;
  {
    auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
    EXPECT_EQ(p->model(), small_model());
    EXPECT_EQ(p->recipe(), small_recipe());
    EXPECT_TRUE(p->window_state("docks").is_null());
    p->set_window_state("docks", {{"x", 3}});
    p->set_window_state("docks", {{"x", 4}});
    ModelSpec m = small_model();
    m.layers.front().x = 17.5;
    p->set_model(m);
    p->set_recipe({{"seed", 2}});
  }
  auto p = Project::open(dir / "a.tenon");
  EXPECT_EQ(p->model().layers.front().x, 17.5);
  EXPECT_EQ(p->recipe(), nlohmann::json({{"seed", 2}}));
  EXPECT_EQ(p->window_state("docks"), nlohmann::json({{"x", 4}}));
  EXPECT_FALSE(p->read_only());
}

TEST(Project, is_one_file_once_closed) {
  TempDir dir;
  { auto p = Project::create(dir / "a.tenon", small_model(), small_recipe()); }
  EXPECT_EQ(dir.names(), std::vector<std::string>{"a.tenon"});
  const std::string head = testing_files::read(dir / "a.tenon").substr(0, 100);
  EXPECT_EQ(head.substr(0, 15), "SQLite format 3");
  EXPECT_EQ(head.substr(68, 4), "Teno") << "application_id";
  EXPECT_EQ(head.substr(16, 2), std::string("\0\1", 2)) << "page size 64 KiB is written as 1";
}

TEST(Project, names_runs_and_finds_near_names) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  EXPECT_EQ(p->new_run("", p->model(), p->recipe(), 100).name, "small-01");
  EXPECT_EQ(p->new_run("", p->model(), p->recipe(), 100).name, "small-02");
  const RunInfo r = p->new_run("wide", p->model(), {{"lr", 0.5}}, 100);
  EXPECT_EQ(r.status, "running");
  EXPECT_EQ(r.recipe, nlohmann::json({{"lr", 0.5}}));
  EXPECT_THROW(p->new_run("wide", p->model(), p->recipe(), 1), Error);
  try {
    p->run("small-11");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::usage);
    EXPECT_NE(e.hint().find("small-01"), std::string::npos) << e.hint();
  }
  p->set_run_progress(r.id, 40, 1.5);
  p->set_run_status(r.id, "failed", "no luck");
  p->rename_run(r.id, "wider");
  const RunInfo again = p->run("wider");
  EXPECT_EQ(again.steps, 40);
  EXPECT_EQ(again.seconds, 1.5);
  EXPECT_EQ(again.error, "no luck");
  EXPECT_EQ(again.status, "failed");
}

TEST(Project, a_deleted_run_comes_back) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  const RunInfo r = p->new_run("one", p->model(), p->recipe(), 10);
  p->append_metrics(r.id, {{"loss", {1, 0.1, 2.5}}});
  p->delete_runs({r.id});
  EXPECT_TRUE(p->runs().empty());
  EXPECT_THROW(p->run("one"), Error);
  p->undelete_runs({r.id});
  EXPECT_EQ(p->run("one").id, r.id);
  EXPECT_EQ(p->metric(r.id, "loss").size(), 1u);
  p->delete_runs({r.id});
  p->new_run("one", p->model(), p->recipe(), 10);
  EXPECT_THROW(p->undelete_runs({r.id}), Error) << "its name is taken";
}

TEST(Project, keeps_what_a_person_says_of_a_run) {
  TempDir dir;
  {
    auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
    const int64_t run = p->new_run("r", small_model(), small_recipe(), 10).id;
    EXPECT_TRUE(p->run(run).note.empty() && p->run(run).tags.empty());
    p->describe_run(run, "first try\nsecond line", {" good ", "", "two words", "good"});
    EXPECT_THROW(p->describe_run(run + 1, "x", {}), Error);
    p->delete_runs({run});
    ASSERT_EQ(p->deleted_runs().size(), 1u);
    EXPECT_EQ(p->deleted_runs().front().name, "r");
    p->undelete_runs({run});
    EXPECT_TRUE(p->deleted_runs().empty());
  }
  auto p = Project::open(dir / "a.tenon", true);
  EXPECT_EQ(p->run("r").note, "first try\nsecond line");
  EXPECT_EQ(p->run("r").tags, (std::vector<std::string>{"good", "two words"}));
}

TEST(Project, keeps_every_metric_point_nan_and_infinity_too) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  const RunInfo r = p->new_run("", p->model(), p->recipe(), 10);
  std::vector<MetricRow> rows;
  for (int i = 1; i <= 5000; ++i) rows.push_back({"loss", {i, i * 0.5, 1.0 / i}});
  rows.push_back({"loss", {5001, 1, std::nan("")}});
  rows.push_back({"loss", {5002, 1, std::numeric_limits<double>::infinity()}});
  rows.push_back({"accuracy", {5000, 1, 0.25}});
  p->append_metrics(r.id, rows);
  const auto points = p->metric(r.id, "loss");
  ASSERT_EQ(points.size(), 5002u);
  EXPECT_EQ(points[2].value, 1.0 / 3);
  EXPECT_EQ(points[2].wall, 1.5);
  EXPECT_TRUE(std::isnan(points[5000].value));
  EXPECT_TRUE(std::isinf(points[5001].value));
  EXPECT_EQ(p->metric_names(r.id), (std::vector<std::string>{"accuracy", "loss"}));
  p->truncate_metrics(r.id, 10);
  EXPECT_EQ(p->metric(r.id, "loss").size(), 10u);
  EXPECT_TRUE(p->metric(r.id, "accuracy").empty());
  EXPECT_TRUE(p->metric(r.id, "no such").empty());
}

TEST(Project, artifacts_come_back_whole) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  const RunInfo r = p->new_run("", p->model(), p->recipe(), 10);
  std::string bytes(300000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  const int64_t a = p->add_artifact(r.id, 7, "trace", "step 7", bytes);
  const int64_t b = p->add_artifact(0, 0, "note", "idea", "");
  EXPECT_EQ(p->artifact(a), bytes);
  EXPECT_EQ(p->artifact(b), "");
  ASSERT_EQ(p->artifacts(r.id).size(), 1u);
  EXPECT_EQ(p->artifacts(r.id, "trace").front().bytes, 300000);
  EXPECT_EQ(p->artifacts(0, "note").front().id, b);
  EXPECT_EQ(p->artifacts().size(), 2u);
  EXPECT_THROW(p->artifact(99), Error);
}

TEST(Project, several_threads_write_and_read_at_once) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      const RunInfo r = p->new_run("run" + std::to_string(k), p->model(), p->recipe(), 10);
      for (int i = 1; i <= 50; ++i) {
        p->append_metrics(r.id, {{"loss", {i, 0, 1.0 * k}}});
        EXPECT_EQ(p->metric(r.id, "loss").size(), static_cast<size_t>(i));
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(p->runs().size(), 4u);
}

TEST(Project, two_processes_worth_of_connections_see_each_other) {
  TempDir dir;
  auto a = Project::create(dir / "a.tenon", small_model(), small_recipe());
  auto b = Project::open(dir / "a.tenon", true);
  const RunInfo r = a->new_run("seen", a->model(), a->recipe(), 10);
  EXPECT_EQ(b->run("seen").id, r.id);
  EXPECT_THROW(b->set_run_status(r.id, "stopped"), Error);
}

}  // namespace
}  // namespace tenon::projects
