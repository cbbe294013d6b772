// The distributions of a run by mouse and keys: read once they are seen, chosen, gone back from, cancelled.
#include <gtest/gtest.h>

#include <QApplication>
#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <atomic>

#include "projects/distributions.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/distributions/distributions_model.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class DistributionsPage : public testing::WindowTest {
 protected:
  DistributionsModel& model() { return bench_->model<DistributionsModel>(); }
  View* page() { return window_->view("distributions"); }
  TableList* list() { return window_->findChild<TableList*>("distributions.parameters"); }
  void show() {
    ASSERT_TRUE(window_->commands().run("view.distributions"));
    ASSERT_TRUE(page()->isVisible());
  }
  void show_and_read() {
    show();
    until([&] { return whole(); });
    settle();
  }
  bool whole() {
    const auto& d = model().distributions();
    return d && d->id == bench_->shown_run() && d->points.size() == d->wanted;
  }
  void trained(int steps = 40) {
    open_spirals();
    window_->resize(1400, 900);
    train(steps, {{"checkpoint_every", "10"}});
  }
  /// The row of the list that is marked.
  std::string marked() {
    const auto rows = list()->selectionModel()->selectedRows();
    return rows.size() == 1 ? rows.front().data().toString().toStdString() : "";
  }
  void click_row(const std::string& parameter) {
    for (int i = 0; i < list()->model()->rowCount(); ++i) {
      const QModelIndex at = list()->model()->index(i, 0);
      if (at.data().toString().toStdString() == parameter)
        return click(list()->viewport(), list()->visualRect(at).center());
    }
    FAIL() << "no row " << parameter;
  }
  std::string sentence() {
    for (QLabel* l : page()->findChildren<QLabel*>())
      if (l->isVisible() && l->wordWrap()) return l->text().toStdString();
    return {};
  }
  void press_empty() {
    for (QPushButton* b : page()->findChildren<QPushButton*>())
      if (b->isVisible()) return click(b, b->rect().center());
    FAIL() << "no button under: " << sentence();
  }
  /// Keeps the queue of long work busy until let go.
  void hold() {
    held_ = true;
    for (int i = 0; i < Bench::kWorkers; ++i)
      bench_->jobs.start(
          QString("hold %1").arg(i), "Hold",
          [this](const Jobs::Report&, const std::atomic<bool>&) {
            while (held_) QThread::msleep(2);
          },
          [] {}, {}, true);
  }
  void TearDown() override {
    held_ = false;
    WindowTest::TearDown();
  }
  std::atomic<bool> held_{false};
};

TEST_F(DistributionsPage, from_a_parameter_to_the_step_that_moved_it) {
  trained();
  EXPECT_EQ(model().distributions(), nullptr) << "nothing is read while nobody looks";
  show_and_read();
  const auto& shown = *model().distributions();
  const projects::Distributions d = projects::distributions(*bench_->project(), bench_->shown_run());
  ASSERT_EQ(shown.points.size(), d.points.size());
  ASSERT_EQ(d.points.size(), 5u);
  for (size_t p = 0; p < d.points.size(); ++p)
    for (size_t i = 0; i < d.parameters.size(); ++i) {
      EXPECT_EQ(shown.points[p].parameters[i].weight.quantiles, d.points[p].parameters[i].weight.quantiles);
      EXPECT_EQ(shown.points[p].parameters[i].gradient.norm, d.points[p].parameters[i].gradient.norm);
      EXPECT_EQ(shown.points[p].parameters[i].update.mean, d.points[p].parameters[i].update.mean);
    }
  ASSERT_EQ(list()->shown_rows(), 6);
  EXPECT_EQ(marked(), "layers.0.weight");

  // A row, then the keys.
  click_row("layers.2.weight");
  settle();
  EXPECT_EQ(model().chosen(), "layers.2.weight");
  EXPECT_EQ(to_text(bench_->bus.current()), "module:layers.2");
  key(list(), Qt::Key_Down);
  settle();
  EXPECT_EQ(model().chosen(), "layers.2.bias") << "of the same module";
  EXPECT_EQ(marked(), "layers.2.bias");

  // A point of the gradients' chart is a step.
  SceneCanvas* c = canvas("distributions");
  const QPoint plot = place(c, {DistributionsModel::plot, 1});
  const int64_t step = d.points[2].step;
  click(c, QPoint(static_cast<int>(model().axis().to_px(static_cast<double>(step))), plot.y()));
  settle();
  EXPECT_EQ(to_text(bench_->bus.current()), "step:" + std::to_string(step));
  ASSERT_TRUE(static_cast<bool>(bench_->links()));
  EXPECT_EQ(bench_->links().record()->step, step);

  // With a step loaded the parameter is its tensor there.
  click_row("layers.4.weight");
  settle();
  ASSERT_EQ(bench_->bus.current().kind, Selection::Kind::tensor);
  const auto& tensors = bench_->links().record()->tensors;
  EXPECT_EQ(tensors[static_cast<size_t>(bench_->bus.current().id)].name, "layers.4.weight");
  c->setFocus();
  key(c, Qt::Key_Up);
  settle();
  EXPECT_EQ(tensors[static_cast<size_t>(bench_->bus.current().id)].name, "layers.2.bias");
  key(c, Qt::Key_Right);
  settle();
  EXPECT_EQ(to_text(bench_->bus.current()), "step:" + std::to_string(d.points[3].step));
}

