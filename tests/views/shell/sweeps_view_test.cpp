// A sweep in the window, by mouse and keys: put together, begun, stopped, gone on with, looked at.
#include <gtest/gtest.h>

#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <thread>

#include "projects/sweep.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/sweeps/sweeps_model.h"

namespace tenon::views {
namespace {

class Sweeps : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    ASSERT_TRUE(window_->commands().run("run.sweep"));
    settle();
  }
  template <class W = QWidget>
  W* find(const QString& name) {
    auto* w = window_->view("sweeps")->findChild<W*>(name);
    EXPECT_NE(w, nullptr) << name.toStdString();
    return w;
  }
  void type(QLineEdit* line, const QString& text) {
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
    settle();
  }
  void press(QWidget* button) {
    ASSERT_TRUE(button && button->isVisible() && button->isEnabled());
    click(button, button->rect().center());
  }
  /// As the keys choose it: its first letters.
  void choose(const QString& name, const QString& word) {
    auto* list = find<QComboBox>(name);
    list->setFocus();
    QTest::keyClicks(list, word);
    settle();
    EXPECT_EQ(list->currentText(), word);
  }
  QString said() { return find<QLabel>("sweep.said")->text(); }
  SweepsModel& model() { return bench_->model<SweepsModel>(); }
  const projects::SweepInfo& sweep() { return bench_->contents().sweeps.back(); }
  void until_over() {
    until([this] { return !bench_->sweeping() && !bench_->training() && !bench_->files.has("train"); });
    settle();
  }
  QString cell(int row, int column) { return table()->model()->index(row, column).data().toString(); }
  TableList* table() { return find<TableList>("sweeps.table"); }
};

TEST_F(Sweeps, from_the_form_to_the_best_trial) {
  EXPECT_EQ(window_->view("sweeps")->findChild<QToolButton*>("sweeps.go")->isVisible(), false);
  type(find<QLineEdit>("sweep.range.0"), "0.0001,0.001,0.1");
  press(find("sweep.add_key"));
  settle();
  choose("sweep.key.1", "seed");
  type(find<QLineEdit>("sweep.range.1"), "1,2");
  choose("sweep.method", "grid");
  EXPECT_EQ(said(), "6 trials, each a run of the project");
  press(find("sweep.begin"));
  until([this] { return bench_->sweeping() != 0; });
  EXPECT_FALSE(find<QPushButton>("sweep.begin")->isEnabled()) << "one at a time";
  EXPECT_FALSE(window_->commands().action("run.train")->isEnabled());
  until_over();
  ASSERT_EQ(bench_->contents().sweeps.size(), 1u);
  ASSERT_EQ(bench_->contents().runs.size(), 6u);
  EXPECT_TRUE(problems_.empty()) << problems_.front();
  EXPECT_TRUE(window_->commands().action("run.train")->isEnabled());
  ASSERT_EQ(table()->shown_rows(), 6);
  for (int row = 0; row < 6; ++row) EXPECT_EQ(cell(row, 2), "finished");
  EXPECT_EQ(cell(0, 4), "0.0001");
  EXPECT_EQ(cell(5, 4), "0.1");
  EXPECT_TRUE(model().is_over());
  const auto* best = projects::best_trial(sweep(), projects::plan_of(sweep()));
  ASSERT_NE(best, nullptr);
  EXPECT_GE(best->number, 5) << "the largest rate learns the most in so short a time";

  // A row of the table, and a trial in the picture, are the run everywhere.
  const QRect r = table()->visualRect(table()->model()->index(1, 1));
  click(table()->viewport(), r.center());
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::run(sweep().trials[1].run)));
  EXPECT_EQ(bench_->shown_run(), sweep().trials[1].run);
  SceneCanvas* c = canvas("sweeps");
  click(c, place(c, {SweepsModel::trial, best->number}));
  settle();
  EXPECT_EQ(bench_->shown_run(), best->run);
  EXPECT_EQ(table()->currentIndex().row(), static_cast<int>(best->number) - 1);
  EXPECT_TRUE(c->model().last().overlaps().empty()) << c->model().last().overlaps().front();
  key(c, Qt::Key_Left);
  settle();
  EXPECT_EQ(bench_->shown_run(), sweep().trials[static_cast<size_t>(best->number) - 2].run);
}

