// Surgery while it trains, in the window: the model is edited in the builder and given to the run.
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <cmath>

#include "projects/time_travel.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_model.h"
#include "views/frame/table_list.h"
#include "views/training/branch_form_view.h"
#include "views/training/training_model.h"

namespace tenon::views {
namespace {

class Surgeries : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
  }
  /// A run that does not end by itself; its epochs are long, so that the window is not read anew all the time.
  void begin() {
    bench_->train({.set = {{"epochs", "1000"},
                           {"data.samples", "200000"},
                           {"data.batch_size", "100"},
                           {"checkpoint_every", "200"},
                           {"optimizer.lr", "0.0001"},
                           {"eval_every", "0"}}});
  }
  /// Another width of the first Linear, as a person gives it: chosen in the builder, typed in its inspector.
  void widen(const QString& to) {
    window_->show_view("builder");
    settle();
    bench_->select(Selection::module("layers.0", "test"));
    bench_->ask("view.details");
    settle();
    auto* field = window_->findChild<QWidget*>("inspector.out_features");
    ASSERT_NE(field, nullptr);
    auto* line = qobject_cast<QLineEdit*>(field);
    if (!line) line = field->findChild<QLineEdit*>();
    ASSERT_NE(line, nullptr);
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, to);
    key(line, Qt::Key_Return);
    settle();
    until([&] { return !bench_->shown() || bench_->contents().has_another_model(*bench_->shown()); });
  }
  BranchForm* give() {
    window_->show_view("builder");
    settle();
    EXPECT_TRUE(part<QToolButton>("builder.give")->isVisible());
    press("builder.give");
    settle();
    return window_->findChild<BranchForm*>();
  }
  double loss_of(int64_t run, int64_t step) {
    for (const projects::MetricPoint& p : bench_->project()->metric(run, "loss"))
      if (p.step == step) return p.value;
    ADD_FAILURE() << "no loss of step " << step;
    return 0;
  }
};

TEST_F(Surgeries, a_layer_is_widened_while_it_trains) {
  begin();
  until([&] { return bench_->training() && bench_->status().step > 30; });
  const int64_t parent = bench_->shown_run();
  const std::string parent_name = bench_->shown()->name;
  EXPECT_FALSE(part<QToolButton>("builder.give")->isVisible()) << "it has this model";
  widen("80");
  BranchForm* form = give();
  ASSERT_NE(form, nullptr);
  EXPECT_TRUE(form->findChild<QCheckBox*>("branch.model")->isChecked());
  auto* table = form->findChild<TableList*>("branch.surgery");
  until([&] { return table->shown_rows() > 0; });
  EXPECT_EQ(bench_->status().state, projects::RunStatus::State::paused) << "it stands at a step meanwhile";
  const int64_t at = bench_->status().step;
  EXPECT_EQ(form->findChild<QSpinBox*>("branch.step")->value(), at);
  EXPECT_EQ(table->table().rows.at(0).cells.at(0).text, "layers.0.weight");
  EXPECT_EQ(table->table().rows.at(0).cells.at(2).text, "[64, 2] → [80, 2]");
  EXPECT_TRUE(form->findChild<QLabel*>("branch.kept")->text().contains("the function is kept"));
  EXPECT_TRUE(form->findChild<QLabel*>("branch.said")->text().contains("64 → 80"));
  auto* go = form->findChild<QPushButton*>("branch.train");
  ASSERT_TRUE(go->isEnabled());
  EXPECT_TRUE(go->text().startsWith("Stop the run")) << go->text().toStdString();
  click(go, go->rect().center());
  until([&] { return bench_->shown_run() != parent && bench_->training() && bench_->status().step > at + 5; });
  bench_->stop();
  until([&] { return !bench_->training(); });
  settle();
  const projects::RunInfo child = *bench_->shown();
  EXPECT_EQ(child.branch.run, parent);
  EXPECT_EQ(child.branch.step, at);
  EXPECT_EQ(bench_->contents().run(parent)->steps, at);
  // The run goes on from there: one step of it has the loss that the branch had.
  bench_->train({.resume = parent_name, .max_steps = at + 1});
  until([&] { return !bench_->training() && bench_->contents().run(parent)->steps == at + 1; });
  settle();
  const double was = loss_of(parent, at + 1), is = loss_of(child.id, at + 1);
  EXPECT_GT(was, 0.01) << "it has not learnt all there is";
  EXPECT_NEAR(is, was, 1e-6);
  // Time travel crosses it, bit for bit.
  projects::Project& p = *bench_->project();
  EXPECT_EQ(projects::digest_at(p, child.id, at - 1), projects::digest_at(p, parent, at - 1));
  EXPECT_EQ(projects::digest_at(p, child.id, at + 3, 1), projects::digest_at(p, child.id, at + 3, 2));
  // The edit stands in the curves and in the details of the run.
  bench_->select(Selection::run(child.id, "test"));
  until([&] { return bench_->shown_run() == child.id && !bench_->training_model.changes().empty(); });
  EXPECT_EQ(bench_->training_model.changes().at(0).step, at);
  EXPECT_TRUE(QString::fromStdString(bench_->training_model.changes().at(0).text).contains("out_features 64 → 80"));
}

