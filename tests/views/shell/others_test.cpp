// A project that is open in two windows, or worked on from the command line beside one: each sees what the other does,
// and neither loses what the other wrote.
#include <gtest/gtest.h>

#include <QToolButton>
#include <nlohmann/json.hpp>

#include "projects/run_driver.h"
#include "tests/views/shell/window_fixture.h"
#include "views/runs/runs_model.h"

namespace tenon::views {
namespace {

using projects::Project;
using projects::RunDriver;
using projects::RunStatus;

class Others : public testing::WindowTest {
 protected:
  void SetUp() override {
    testing::WindowTest::SetUp();
    open_spirals();
    // Another process would do the same through connections of its own.
    other_ = Project::open(file_.toStdString());
  }
  void TearDown() override {
    if (driver_) driver_->stop();
    driver_.reset();
    other_.reset();
    testing::WindowTest::TearDown();
  }
  /// A run of the other one that goes on until it is stopped.
  void train_there() { driver_ = RunDriver::start(other_, {.set = {{"epochs", "100000"}, {"data.samples", "20000"}}}); }
  std::shared_ptr<Project> other_;
  std::unique_ptr<RunDriver> driver_;
};

TEST_F(Others, a_recipe_set_on_the_command_line_is_seen_and_survives_the_next_edit) {
  Recipe theirs = Recipe::from_json(other_->recipe());
  theirs.set("epochs", "77");
  other_->set_recipe(theirs.to_json());
  until([this] { return bench_->recipe().integer("epochs") == 77; });
  // Both at once: different keys, so both stand.
  theirs.set("seed", "5");
  other_->set_recipe(theirs.to_json());
  Recipe mine = bench_->recipe();
  mine.set("data.batch_size", "17");
  bench_->set_recipe(mine);
  until([this] { return bench_->recipe().integer("seed") == 5; });
  settle();
  const Recipe kept = Recipe::from_json(other_->recipe());
  EXPECT_EQ(kept.integer("data.batch_size"), 17);
  EXPECT_EQ(kept.integer("seed"), 5);
  EXPECT_EQ(kept.integer("epochs"), 77);
  EXPECT_EQ(bench_->builder.batch(), 17);
}

TEST_F(Others, a_model_edited_elsewhere_is_seen_and_can_be_taken_back) {
  const ModelSpec before = bench_->builder.spec();  // with a place for each layer
  ModelSpec theirs = before;
  theirs.layers[1].x += 40;
  other_->set_model(theirs);
  until([&] { return bench_->builder.spec() == theirs; });
  bench_->builder.undo();
  settle();
  EXPECT_EQ(other_->model(), before);
}

TEST_F(Others, a_model_edited_at_both_ends_keeps_both) {
  ModelSpec theirs = other_->model();
  theirs.layers[1].x += 40;
  bench_->builder.insert_layer("Dropout");
  const ModelSpec mine = bench_->builder.spec();
  other_->set_model(theirs);
  until([this] { return banner_shown(); });
  EXPECT_EQ(other_->model(), mine);
  EXPECT_TRUE(banner().contains("edited elsewhere")) << banner().toStdString();
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());
  EXPECT_EQ(bench_->builder.spec(), theirs);
  settle();
  EXPECT_EQ(other_->model(), theirs);
  EXPECT_FALSE(banner_shown());
  bench_->builder.undo();
  EXPECT_EQ(bench_->builder.spec(), mine);
  settle();
}

TEST_F(Others, a_run_trained_elsewhere_is_followed_to_its_end) {
  train_there();
  until([this] { return bench_->shown() && bench_->training_model.last_step() > 0; });
  key(canvas("training"), Qt::Key_W);
  const Axis zoomed = bench_->training_model.axis();
  EXPECT_FALSE(zoomed.fitted());
  const int64_t first = bench_->training_model.last_step();
  until([&] { return bench_->training_model.last_step() > first; });
  EXPECT_EQ(bench_->training_model.axis().lo, zoomed.lo) << "what is looked at stays";
  EXPECT_EQ(bench_->training_model.axis().hi, zoomed.hi);
  EXPECT_EQ(bench_->shown()->status, "running");
  driver_->stop();
  driver_.reset();
  until([this] { return bench_->shown()->status == "stopped"; });
  settle();
  EXPECT_EQ(bench_->training_model.last_step(), other_->run(bench_->shown_run()).steps);
  // It is a run as any other here.
  load_step(first);
  EXPECT_TRUE(static_cast<bool>(bench_->links()));
  other_->delete_runs({bench_->shown_run()});
  until([this] { return !bench_->shown(); });
  EXPECT_EQ(bench_->training_model.last_step(), 0);
}

TEST_F(Others, a_second_run_at_the_same_time_is_asked_for) {
  Recipe longer = bench_->recipe();
  longer.set("epochs", "100000");
  bench_->set_recipe(longer);
  settle();
  train_there();
  until([this] { return !bench_->contents().runs.empty() && bench_->contents().runs.back().status == "running"; });
  ASSERT_TRUE(window_->commands().run("run.train"));
  settle();
  EXPECT_FALSE(bench_->training());
  EXPECT_TRUE(banner().contains("trains in another window")) << banner().toStdString();
  ASSERT_NE(banner_action(), nullptr);
  EXPECT_EQ(banner_action()->text(), "Train beside it");
  click(banner_action(), banner_action()->rect().center());
  until([this] { return bench_->training() && bench_->status().step > 0; });
  EXPECT_TRUE(projects::is_active(driver_->status().state));
  EXPECT_FALSE(banner_shown());
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
  EXPECT_EQ(other_->runs().size(), 2u);
  // Not while nobody else trains.
  driver_->stop();
  driver_.reset();
  until([this] { return bench_->contents().runs.front().status == "stopped"; });
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([this] { return bench_->training(); });
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
}

TEST_F(Others, another_window_is_a_process_of_its_own_that_follows) {
  qputenv("TENON_SECOND_WINDOW", "1");
  Recipe recipe = bench_->recipe();
  recipe.set("epochs", "100000");
  recipe.set("data.samples", "20000");
  bench_->set_recipe(recipe);
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([this] { return bench_->status().step > 0; });
  choose_in_menu("File", "file.window");
  qunsetenv("TENON_SECOND_WINDOW");
  until([this] { return bench_->shown() && !bench_->shown()->note.empty(); });
  EXPECT_EQ(bench_->shown()->note.rfind("step ", 0), 0u) << bench_->shown()->note;
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
}

}  // namespace
}  // namespace tenon::views
