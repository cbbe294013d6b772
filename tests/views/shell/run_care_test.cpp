// Runs as a whole, by mouse and keys: another recipe while one trains, continued, described, deleted, brought back.
#include <gtest/gtest.h>

#include <QDialog>
#include <QDialogButtonBox>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include "projects/time_travel.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/recipe/recipe_model.h"

namespace tenon::views {
namespace {

class RunCare : public testing::WindowTest {
 protected:
  void type(const std::string& key, const QString& text) {
    ASSERT_TRUE(window_->commands().run("recipe.edit"));
    auto* line = window_->view("recipe")->findChild<QLineEdit*>(QString("recipe.") + QString::fromStdString(key));
    ASSERT_NE(line, nullptr) << key;
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
    QTest::keyClick(line, Qt::Key_Return);
  }
  const projects::RunInfo& run(int i) const { return bench_->contents().runs.at(static_cast<size_t>(i)); }
  double last_rate(const projects::RunInfo& r) const { return bench_->project()->metric(r.id, "lr").back().value; }
  bool enabled(const char* command) const { return window_->commands().find(command)->enabled(); }
  /// A row of the menu of the runs' first row.
  void choose_in_menu(const QString& id) {
    auto* table = window_->findChild<TableList*>("runs.table");
    ASSERT_TRUE(window_->commands().run("view.runs"));
    settle();
    const QPoint at = table->visualRect(table->model()->index(0, 0)).center();
    QContextMenuEvent e(QContextMenuEvent::Mouse, at, table->viewport()->mapToGlobal(at));
    QApplication::sendEvent(table->viewport(), &e);
    auto* menu = table->findChild<QMenu*>("row.menu");
    ASSERT_NE(menu, nullptr);
    QAction* action = nullptr;
    for (QAction* a : menu->actions())
      if (a->objectName() == id) action = a;
    ASSERT_TRUE(action && action->isEnabled()) << id.toStdString();
    QTest::mouseClick(menu, Qt::LeftButton, Qt::NoModifier, menu->actionGeometry(action).center());
  }
};

TEST_F(RunCare, a_run_that_trains_is_given_another_rate_by_two_clicks) {
  open_spirals();
  bench_->train({.set = {{"schedule.type", "constant"}, {"schedule.warmup_steps", "0"}, {"epochs", "1000"}},
                 .start_paused = true});
  until([&] { return bench_->training(); });
  settle();
  type("optimizer.lr", "0.125");
  auto* give = window_->findChild<QToolButton*>("recipe.give");
  until([&] { return give->isVisible() && give->isEnabled(); });
  EXPECT_TRUE(give->toolTip().contains("optimizer.lr")) << give->toolTip().toStdString();
  EXPECT_TRUE(give->toolTip().contains("schedule.type")) << "what the form has besides is given too";
  type("data.batch_size", "10");
  until([&] { return give->toolTip().contains("Only a new run can have"); });
  auto paused = [&] { return bench_->status().state == projects::RunStatus::State::paused; };
  until(paused);  // a step is for a run that waits, not for one that still starts
  ASSERT_TRUE(window_->commands().run("run.step"));
  until([&] { return bench_->status().step == 1; });
  click(give, give->rect().center());
  until([&] { return bench_->status().changes == 1; });
  until(paused);
  ASSERT_TRUE(window_->commands().run("run.step"));
  until([&] { return bench_->status().step == 2; });
  bench_->stop();
  until([&] { return !bench_->training(); });
  settle();
  const projects::RunInfo& r = run(0);
  ASSERT_EQ(r.changes.size(), 1u);
  EXPECT_EQ(r.changes[0].step, 1);
  EXPECT_EQ(Recipe::from_json(r.changes[0].recipe).number("optimizer.lr"), 0.125);
  EXPECT_NE(Recipe::from_json(r.changes[0].recipe).integer("data.batch_size"), 10) << "that would be another run";
  ASSERT_EQ(bench_->training_model.changes().size(), 1u) << "and it stands in the curves";
  EXPECT_EQ(bench_->training_model.changes()[0].step, 1);
  EXPECT_TRUE(bench_->training_model.changes()[0].text.find("optimizer.lr") != std::string::npos);
  EXPECT_FALSE(give->isVisible());
}

TEST_F(RunCare, the_better_of_two_runs_goes_on_with_another_rate) {
  open_spirals();
  train(6, {{"optimizer.lr", "0.01"}});
  train(6, {{"optimizer.lr", "0.1"}});
  bench_->select(Selection::run(run(0).id, "test"));
  settle();
  type("optimizer.lr", "0.5");
  type("max_steps", "9");
  settle();
  ASSERT_TRUE(enabled("run.continue"));
  choose_in_menu("run.continue");  // of the newest, the first row
  until([&] { return bench_->training() || run(1).steps == 9; });
  until([&] { return !bench_->training(); });
  settle();
  EXPECT_EQ(run(0).steps, 6);
  EXPECT_EQ(run(1).steps, 9);
  EXPECT_EQ(run(1).status, "finished");
  ASSERT_EQ(run(1).changes.size(), 1u);
  EXPECT_EQ(run(1).changes[0].step, 6);
  EXPECT_EQ(projects::digest_at(*bench_->project(), run(1).id, 9),
            projects::digest(bench_->project()->checkpoint_before(run(1).id, 9)));
  EXPECT_FALSE(enabled("run.continue")) << "it has what the recipe says";
}

TEST_F(RunCare, a_run_gets_a_name_tags_and_a_note_and_is_found_by_them) {
  open_spirals();
  train(3);
  train(3);
  bench_->select(Selection::run(run(0).id, "test"));
  settle();
  QTimer::singleShot(0, window_.get(), [] {
    auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
    ASSERT_TRUE(dialog && dialog->objectName() == "describe_run");
    auto* name = dialog->findChild<QLineEdit*>("describe.name");
    auto* ok = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
    name->clear();
    EXPECT_FALSE(ok->isEnabled()) << "a run has a name";
    QTest::keyClicks(name, "warm start");
    QTest::keyClicks(dialog->findChild<QLineEdit*>("describe.tags"), "good, second try");
    QTest::keyClicks(dialog->findChild<QPlainTextEdit*>("describe.note"), "half the rate");
    QTest::mouseClick(ok, Qt::LeftButton);
  });
  key(window_.get(), Qt::Key_F2);
  settle();
  EXPECT_EQ(run(0).name, "warm start");
  EXPECT_EQ(run(0).tags, (std::vector<std::string>{"good", "second try"}));
  EXPECT_EQ(run(0).note, "half the rate");
  EXPECT_EQ(bench_->training_model.run(), "warm start");
  ASSERT_TRUE(window_->commands().run("run.filter"));
  auto* filter = window_->findChild<QLineEdit*>("runs.filter");
  QTest::keyClicks(filter, "tags ~ second");
  settle();
  EXPECT_EQ(window_->findChild<TableList*>("runs.table")->shown_rows(), 1);
  // A name that another run has is refused, and nothing else is taken either.
  bench_->describe_run(run(1).id, "warm start", "x", {});
  until([&] { return !problems_.empty(); });
  settle();
  EXPECT_EQ(run(1).note, "");
  problems_.clear();
}

TEST_F(RunCare, a_deleted_run_goes_and_comes_back) {
  open_spirals();
  train(3);
  train(3);
  const int64_t first = run(0).id, second = run(1).id;
  bench_->pick({first, second});
  settle();
  choose_in_menu("run.delete");
  until([&] { return bench_->contents().runs.size() == 1; });
  settle();
  EXPECT_EQ(bench_->shown_run(), first) << "another one is shown";
  EXPECT_EQ(bench_->picked(), std::vector<int64_t>{first});
  EXPECT_TRUE(banner().contains("was deleted")) << banner().toStdString();
  click(banner_action(), banner_action()->rect().center());
  until([&] { return bench_->contents().runs.size() == 2; });
  settle();
  EXPECT_EQ(bench_->shown_run(), second);
  EXPECT_FALSE(banner_shown());
  // Both, and then by the list.
  bench_->delete_runs({first});
  settle();
  bench_->delete_runs({second});
  settle();
  EXPECT_EQ(bench_->shown_run(), 0);
  EXPECT_TRUE(bench_->contents().runs.empty());
  ASSERT_TRUE(window_->commands().run("run.restore"));
  auto* line = QApplication::focusWidget();
  ASSERT_NE(line, nullptr);
  QTest::keyClick(line, Qt::Key_Return);
  until([&] { return bench_->contents().runs.size() == 1; });
  settle();
  EXPECT_EQ(bench_->shown_run(), bench_->contents().runs[0].id);
  EXPECT_FALSE(bench_->training_model.empty()) << "its curves are back";
}

}  // namespace
}  // namespace tenon::views
