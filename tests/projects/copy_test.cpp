#include "projects/copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

TEST(Copy, has_everything_and_is_a_project_of_its_own) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  const RunInfo run = p->new_run("one", p->model(), p->recipe(), 10);
  p->append_metrics(run.id, {{"loss", {1, 0.1, 2.5}}, {"loss", {2, 0.2, 1.5}}});
  p->set_run_status(run.id, "stopped");
  int64_t last = 0, whole = 0;
  const int64_t bytes = copy_project(dir / "a.tenon", dir / "b.tenon", false, [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    whole = total;
    return true;
  });
  EXPECT_EQ(last, whole);
  EXPECT_EQ(bytes, whole);
  // What is changed in the one is not changed in the other.
  p->set_run_status(run.id, "failed", "later");
  auto copy = Project::open(dir / "b.tenon");
  EXPECT_EQ(copy->model(), small_model());
  EXPECT_EQ(copy->run("one").status, "stopped");
  ASSERT_EQ(copy->metric(run.id, "loss").size(), 2u);
  EXPECT_EQ(copy->metric(run.id, "loss")[1].value, 1.5);
  copy->rename_run(run.id, "two");
  EXPECT_EQ(p->run(run.id).name, "one");
  copy.reset();
  p.reset();
  EXPECT_EQ(dir.names(), (std::vector<std::string>{"a.tenon", "b.tenon"})) << "one file each";
}

TEST(Copy, never_replaces_what_it_was_not_told_to) {
  TempDir dir;
  auto p = Project::create(dir / "a.tenon", small_model(), small_recipe());
  std::ofstream(dir / "b.tenon") << "something else";
  EXPECT_THROW(copy_project(dir / "a.tenon", dir / "b.tenon"), Error);
  EXPECT_EQ(testing_files::read(dir / "b.tenon"), "something else");
  // Itself, a folder, and a project that is open are never replaced.
  EXPECT_THROW(copy_project(dir / "a.tenon", dir / "a.tenon", true), Error);
  EXPECT_THROW(copy_project(dir / "a.tenon", dir.path(), true), Error);
  auto other = Project::create(dir / "c.tenon", small_model(), small_recipe());
  other->new_run("kept", other->model(), other->recipe(), 1);
  EXPECT_THROW(copy_project(dir / "a.tenon", dir / "c.tenon", true), Error);
  EXPECT_EQ(other->run("kept").name, "kept");
  copy_project(dir / "a.tenon", dir / "b.tenon", true);
  EXPECT_EQ(Project::open(dir / "b.tenon", true)->model(), small_model());
  // One that was only looked at leaves an empty log; it may be replaced, and the log does not stay for the new file.
  other.reset();
  { auto looked = Project::open(dir / "c.tenon", true)->runs(); }
  copy_project(dir / "a.tenon", dir / "c.tenon", true);
  EXPECT_TRUE(Project::open(dir / "c.tenon")->runs().empty());
}

/// Files that begin as the copy is named.
int of_copy(const TempDir& dir) {
  int n = 0;
  for (const std::string& name : dir.names()) n += name.starts_with("b.tenon");
  return n;
}

TEST(Copy, leaves_nothing_where_it_is_cancelled_or_fails) {
  TempDir dir;
  { auto p = Project::create(dir / "a.tenon", small_model(), small_recipe()); }
  EXPECT_THROW(copy_project(dir / "a.tenon", dir / "b.tenon", false, [](int64_t, int64_t) { return false; }), Error);
  EXPECT_EQ(of_copy(dir), 0);
  std::ofstream(dir / "no.tenon") << "this is no project at all, but long enough to be looked at as if it were one";
  EXPECT_THROW(copy_project(dir / "no.tenon", dir / "b.tenon"), Error);
  EXPECT_THROW(copy_project(dir / "gone.tenon", dir / "b.tenon"), Error);
  try {
    copy_project(dir / "a.tenon", dir / "folder/that/is/not/b.tenon");
    ADD_FAILURE() << "there is no such folder";
  } catch (const Error& e) {
    EXPECT_EQ(e.message().find(".new-"), std::string::npos) << "told of the file that was asked for: " << e.message();
  }
  EXPECT_EQ(of_copy(dir), 0);
}

TEST(Copy, is_whole_while_a_run_trains_and_the_run_goes_on_from_it) {
  TempDir dir;
  const Beginning b =
      begin(find_template("spirals"), "", dir / "a.tenon", {{"epochs", "100000"}, {"checkpoint_every", "20"}});
  auto p = Project::create(dir / "a.tenon", b.model, b.recipe.to_json());
  auto driver = RunDriver::start(p, {});
  const int64_t run = driver->status().run;
  for (int i = 0; i < 4; ++i) {
    // Checkpoints are written behind the training: a step that was taken does not yet have its checkpoint in the file.
    while (driver->status().step < 60 * (i + 1) || p->checkpoints(run).empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::string to = dir / ("copy-" + std::to_string(i) + ".tenon");
    copy_project(dir / "a.tenon", to);
    auto copy = Project::open(to);
    ASSERT_EQ(copy->runs().size(), 1u);
    const RunInfo r = copy->runs()[0];
    EXPECT_EQ(r.status, "interrupted") << "nobody trains the copy's";
    ASSERT_FALSE(copy->checkpoints(r.id).empty());
    const auto points = copy->metric(r.id, "train_loss");
    for (size_t k = 1; k < points.size(); ++k) EXPECT_GT(points[k].step, points[k - 1].step);
  }
  driver->stop();
  driver->wait();
  // The copy's run goes on, and comes to the very state that the original passed through.
  auto copy = Project::open(dir / "copy-3.tenon");
  const int64_t there = copy->checkpoints(run).back().step;
  TrainOptions on;
  on.resume = copy->runs()[0].name;
  on.max_steps = there + 5;
  RunDriver::start(copy, on)->wait();
  EXPECT_EQ(digest_at(*copy, run, there + 5), digest_at(*p, run, there + 5));
}

}  // namespace
}  // namespace tenon::projects
