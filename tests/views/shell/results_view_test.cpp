// Where a trained model errs, by mouse and keys: evaluated, a cell of the confusion, its samples, inside one of them.
#include <gtest/gtest.h>

#include <QTest>
#include <QToolButton>

#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/results/results_model.h"

namespace tenon::views {
namespace {

class ResultsPage : public testing::WindowTest {
 protected:
  ResultsModel& model() { return bench_->model<ResultsModel>(); }
  TableList* samples() { return window_->findChild<TableList*>("results.samples"); }
};

TEST_F(ResultsPage, from_the_evaluation_to_the_tensors_of_the_worst_sample) {
  open_spirals();
  ASSERT_TRUE(window_->commands().run("view.results"));
  settle();
  EXPECT_EQ(model().results(), nullptr);
  train(40);
  ASSERT_TRUE(window_->commands().run("run.evaluate_last"));
  until([&] { return model().results() != nullptr; });
  settle();
  EXPECT_TRUE(banner().contains("accuracy")) << banner().toStdString();
  ASSERT_TRUE(window_->commands().run("view.builder"));
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());  // "Where it errs"
  settle();
  ASSERT_TRUE(window_->view("results")->isVisible());
  const auto& r = *model().results();
  const size_t all = r.predictions.size();
  EXPECT_EQ(static_cast<size_t>(samples()->shown_rows()), std::min(all, ResultsModel::kListed));

  // A cell of the confusion leaves its samples.
  ASSERT_GT(r.count(0, 1), 0) << "40 steps are too few to be right everywhere";
  SceneCanvas* c = canvas("results");
  click(c, place(c, {ResultsModel::cell, 1}));
  settle();
  EXPECT_EQ(samples()->shown_rows(), r.count(0, 1));
  c->setFocus();
  key(c, Qt::Key_Down);
  settle();
  ASSERT_TRUE(model().cell_chosen());
  EXPECT_EQ(samples()->shown_rows(), r.count(1, 1));
  key(c, Qt::Key_Escape);
  settle();
  EXPECT_FALSE(model().cell_chosen());

  // The worst: chosen, described, looked into.
  const int64_t worst = r.predictions[r.worst_first().front()].row;
  click(samples()->viewport(), samples()->visualRect(samples()->model()->index(0, 0)).center());
  settle();
  EXPECT_EQ(to_text(bench_->bus.current()), "sample:" + std::to_string(worst));
  auto* inside = window_->findChild<QToolButton*>("results.inside");
  ASSERT_TRUE(inside->isEnabled());
  click(inside, inside->rect().center());
  until([&] { return bench_->links() && bench_->links().record()->sample == worst; });
  settle();
  EXPECT_TRUE(window_->view("tensor")->isVisible());
  EXPECT_NEAR(bench_->links().record()->loss, r.predictions[static_cast<size_t>(worst)].loss, 1e-5);
  // The step itself is another thing than the sample at it.
  bench_->select(Selection::step(40, "test"));
  until([&] { return bench_->links() && bench_->links().record()->sample < 0; });
  settle();
}

TEST_F(ResultsPage, they_go_with_their_project) {
  open_spirals();
  train(5);
  window_->commands().run("run.evaluate_last");
  until([&] { return model().results() != nullptr; });
  bench_->select(Selection::sample(0, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  EXPECT_EQ(model().results(), nullptr);
  EXPECT_EQ(bench_->results(), nullptr);
  bench_->select(Selection::sample(0, "test"));  // of nothing
  bench_->look_into_sample(0);
  settle();
}

}  // namespace
}  // namespace tenon::views