TEST_F(Sweeps, what_is_wrong_is_said_before_it_begins) {
  type(find<QLineEdit>("sweep.range.0"), "log:0..1");
  EXPECT_TRUE(said().contains("begins above 0")) << said().toStdString();
  EXPECT_FALSE(find<QPushButton>("sweep.begin")->isEnabled());
  press(find("sweep.remove.0"));
  settle();
  EXPECT_TRUE(said().contains("Add a key"));
  press(find("sweep.add_key"));
  settle();
  EXPECT_TRUE(find<QPushButton>("sweep.begin")->isEnabled()) << said().toStdString();
  EXPECT_TRUE(bench_->contents().sweeps.empty());
}

TEST_F(Sweeps, stopped_in_a_trial_it_goes_on_with_that_trial) {
  Recipe recipe = bench_->recipe();
  recipe.set("epochs", "150");
  bench_->set_recipe(recipe);
  settle();
  type(find<QLineEdit>("sweep.range.0"), "0.01,0.02");
  choose("sweep.method", "grid");
  press(find("sweep.begin"));
  until([this] { return bench_->training() && bench_->status().step > 5; });
  EXPECT_FALSE(window_->commands().action("run.go_on")->isEnabled());
  press(find("sweeps.go"));
  until_over();
  ASSERT_EQ(sweep().trials.size(), 1u);
  EXPECT_EQ(sweep().trials[0].state, "open");
  EXPECT_EQ(bench_->contents().runs.at(0).status, "stopped");
  const int64_t run = sweep().trials[0].run;
  ASSERT_EQ(find<QToolButton>("sweeps.go")->text(), "Resume the sweep");

  // Also for a window that was closed in between; a run of a sweep that is gone on with is its trial again.
  bench_->close_project();
  settle();
  open(file_);
  ASSERT_TRUE(window_->commands().run("view.sweeps"));
  bench_->select(Selection::run(run, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("run.go_on"));
  until([this] { return bench_->sweeping() != 0; });
  until_over();
  ASSERT_EQ(sweep().trials.size(), 2u);
  EXPECT_EQ(sweep().trials[0].run, run);
  for (const auto& t : sweep().trials) EXPECT_EQ(t.state, "finished") << t.error;
  EXPECT_EQ(bench_->contents().runs.size(), 2u);
  EXPECT_FALSE(find<QToolButton>("sweeps.go")->isVisible());
}

TEST_F(Sweeps, trials_side_by_side_are_paused_stopped_and_gone_on_with_together) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core trains one trial at a time";
  Recipe recipe = bench_->recipe();
  recipe.set("epochs", "500");
  bench_->set_recipe(recipe);
  settle();
  type(find<QLineEdit>("sweep.range.0"), "0.01,0.02,0.03,0.04");
  choose("sweep.method", "grid");
  auto* together = find<QSpinBox>("sweep.side_by_side");
  ASSERT_NE(together, nullptr);
  together->setFocus();
  together->selectAll();
  QTest::keyClicks(together, "2");
  key(together, Qt::Key_Return);
  settle();
  press(find("sweep.begin"));
  auto at_work = [this] { return bench_->training() ? bench_->statuses().size() : 0; };
  auto all_are = [this](projects::RunStatus::State state) {
    for (const auto& s : bench_->statuses())
      if (s.state != state) return false;
    return true;
  };
  until([&] { return at_work() == 2 && bench_->statuses()[1].step > 5; });
  ASSERT_TRUE(window_->commands().run("run.pause"));
  until([&] { return all_are(projects::RunStatus::State::paused); });
  settle();
  ASSERT_EQ(at_work(), 2u) << "a paused sweep begins no further trial";
  const int64_t led = bench_->statuses()[0].run, beside = bench_->statuses()[1].run;
  EXPECT_NE(led, beside);
  // Both are seen at work, and neither can be deleted; the curves of the one beside grow while it is looked at.
  until([this] { return cell(0, 2) == "paused" && cell(1, 2) == "paused"; });
  bench_->delete_runs({led, beside});
  bench_->select(Selection::run(beside, "test"));
  settle();
  EXPECT_EQ(bench_->shown_run(), beside);
  EXPECT_FALSE(window_->commands().action("run.delete")->isEnabled());
  const int64_t seen = bench_->training_model.last_step();
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([&] { return bench_->training_model.last_step() > seen + 5; });
  press(find("sweeps.go"));
  until_over();
  ASSERT_EQ(sweep().trials.size(), 2u);
  for (const auto& t : sweep().trials) {
    EXPECT_EQ(t.state, "open");
    EXPECT_EQ(bench_->contents().run(t.run)->status, "stopped");
  }
  press(find("sweeps.go"));
  until([&] { return at_work() == 2; });
  until_over();
  ASSERT_EQ(sweep().trials.size(), 4u);
  for (const auto& t : sweep().trials) EXPECT_EQ(t.state, "finished") << t.error;
  EXPECT_EQ(bench_->contents().runs.size(), 4u);
  EXPECT_TRUE(problems_.empty()) << problems_.front();

  // Which trials train at the same time changes no bit of them.
  auto alone = projects::Project::create((file_ + ".alone.tenon").toStdString(), bench_->contents().model,
                                         bench_->recipe().to_json());
  const auto one = projects::begin_sweep(*alone, "", {{"optimizer.lr", "0.01,0.02,0.03,0.04"}}, {{"method", "grid"}});
  while (const auto trial = projects::next_trial(*alone, one.id)) projects::start_trial(alone, *trial)->wait();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(sweep().trials[i].value, alone->sweep(one.id).trials[i].value);
}

