// Watches in the window: added in the recipe, they hold the run that trains, mark its curves and lead to their step;
// and the first step of any condition is found.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTest>
#include <QToolButton>

#include "engine/train/recipe.h"
#include "projects/project.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/training/training_model.h"

namespace tenon::views {
namespace {

using State = projects::RunStatus::State;

class WatchesPage : public testing::WindowTest {
 protected:
  void show_recipe() {
    ASSERT_TRUE(window_->commands().run("recipe.edit"));
    settle();
  }
  std::string says(const QString& name) { return part<QLabel>(name)->accessibleName().toStdString(); }
  Recipe saved() { return Recipe::from_json(bench_->project()->recipe()); }
  /// As the menu of the button does, then typed over.
  void add(const QString& text) {
    auto* button = part<QPushButton>("watches.add");
    auto* action = button->menu()->findChild<QAction*>("add.watch.0");
    ASSERT_NE(action, nullptr);
    const auto place = static_cast<int>(window_->findChildren<QLineEdit*>(QRegularExpression("^watch\\.\\d+$")).size());
    action->trigger();
    settle();
    type(place, text);
  }
  void type(int place, const QString& text) {
    auto* line = part<QLineEdit>("watch." + QString::number(place));
    line->setFocus();
    line->selectAll();
    QTest::keyClick(line, Qt::Key_Delete);
    for (const QChar c : text) {
      QTest::keyClick(line, c.toLatin1());
      if (auto* list = window_->findChild<QAbstractItemView*>("watch.words"); list && list->isVisible()) list->hide();
    }
    QTest::keyClick(line, Qt::Key_Return);
    settle();
  }
  bool at_step(int64_t step) {
    const Selection& s = bench_->bus.current();
    return s.kind == Selection::Kind::step && s.id == step;
  }
  TableList* list() { return part<TableList>("watches.table"); }
  void show_watches() {
    ASSERT_TRUE(window_->commands().run("view.watches"));
    settle();
    until([&] { return !bench_->files.has("watches"); });
    settle();
  }
};

TEST_F(WatchesPage, a_watch_added_in_the_form_holds_the_run_and_leads_to_the_step) {
  open_spirals();
  show_recipe();
  add("loss > 0 * median(loss, 12): pause");
  EXPECT_EQ(saved().text("watches"), "loss > 0 * median(loss, 12): pause");
  EXPECT_EQ(says("watch.0.says"),
            "where loss is above 0 times the median of the last 12 values of loss: is marked, and the run pauses");
  ASSERT_TRUE(window_->commands().run("run.train"));
  // A run that is held at once is paused before the first look at it tells by whom.
  until([&] { return bench_->status().state == State::paused && !bench_->status().paused_by.empty(); });
  settle();
  EXPECT_EQ(bench_->status().step, 13);
  EXPECT_TRUE(banner_shown());
  EXPECT_TRUE(banner().contains("is paused by a watch")) << banner().toStdString();
  EXPECT_TRUE(banner().contains("loss > 0 * median(loss, 12) at step 13")) << banner().toStdString();
  EXPECT_TRUE(part<QLabel>("status.state")->text().contains("paused by a watch"));
  ASSERT_NE(banner_action(), nullptr);
  EXPECT_EQ(banner_action()->text(), "Go to step 13");
  click(banner_action(), banner_action()->rect().center());
  settle();
  EXPECT_TRUE(at_step(13));
  // On the curves it is a mark, which leads there too.
  const auto& model = bench_->model<TrainingModel>();
  ASSERT_EQ(model.marks().size(), 1u);
  EXPECT_EQ(model.marks()[0].step, 13);
  bench_->select(Selection::step(2, "test"));
  ASSERT_TRUE(window_->commands().run("view.training"));
  settle();
  click(canvas("training"), place(canvas("training"), {TrainingModel::watch_mark, 13}));
  settle();
  EXPECT_TRUE(at_step(13));
  // It goes on, and what holds already holds it no more.
  ASSERT_TRUE(window_->commands().run("run.train"));
  until([&] { return bench_->status().step > 20; });
  EXPECT_NE(bench_->status().state, State::paused);
  EXPECT_FALSE(banner_shown() && banner().contains("is paused by a watch"));
  ASSERT_TRUE(window_->commands().run("run.stop"));
  until([&] { return !bench_->training(); });
  settle();
  // What it saw, and what it cost.
  show_watches();
  ASSERT_EQ(list()->shown_rows(), 1);
  const Table& seen = list()->table();
  EXPECT_EQ(seen.rows[0].cells[0].text, "loss > 0 * median(loss, 12)");
  EXPECT_EQ(seen.rows[0].cells[2].text, "13");
  EXPECT_NE(seen.rows[0].cells[7].text, "–");
  bench_->select(Selection::step(2, "test"));
  settle();
  click(list()->viewport(), list()->visualRect(list()->model()->index(0, 0)).center());
  settle();
  EXPECT_TRUE(at_step(13));
}

TEST_F(WatchesPage, the_form_says_what_is_wrong_and_takes_them_away) {
  open_spirals();
  show_recipe();
  const Recipe before = saved();
  add("norm(grad(*)) > 5: count");
  add("lr > 1");
  EXPECT_EQ(saved().text("watches"), "norm(grad(*)) > 5: count; lr > 1");
  type(1, "los > 1");
  EXPECT_NE(says("watch.1.says").find("there is no metric or measure \"los\""), std::string::npos)
      << says("watch.1.says");
  EXPECT_EQ(saved().text("watches"), "norm(grad(*)) > 5: count; lr > 1") << "what is none is not kept";
  type(1, "loss > 1");
  EXPECT_EQ(saved().text("watches"), "norm(grad(*)) > 5: count; loss > 1");
  press("watch.0.remove");
  settle();
  EXPECT_EQ(saved().text("watches"), "loss > 1");
  ASSERT_TRUE(window_->commands().run("recipe.undo"));
  settle();
  EXPECT_EQ(saved().text("watches"), "norm(grad(*)) > 5: count; loss > 1");
  press("watch.0.remove");
  press("watch.0.remove");
  settle();
  EXPECT_EQ(saved(), before);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(WatchesPage, what_may_stand_in_a_line_is_offered) {
  open_spirals();
  train(30);
  ASSERT_TRUE(window_->commands().run("watches.find"));
  settle();
  auto* line = part<QLineEdit>("watches.condition");
  ASSERT_TRUE(line->hasFocus());
  auto* words = [&] { return line->findChild<QCompleter*>()->popup(); }();
  QTest::keyClicks(line, "no");
  ASSERT_TRUE(words->isVisible());
  QTest::keyClick(words, Qt::Key_Down);
  QTest::keyClick(words, Qt::Key_Up);
  EXPECT_EQ(words->model()->index(0, 0).data().toString(), "nonfinite(");
  QTest::keyClick(words, Qt::Key_Down);
  QTest::keyClick(words, Qt::Key_Return);
  EXPECT_EQ(line->text(), "norm(");
  QTest::keyClick(line, Qt::Key_Space, Qt::ControlModifier);
  ASSERT_TRUE(words->isVisible());
  EXPECT_EQ(words->model()->index(0, 0).data().toString(), "grad(");
  QTest::keyClick(words, Qt::Key_Return);
  EXPECT_EQ(line->text(), "norm(grad(");
}

TEST_F(WatchesPage, the_first_step_of_a_condition_is_found_in_a_run_that_had_none) {
  open_spirals();
  train(40);
  ASSERT_TRUE(window_->commands().run("watches.find"));
  settle();
  auto* line = part<QLineEdit>("watches.condition");
  auto* find = part<QToolButton>("watches.find");
  EXPECT_FALSE(find->isEnabled());
  line->setText("norm(grad(nothing");
  EXPECT_NE(says("watches.answer").find("is missing behind"), std::string::npos) << says("watches.answer");
  EXPECT_FALSE(find->isEnabled());
  line->setText("norm(update(*)) > 0");
  EXPECT_NE(says("watches.answer").find("Replays up to 40 steps"), std::string::npos) << says("watches.answer");
  press("watches.find");
  until([&] { return says("watches.answer").find("step 1: ") != std::string::npos; });
  press("watches.go");
  settle();
  EXPECT_TRUE(at_step(1));
  line->setText("loss > 0 * median(loss, 20)");
  EXPECT_EQ(says("watches.answer"), "What was recorded tells it: nothing is replayed.");
  line->setFocus();
  key(line, Qt::Key_Return);
  until([&] { return says("watches.answer").find("step 21: loss is ") != std::string::npos; });
  press("watches.halving");
  line->setText("nonfinite(weight(*)) > 0");
  press("watches.find");
  until([&] { return says("watches.answer").find("It holds at no step") != std::string::npos; });
  EXPECT_FALSE(part<QToolButton>("watches.go")->isVisible());
  // A pattern that fits nothing is told when it is looked for.
  line->setText("norm(grad(nobody)) > 0");
  press("watches.find");
  until([&] { return banner_shown(); });
  EXPECT_TRUE(banner().contains("nobody")) << banner().toStdString();
  problems_.clear();
}

}  // namespace
}  // namespace tenon::views