TEST_F(Surgeries, a_form_that_is_left_lets_the_run_go_on) {
  begin();
  until([&] { return bench_->training() && bench_->status().step > 10; });
  widen("70");
  BranchForm* form = give();
  ASSERT_NE(form, nullptr);
  auto* table = form->findChild<TableList*>("branch.surgery");
  until([&] { return table->shown_rows() > 0; });
  const int64_t at = bench_->status().step;
  key(form, Qt::Key_Escape);
  until([&] { return bench_->status().step > at + 5; });
  EXPECT_EQ(bench_->contents().runs.size(), 1u);
  bench_->stop();
  until([&] { return !bench_->training(); });
}

TEST_F(Surgeries, the_switch_is_there_only_where_the_model_is_another) {
  train(40);
  ASSERT_TRUE(window_->commands().run("run.branch"));
  settle();
  EXPECT_EQ(window_->findChild<QCheckBox*>("branch.model"), nullptr);
  key(window_->findChild<BranchForm*>(), Qt::Key_Escape);
  settle();
  widen("96");
  ASSERT_TRUE(window_->commands().run("run.branch"));
  settle();
  auto* form = window_->findChild<BranchForm*>();
  auto* box = form->findChild<QCheckBox*>("branch.model");
  ASSERT_NE(box, nullptr);
  EXPECT_FALSE(box->isChecked());
  EXPECT_FALSE(form->findChild<TableList*>("branch.surgery")->isVisible());
  click(box, {8, box->height() / 2});
  until([&] { return form->findChild<TableList*>("branch.surgery")->shown_rows() > 0; });
  // At its last step the run has nothing left: from an earlier one the branch goes on.
  auto* step = form->findChild<QSpinBox*>("branch.step");
  step->setFocus();
  step->selectAll();
  QTest::keyClicks(step, "20");
  key(step, Qt::Key_Return);
  auto* go = form->findChild<QPushButton*>("branch.train");
  until([&] { return go->isEnabled() && form->findChild<QLabel*>("branch.kept")->text().contains("kept"); });
  const int64_t parent = bench_->shown_run();
  click(go, go->rect().center());
  until([&] { return bench_->shown_run() != parent && !bench_->training(); });
  settle();
  EXPECT_EQ(bench_->shown()->branch.step, 20);
  EXPECT_EQ(bench_->shown()->model.find("layers.0")->attrs, bench_->contents().model.find("layers.0")->attrs);
}

TEST_F(Surgeries, the_builders_bar_fits_a_small_window) {
  begin();
  until([&] { return bench_->training() && bench_->status().step > 30; });
  widen("80");
  window_->resize(1280, 720);
  settle();
  ASSERT_TRUE(part<QToolButton>("builder.give")->isVisible());
  QWidget* view = window_->view("builder");
  EXPECT_LE(canvas("builder")->width(), view->width()) << "nothing is scrolled to";
  bench_->stop();
  until([&] { return !bench_->training(); });
}

}  // namespace
}  // namespace tenon::views