TEST_F(DistributionsPage, what_is_chosen_elsewhere_is_marked) {
  trained();
  load_step(20);
  show_and_read();
  // The gradient of a parameter, among the tensors of the step.
  ASSERT_TRUE(window_->commands().run("view.tensor"));
  settle();
  auto* tensors = window_->findChild<TableList*>("tensor.list");
  const auto& record = *bench_->links().record();
  int64_t gradient = -1;
  for (size_t i = 0; i < record.tensors.size(); ++i)
    if (record.tensors[i].name == "grad of layers.4.bias") gradient = static_cast<int64_t>(i);
  ASSERT_GE(gradient, 0);
  for (int i = 0; i < tensors->shown_rows(); ++i)
    if (tensors->shown().rows[static_cast<size_t>(i)].selection.same(Selection::tensor(gradient))) {
      tensors->scrollTo(tensors->model()->index(i, 0));
      click(tensors->viewport(), tensors->visualRect(tensors->model()->index(i, 0)).center());
      break;
    }
  settle();
  ASSERT_EQ(bench_->bus.current().id, gradient);
  EXPECT_EQ(model().chosen(), "layers.4.bias");
  show();
  settle();
  EXPECT_EQ(marked(), "layers.4.bias");
  bench_->select(Selection::module("layers.2", "builder"));
  settle();
  EXPECT_EQ(marked(), "layers.2.weight");
  const auto table = page()->shown_table();
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.size(), 6u);
}

TEST_F(DistributionsPage, a_reading_is_cancelled_and_begun_again) {
  trained();
  hold();
  show();
  until([&] { return sentence().find("Distributions of") != std::string::npos; });
  press_empty();  // Cancel
  until([&] { return sentence().find("cancelled") != std::string::npos; });
  EXPECT_FALSE(bench_->jobs.has("distributions"));
  // It does not begin by itself again.
  ASSERT_TRUE(window_->commands().run("view.log"));
  show();
  QTest::qWait(50);
  EXPECT_FALSE(bench_->jobs.has("distributions"));
  press_empty();  // Read the distributions
  EXPECT_TRUE(bench_->jobs.has("distributions"));
  held_ = false;
  until([&] { return whole(); });
  settle();
  EXPECT_FALSE(page()->empty());
  // What was read stays while it is read again, and is kept where that is cancelled.
  const auto before = model().distributions();
  hold();
  press("distributions.again");
  press("wait.cancel");
  held_ = false;
  settle();
  EXPECT_EQ(model().distributions(), before);
  EXPECT_FALSE(page()->empty());
  press("distributions.again");
  until([&] { return model().distributions() != before && whole(); });
}

TEST_F(DistributionsPage, another_run_that_is_chosen_meanwhile_is_the_one_that_is_read) {
  trained();
  const int64_t first = bench_->shown_run();
  train(20, {{"checkpoint_every", "5"}, {"seed", "7"}});
  const int64_t second = bench_->shown_run();
  ASSERT_NE(first, second);
  hold();
  show();
  until([&] { return bench_->jobs.has("distributions"); });
  bench_->select(Selection::run(first, "test"));
  until([&] { return bench_->shown_run() == first; });
  held_ = false;
  until([&] { return whole(); });
  settle();
  EXPECT_EQ(model().distributions()->id, first);
  EXPECT_EQ(model().distributions()->steps, 40);
  bench_->select(Selection::run(second, "test"));
  until([&] { return bench_->shown_run() == second && whole(); });
  EXPECT_EQ(model().distributions()->points.size(), 5u);
}

TEST_F(DistributionsPage, a_run_is_read_while_it_trains_and_once_more_at_its_end) {
  open_spirals();
  show();
  settle();
  EXPECT_NE(sentence().find("Train first"), std::string::npos) << sentence();
  bench_->train({.set = {{"epochs", "100000"}, {"checkpoint_every", "50"}}});
  until([&] { return bench_->training() && model().distributions() != nullptr; });
  until([&] { return bench_->status().step > 400; });
  until([&] {
    auto* again = window_->findChild<QToolButton*>("distributions.again");
    return again->isVisible() && again->isEnabled();
  });
  press("distributions.again");
  until([&] { return whole() && model().distributions()->points.size() > 3; });
  EXPECT_TRUE(bench_->training());
  ASSERT_TRUE(window_->commands().run("run.stop"));
  until([&] { return !bench_->training(); });
  until([&] { return whole() && model().distributions()->steps == bench_->shown_steps(); });
  settle();
  EXPECT_FALSE(model().distributions()->points.back().replayed);
}

TEST_F(DistributionsPage, says_why_there_is_nothing) {
  make_window();
  show();
  settle();
  EXPECT_NE(sentence().find("Open a project"), std::string::npos) << sentence();
  const auto& gone = testing::project_state("no data on disk");
  if (!gone.skipped.empty()) GTEST_SKIP() << gone.skipped;
  open(QString::fromStdString(testing::copy_of(gone, dir_.path().toStdString())));
  show();
  until([&] { return sentence().find(".csv") != std::string::npos; });
  EXPECT_TRUE(problems_.empty()) << "it is said where it happened: " << problems_.back();
  press_empty();  // Try again
  settle();
  EXPECT_NE(sentence().find(".csv"), std::string::npos) << sentence();
}

TEST_F(DistributionsPage, a_run_without_a_checkpoint_says_so) {
  trained(3);
  for (const auto& c : bench_->project()->checkpoints(bench_->shown_run())) bench_->project()->delete_checkpoint(c.id);
  show();
  until([&] { return sentence().find("has no checkpoint") != std::string::npos; });
}

}  // namespace
}  // namespace tenon::views