TEST_F(Sweeps, a_trial_that_cannot_train_does_not_end_it) {
  press(find("sweep.remove.0"));
  press(find("sweep.add_key"));
  settle();
  choose("sweep.key.0", "data.batch_size");
  type(find<QLineEdit>("sweep.range.0"), "100,9000000");
  choose("sweep.method", "grid");
  press(find("sweep.begin"));
  until([this] { return bench_->sweeping() != 0; });
  until_over();
  ASSERT_EQ(table()->shown_rows(), 2);
  EXPECT_EQ(cell(0, 2), "finished");
  EXPECT_EQ(cell(1, 2), "failed");
  EXPECT_TRUE(cell(1, 6).contains("larger than the data set")) << cell(1, 6).toStdString();
  EXPECT_TRUE(problems_.empty()) << problems_.front();
}

TEST_F(Sweeps, renamed_deleted_and_brought_back) {
  type(find<QLineEdit>("sweep.range.0"), "0.001,0.01");
  choose("sweep.method", "grid");
  press(find("sweep.begin"));
  until([this] { return bench_->sweeping() != 0; });
  EXPECT_FALSE(window_->commands().action("run.sweep_delete")->isEnabled()) << "it is at work";
  until_over();
  auto* which = find<QComboBox>("sweeps.which");
  auto* name = find<QLineEdit>("sweeps.name");
  ASSERT_TRUE(window_->commands().run("run.sweep_rename"));
  ASSERT_TRUE(name->isVisible());
  QTest::keyClicks(name, "gone");
  key(name, Qt::Key_Escape);
  settle();
  EXPECT_FALSE(name->isVisible());
  EXPECT_EQ(which->currentText(), "sweep-01") << "Escape keeps the old name";
  ASSERT_TRUE(window_->commands().run("run.sweep_rename"));
  QTest::keyClicks(name, "rates");
  key(name, Qt::Key_Return);
  until([which] { return which->currentText() == "rates"; });
  EXPECT_EQ(bench_->project()->sweep("rates").id, model().id());

  // A name that is being typed is of the sweep it was begun for: where another one comes, it is let go.
  const auto copy = bench_->project()->new_sweep("other", sweep().plan, sweep().model, sweep().recipe);
  ASSERT_TRUE(window_->commands().run("run.sweep_rename"));
  QTest::keyClicks(name, "astray");
  bench_->delete_sweep(model().id());
  until([this] { return bench_->contents().deleted_sweeps.size() == 1; });
  settle();
  EXPECT_FALSE(name->isVisible());
  EXPECT_EQ(model().id(), copy.id);
  EXPECT_EQ(which->currentText(), "other");
  bench_->restore_sweep(bench_->contents().deleted_sweeps.front().id);
  until([this] { return bench_->contents().sweeps.size() == 2; });
  bench_->delete_sweep(copy.id);
  until([this] { return bench_->contents().sweeps.size() == 1; });
  settle();

  const int64_t id = model().id();
  EXPECT_EQ(window_->commands().action("run.sweep_delete")->text(), "Delete rates");
  ASSERT_TRUE(window_->commands().run("run.sweep_delete"));
  until([this] { return bench_->contents().sweeps.empty(); });
  settle();
  EXPECT_TRUE(model().empty());
  EXPECT_EQ(bench_->contents().runs.size(), 2u) << "its runs stay";
  EXPECT_FALSE(window_->commands().action("run.sweep_rename")->isEnabled());
  auto* back = window_->findChild<QToolButton*>("banner.action");
  ASSERT_TRUE(back && back->isVisible());
  press(back);
  until([this] { return bench_->contents().sweeps.size() == 1; });
  settle();
  EXPECT_EQ(model().id(), id);
  EXPECT_EQ(table()->shown_rows(), 2);
  EXPECT_TRUE(problems_.empty()) << problems_.front();
}

}  // namespace
}  // namespace tenon::views
