// Runs beside each other, by mouse and keys.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFile>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QTest>
#include <set>

#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/runs/runs_chart.h"

namespace tenon::views {
namespace {

class Runs : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    for (const char* lr : {"0.1", "0.01", "0.001"}) {
      train(8, {{"optimizer.lr", lr}});
    }
    ASSERT_EQ(bench_->contents().runs.size(), 3u);
    ASSERT_TRUE(window_->commands().run("view.runs"));
    settle();
    table_ = window_->findChild<TableList*>("runs.table");
    filter_ = window_->findChild<QLineEdit*>("runs.filter");
    ASSERT_TRUE(table_ && filter_);
  }
  int64_t run(int i) const { return bench_->contents().runs[static_cast<size_t>(i)].id; }
  QString name(int i) const { return QString::fromStdString(bench_->contents().runs[static_cast<size_t>(i)].name); }
  QString cell(int row, int column) const { return table_->model()->index(row, column).data().toString(); }
  int column(const QString& title) const {
    for (int c = 0; c < table_->model()->columnCount(); ++c)
      if (table_->model()->headerData(c, Qt::Horizontal).toString() == title) return c;
    ADD_FAILURE() << "no column " << title.toStdString();
    return 0;
  }
  void tick_row(int row) {
    const QRect r = table_->visualRect(table_->model()->index(row, 0));
    click(table_->viewport(), {r.left() + 14, r.center().y()});
    settle();
  }
  TableList* table_ = nullptr;
  QLineEdit* filter_ = nullptr;
};

TEST_F(Runs, every_run_is_a_row_with_what_differs) {
  ASSERT_EQ(table_->shown_rows(), 3);
  EXPECT_EQ(cell(0, 0), name(2)) << "the newest first";
  const int lr = column("lr");
  EXPECT_EQ(cell(0, lr), "0.001");
  EXPECT_EQ(cell(2, lr), "0.1");
  EXPECT_FALSE(cell(0, column("last loss")).isEmpty());
  EXPECT_FALSE(cell(0, column("best loss")).isEmpty());
}

TEST_F(Runs, a_click_on_a_header_sorts) {
  QHeaderView* header = table_->horizontalHeader();
  const int lr = column("lr");
  click(header->viewport(), {header->sectionViewportPosition(lr) + header->sectionSize(lr) / 2, header->height() / 2});
  settle();
  const bool up = cell(0, lr) == "0.001";
  EXPECT_EQ(cell(0, lr), up ? "0.001" : "0.1");
  EXPECT_EQ(cell(1, lr), "0.01");
  click(header->viewport(), {header->sectionViewportPosition(lr) + header->sectionSize(lr) / 2, header->height() / 2});
  settle();
  EXPECT_EQ(cell(0, lr), up ? "0.1" : "0.001");
}

