// The curves' axis and charts, by mouse and keys, and what the project keeps of them.
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QTest>

#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/training/charts_form_view.h"

namespace tenon::views {
namespace {

class Curves : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(40, {{"data.batch_size", "300"}});
    ASSERT_TRUE(window_->commands().run("layout.train"));
    ASSERT_TRUE(window_->commands().run("view.training"));
    settle();
  }
  TrainingModel& model() { return bench_->training_model; }
  QComboBox* over() { return window_->findChild<QComboBox*>("training.over"); }
};

TEST_F(Curves, stand_over_what_is_chosen_and_a_click_is_a_step) {
  const auto* run = bench_->shown();
  ASSERT_NE(run, nullptr);
  EXPECT_GT(run->epoch.steps, 1);
  for (Over o : {Over::epoch, Over::samples, Over::time, Over::step}) {
    over()->setFocus();
    key(over(), Qt::Key_Home);
    for (int i = 0; i < static_cast<int>(o); ++i) key(over(), Qt::Key_Down);
    settle();
    EXPECT_EQ(model().over(), o);
    EXPECT_EQ(model().shown_over(), o) << "a run tells how it counts";
    SceneCanvas* c = canvas("training");
    int64_t last = 0;  // the plot that was drawn last: the axis lies there
    for (const auto& t : c->model().last().targets())
      if (t.hit.kind == TrainingModel::plot) last = std::max(last, t.hit.id);
    const QPoint plot = place(c, {TrainingModel::plot, last});
    const int64_t under = model().step_at(model().axis().to_value(static_cast<float>(plot.x())));
    EXPECT_GE(under, 1) << over_name(o);
    click(c, plot);
    settle();
    EXPECT_TRUE(bench_->bus.current().same(Selection::step(under))) << over_name(o) << " " << under;
  }
  SceneCanvas* c = canvas("training");
  c->setFocus();
  key(c, Qt::Key_X);
  settle();
  EXPECT_EQ(model().over(), Over::epoch);
  EXPECT_EQ(over()->currentIndex(), 1) << "the list follows the key";
}

TEST_F(Curves, metrics_are_put_together_hidden_and_put_back) {
  press("training.charts");
  settle();
  auto* form = window_->findChild<ChartsForm*>();
  ASSERT_NE(form, nullptr);
  auto* list = form->findChild<QComboBox*>("charts.of.lr");
  ASSERT_NE(list, nullptr);
  list->setFocus();
  list->lineEdit()->selectAll();
  QTest::keyClicks(list->lineEdit(), "loss");
  key(list->lineEdit(), Qt::Key_Return);
  settle();
  EXPECT_EQ(model().charts().of("lr"), "loss");
  auto* shown = form->findChild<QCheckBox*>("charts.shown.grad_norm");
  ASSERT_NE(shown, nullptr);
  shown->setFocus();
  key(shown, Qt::Key_Space);
  settle();
  const auto groups = model().groups();
  EXPECT_EQ(std::count(groups.begin(), groups.end(), "lr"), 0);
  EXPECT_EQ(std::count(groups.begin(), groups.end(), "grad_norm"), 0);
  EXPECT_FALSE(model().charts().is_default());
  // The project keeps it.
  key(form, Qt::Key_Escape);
  settle();
  model().set_over(Over::time);
  model().set_smoothing(0.25);
  const auto kept = model().state();
  close_window();
  make_window();
  EXPECT_NE(model().state(), kept);
  open(file_);
  settle();
  EXPECT_EQ(model().state(), kept);
  EXPECT_EQ(over()->currentIndex(), static_cast<int>(Over::time));
  // And there is a way back.
  ASSERT_TRUE(window_->commands().run("run.charts"));
  settle();
  form = window_->findChild<ChartsForm*>();
  ASSERT_NE(form, nullptr);
  auto* usual = form->findChild<QPushButton*>("charts.reset");
  click(usual, usual->rect().center());
  settle();
  EXPECT_TRUE(model().charts().is_default());
  EXPECT_FALSE(usual->isEnabled());
  form->close();
  settle();
}

TEST_F(Curves, the_baseline_stays_with_the_project_until_its_run_is_deleted) {
  const int64_t first = bench_->shown_run();
  ASSERT_TRUE(window_->commands().run("run.baseline"));
  settle();
  train(30, {{"data.batch_size", "300"}});
  const int64_t second = bench_->shown_run();
  ASSERT_NE(first, second);
  close_window();
  make_window();
  open(file_);
  until([this] { return !model().baseline().series.empty(); });
  settle();
  EXPECT_EQ(model().baseline().id, first);
  EXPECT_EQ(model().baseline().series.at("loss").size(), 40u);
  // Picked as well, it is there twice; it goes with its run.
  bench_->pick({first});
  settle();
  ASSERT_EQ(model().compared().size(), 1u);
  EXPECT_EQ(model().compared()[0].series.at("loss").size(), 40u);
  EXPECT_EQ(model().baseline().series.at("loss").size(), 40u);
  bench_->select(Selection::run(first, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("run.delete"));
  settle();
  until([this] { return model().baseline().id == 0; });
}

TEST_F(Curves, another_project_has_its_own_charts) {
  Charts charts = model().charts();
  charts.hide("lr", true);
  model().set_charts(charts);
  open(QString::fromStdString(testing::copy_of(testing::project_state("trained"), dir_.path().toStdString())));
  EXPECT_TRUE(model().charts().is_default());
}

/// A training run is no job: the bar counts those alone, and says of the run what it does.
TEST_F(Curves, the_bar_says_what_the_run_does_and_counts_jobs_alone) {
  auto* jobs = window_->findChild<QAbstractButton*>("status.jobs");
  auto* state = window_->findChild<QLabel*>("status.state");
  ASSERT_TRUE(jobs && state);
  Recipe recipe = bench_->recipe();
  recipe.set("epochs", "100000");
  bench_->set_recipe(recipe);
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([&] { return state->text().contains("training"); });
  until([&] { return jobs->text() == "Jobs"; });
  ASSERT_TRUE(window_->commands().run("run.pause"));
  until([&] { return state->text().contains("paused"); });
  EXPECT_FALSE(state->text().contains("training"));
  EXPECT_EQ(jobs->text().toStdString(), "Jobs");
  ASSERT_TRUE(window_->commands().run("run.stop"));
  until([&] { return !bench_->training(); });
}

}  // namespace
}  // namespace tenon::views