TEST_F(Runs, the_baseline_stands_first_and_says_by_how_much_others_are_other) {
  bench_->select(Selection::run(run(0), "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("run.baseline"));
  settle();
  EXPECT_EQ(cell(0, 0), name(0) + " · baseline");
  EXPECT_EQ(cell(0, column("± loss")), "–");
  EXPECT_FALSE(cell(1, column("± loss")).isEmpty());
  // It stays where a filter leaves it out, and is not counted.
  QTest::keyClicks(filter_, "lr < 0.05");
  settle();
  EXPECT_EQ(table_->shown_rows(), 3);
  EXPECT_EQ(cell(0, 0), name(0) + " · baseline");
  EXPECT_TRUE(window_->findChild<QLabel*>("runs.found")->accessibleName().startsWith("2 of 3 runs"));
  // It is there when the project is opened again, until it is no baseline any more.
  close_window();
  make_window();
  open(file_);
  until([this] { return bench_->baseline() == run(0); });
  ASSERT_TRUE(window_->commands().run("view.runs"));
  settle();
  table_ = window_->findChild<TableList*>("runs.table");
  EXPECT_EQ(cell(0, 0), name(0) + " · baseline");
  bench_->select(Selection::run(run(0), "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("run.baseline"));
  settle();
  EXPECT_EQ(cell(0, 0), name(2));
}

TEST_F(Runs, many_runs_are_deleted_at_once_and_come_back) {
  auto names = [&] {
    std::set<std::string> all;
    for (const auto& r : bench_->contents().runs) all.insert(r.name);
    return all;
  };
  const std::set<std::string> all = names();
  EXPECT_FALSE(window_->commands().action("run.delete_listed")->isEnabled()) << "nothing is filtered";
  filter_->setFocus();
  QTest::keyClicks(filter_, "lr >= 0.01");
  settle();
  window_->commands().refresh();
  EXPECT_EQ(window_->commands().action("run.delete_listed")->text(), "Delete the 2 runs that the filter lists");
  const std::string kept = bench_->contents().runs[2].name;
  choose_in_menu("Run", "run.delete_listed");
  until([&] { return bench_->contents().runs.size() == 1; });
  settle();
  EXPECT_EQ(names(), std::set<std::string>{kept});
  EXPECT_TRUE(banner().contains("2 runs were deleted")) << banner().toStdString();
  click(banner_action(), banner_action()->rect().center());
  until([&] { return bench_->contents().runs.size() == 3; });
  settle();
  EXPECT_EQ(names(), all);
  filter_->clear();
  settle();
  tick_row(0);
  tick_row(2);
  window_->commands().refresh();
  EXPECT_EQ(window_->commands().action("run.delete_ticked")->text(), "Delete the 2 ticked runs");
  choose_in_menu("Run", "run.delete_ticked");
  until([&] { return bench_->contents().runs.size() == 1; });
  settle();
  EXPECT_TRUE(bench_->picked().empty());
  EXPECT_EQ(table_->shown_rows(), 1);
}

TEST_F(Runs, what_is_typed_filters_and_a_wrong_word_is_said) {
  filter_->setFocus();
  QTest::keyClicks(filter_, "lr >= 0.01 and best.loss < 1e9");
  settle();
  EXPECT_EQ(table_->shown_rows(), 2);
  filter_->clear();
  QTest::keyClicks(filter_, "lrr > 1");
  settle();
  auto* said = window_->findChild<QLabel*>("runs.found");
  ASSERT_NE(said, nullptr);
  EXPECT_TRUE(said->toolTip().contains("did you mean lr")) << said->toolTip().toStdString();
  filter_->clear();
  settle();
  EXPECT_EQ(table_->shown_rows(), 3);
}

TEST_F(Runs, a_click_on_a_row_shows_the_run_everywhere) {
  const QRect r = table_->visualRect(table_->model()->index(2, 1));
  click(table_->viewport(), r.center());
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::run(run(0))));
  EXPECT_EQ(bench_->shown_run(), run(0));
  EXPECT_EQ(bench_->training_model.run(), name(0).toStdString());
  // And what is selected elsewhere is marked here.
  bench_->select(Selection::run(run(1), "test"));
  settle();
  EXPECT_EQ(table_->currentIndex().row(), 1);
}

TEST_F(Runs, ticked_runs_have_their_curves_together) {
  tick_row(1);
  tick_row(2);
  EXPECT_EQ(bench_->picked(), (std::vector<int64_t>{run(1), run(0)}));
  bench_->select(Selection::run(run(2), "test"));
  settle();
  ASSERT_EQ(bench_->training_model.compared().size(), 2u);
  EXPECT_EQ(bench_->training_model.compared()[0].run, name(1).toStdString());
  EXPECT_EQ(bench_->training_model.compared()[0].series.at("loss").size(), 8u);
  ASSERT_TRUE(window_->commands().run("layout.train"));  // there the plots have room for the names
  SceneCanvas* c = canvas("training");
  const auto texts = c->model().last().texts();
  for (int i : {0, 1})
    EXPECT_NE(std::find(texts.begin(), texts.end(), name(i).toStdString()), texts.end()) << name(i).toStdString();
  EXPECT_TRUE(c->model().last().overlaps().empty()) << c->model().last().overlaps().front();
  // The space bar takes one out again, and another project has none.
  window_->show_view("runs");
  settle();
  table_->setFocus();
  table_->setCurrentIndex(table_->model()->index(1, 3));
  settle();
  key(table_, Qt::Key_Space);
  settle();
  EXPECT_EQ(bench_->picked(), std::vector<int64_t>{run(0)});
  EXPECT_EQ(bench_->training_model.compared().size(), 1u);
  open(QString::fromStdString(testing::copy_of(testing::project_state("trained"), dir_.path().toStdString())));
  EXPECT_TRUE(bench_->picked().empty());
  EXPECT_TRUE(bench_->training_model.compared().empty());
}

TEST_F(Runs, a_run_that_trains_is_in_the_table) {
  bench_->train({.set = {{"epochs", "100000"}}});
  until([this] { return bench_->training() && bench_->status().step > 20; });
  until([this] { return table_->shown_rows() == 4; });
  until([this] {
    return cell(0, 1) == "running" && cell(0, column("Steps")).section(' ', 0, 0).remove(',').toInt() > 20;
  });
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
  until([this] { return cell(0, 1) == "stopped"; });
}

TEST_F(Runs, the_chart_goes_along_what_the_runs_differ_in_until_one_chooses) {
  // A view that was open when there was one run only.
  window_->commands().run("file.close");
  settle();
  ASSERT_TRUE(QFile::remove(file_));
  open_spirals();
  train(4, {{"optimizer.lr", "0.1"}});
  ASSERT_TRUE(window_->commands().run("view.runs"));
  settle();
  auto* along = part<QComboBox>("runs.along");
  until([&] { return table_->shown_rows() == 1; });
  train(4, {{"optimizer.lr", "0.01"}});
  until([&] { return table_->shown_rows() == 2; });
  settle();
  EXPECT_EQ(along->currentText(), "optimizer.lr");
  along->setFocus();
  while (along->currentText() != "seconds") key(along, Qt::Key_Down);
  settle();
  train(4, {{"optimizer.lr", "0.001"}});
  until([&] { return table_->shown_rows() == 3; });
  settle();
  EXPECT_EQ(along->currentText(), "seconds") << "what one chose stays";
}

TEST_F(Runs, groups_and_a_chart_follow_the_filter_and_select_runs) {
  auto* group = window_->findChild<QComboBox*>("runs.group");
  ASSERT_NE(group, nullptr);
  auto choose = [this](QComboBox* list, const QString& text) {
    ASSERT_GE(list->findText(text), 0) << text.toStdString();
    list->setFocus();
    while (list->currentText() != text)
      key(list, list->findText(text) > list->currentIndex() ? Qt::Key_Down : Qt::Key_Up);
    settle();
  };
  choose(group, "optimizer.lr");
  ASSERT_EQ(table_->shown_rows(), 3) << "each has a rate of its own";
  EXPECT_EQ(cell(0, 0), "0.001") << "in the order of the values";
  EXPECT_EQ(cell(0, column("Best run")), name(2));
  click(table_->viewport(), table_->visualRect(table_->model()->index(2, 1)).center());
  settle();
  EXPECT_EQ(bench_->shown_run(), run(0));
  press("runs.chart");
  settle();
  SceneCanvas* chart = canvas("runs");
  ASSERT_TRUE(chart->isVisible());
  const QPoint p = place(chart, {RunsChart::run, run(1)});
  click(chart, p);
  settle();
  EXPECT_EQ(bench_->shown_run(), run(1));
  key(chart, Qt::Key_Home);
  settle();
  EXPECT_EQ(bench_->shown_run(), run(2)) << "the smallest rate";
  choose(window_->findChild<QComboBox*>("runs.along"), "seconds");
  choose(group, "Every run a row");
  EXPECT_EQ(cell(0, 0), name(2));
  filter_->setFocus();
  QTest::keyClicks(filter_, "lr > 0.005");
  settle();
  EXPECT_EQ(table_->shown_rows(), 2);
  int drawn = 0;
  for (const auto& t : chart->model().last().targets()) drawn += t.hit.kind == RunsChart::run;
  EXPECT_EQ(drawn, 2);
}

TEST_F(Runs, a_run_that_its_recipe_ended_is_called_stopped_early) {
  // The test loss never gets better by so much.
  train(400, {{"eval_every", "1"},
              {"stop.metric", "test_loss"},
              {"stop.patience", "2"},
              {"stop.min_delta", "100"},
              {"schedule.type", "constant"}});
  until([this] { return cell(0, 1) == "stopped early"; });
  const auto& run = bench_->contents().runs.back();
  EXPECT_EQ(run.status, "finished");
  EXPECT_LT(run.steps, run.total_steps);
  EXPECT_FALSE(bench_->can_go_on(run.id)) << "it would end again where it is";
  EXPECT_FALSE(banner_shown());
  const auto labels = window_->findChildren<QLabel*>();
  EXPECT_TRUE(std::any_of(labels.begin(), labels.end(), [](QLabel* l) {
    return l->text().endsWith("●</span> stopped early");
  })) << "the line at the foot of the window";
  // With more patience it goes on.
  Recipe more = Recipe::from_json(run.recipe);
  more.set("stop.patience", "3");
  bench_->set_recipe(more);
  settle();
  ASSERT_TRUE(bench_->can_continue(run.id));
  const int64_t before = run.steps;
  bench_->continue_run(run.id);
  until([&] { return !bench_->training() && bench_->contents().runs.back().steps > before; });
  settle();
  until([this] { return cell(0, 1) == "stopped early"; });
}

}  // namespace
}  // namespace tenon::views
