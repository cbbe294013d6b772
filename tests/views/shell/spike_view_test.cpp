// A jump of the loss in the window: asked about at its step, explained, and gone on without; and a branch by hand.
#include <gtest/gtest.h>

#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include "projects/project.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/training/branch_form_view.h"

namespace tenon::views {
namespace {

class Spikes : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(60, {{"data.batch_size", "20"}});
    ASSERT_TRUE(window_->commands().run("layout.train"));
    ASSERT_TRUE(window_->commands().run("view.training"));
    settle();
  }
  /// The other button at a step of the curves, and the entry of the menu that opens.
  void choose_at(int64_t step, const QString& command) {
    SceneCanvas* c = canvas("training");
    TrainingModel& model = bench_->training_model;
    int64_t last = 0;  // the plot that was drawn last: the axis lies there
    for (const auto& t : c->model().last().targets())
      if (t.hit.kind == TrainingModel::plot) last = std::max(last, t.hit.id);
    QPoint at = place(c, {TrainingModel::plot, last});
    at.setX(static_cast<int>(model.axis().to_px(model.x_of(step)) + 0.5f));
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, c->mapToGlobal(at));
    QApplication::sendEvent(c, &event);
    settle();
    auto* menu = window_->findChild<QMenu*>("training.menu");
    ASSERT_NE(menu, nullptr);
    for (QAction* action : menu->actions())
      if (action->objectName() == command) {
        ASSERT_TRUE(action->isEnabled()) << action->text().toStdString();
        QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(action).center());
        settle();
        return;
      }
    FAIL() << "the menu has no " << command.toStdString();
  }
  QPushButton* shown_button(const QString& begins) {
    for (auto* b : window_->findChildren<QPushButton*>())
      if (b->isVisible() && b->text().startsWith(begins)) return b;
    return nullptr;
  }
};

TEST_F(Spikes, a_branch_is_asked_for_at_a_step_and_drawn_over_its_parent) {
  const int64_t parent = bench_->shown_run();
  choose_at(24, "run.branch");
  auto* form = window_->findChild<BranchForm*>();
  ASSERT_NE(form, nullptr);
  const auto step = static_cast<int64_t>(form->findChild<QSpinBox*>("branch.step")->value());
  EXPECT_NEAR(static_cast<double>(step), 24, 1);
  EXPECT_TRUE(form->findChild<QLabel*>("branch.said")->text().startsWith("Without a change"));
  auto* value = form->findChild<QWidget*>("branch.value.0");
  ASSERT_NE(value, nullptr);
  auto* line = qobject_cast<QLineEdit*>(value);
  if (!line) line = value->findChild<QLineEdit*>();
  ASSERT_NE(line, nullptr);
  line->setFocus();
  line->selectAll();
  QTest::keyClicks(line, "0.05");
  key(line, Qt::Key_Return);
  settle();
  auto* without = form->findChild<QLineEdit*>("branch.without");
  without->setFocus();
  QTest::keyClicks(without, "3, 7-9");
  settle();
  const QString said = form->findChild<QLabel*>("branch.said")->text();
  EXPECT_TRUE(said.contains("optimizer.lr") && said.contains("0.05") && said.contains("3, 7-9")) << said.toStdString();
  auto* go = form->findChild<QPushButton*>("branch.train");
  click(go, go->rect().center());
  until([&] { return bench_->shown_run() != parent && !bench_->training(); });
  settle();
  const auto* r = bench_->shown();
  ASSERT_NE(r, nullptr);
  EXPECT_EQ(r->branch.run, parent);
  EXPECT_EQ(r->branch.step, step);
  EXPECT_EQ(r->steps, 60);
  EXPECT_EQ(bench_->picked(), std::vector<int64_t>{parent});
  until([&] { return bench_->training_model.compared().size() == 1; });
  EXPECT_EQ(bench_->training_model.series().at("loss").step(0), step + 1);
}

TEST_F(Spikes, a_form_that_is_left_does_nothing) {
  ASSERT_TRUE(window_->commands().run("run.branch"));
  settle();
  auto* form = window_->findChild<BranchForm*>();
  ASSERT_NE(form, nullptr);
  auto* add = form->findChild<QPushButton*>("branch.add");
  click(add, add->rect().center());
  settle();
  EXPECT_NE(form->findChild<QWidget*>("branch.key.1"), nullptr);
  auto* remove = form->findChild<QToolButton*>("branch.remove.0");
  click(remove, remove->rect().center());
  settle();
  EXPECT_EQ(form->findChild<QWidget*>("branch.key.1"), nullptr);
  // At its last step a run has nothing left.
  auto* go = form->findChild<QPushButton*>("branch.train");
  EXPECT_FALSE(go->isEnabled());
  // What cannot be pressed can be read all the same, in every theme.
  for (const ThemeName theme : {ThemeName::dark, ThemeName::light, ThemeName::contrast}) {
    window_->set_theme(theme);
    settle();
    const QImage seen = go->grab().toImage();
    const int ground = qGray(seen.pixel(seen.width() / 2, 4));
    int letters = 0;
    for (int y = 4; y < seen.height() - 4; ++y)
      for (int x = 6; x < seen.width() - 6; ++x) letters += std::abs(qGray(seen.pixel(x, y)) - ground) > 60;
    EXPECT_GT(letters, 50) << theme_id(theme).toStdString();
  }
  key(form, Qt::Key_Escape);
  settle();
  EXPECT_EQ(bench_->contents().runs.size(), 1u);
}

TEST_F(Spikes, its_cause_is_told_and_left_out) {
  const int64_t run = bench_->shown_run();
  const std::string name = bench_->shown()->name;
  bench_->train({.resume = name, .set = {{"max_steps", "90"}, {"optimizer.lr", "5"}}});
  until([&] { return !bench_->training() && bench_->shown() && bench_->shown()->steps == 90; });
  settle();
  ASSERT_TRUE(window_->commands().run("run.spike"));
  settle();
  until([&] { return shown_button("Find the cause") != nullptr; });
  // What it may cost was told, and nothing replayed yet.
  bool told = false;
  for (auto* l : window_->findChildren<QLabel*>())
    told |= l->isVisible() && l->text().contains("up to ") && l->text().contains("replays");
  EXPECT_TRUE(told);
  QPushButton* find = shown_button("Find the cause");
  click(find, find->rect().center());
  auto* sentence = window_->findChild<QLabel*>("spike.sentence");
  until([&] { return sentence->isVisible() && sentence->text().contains("instead of"); });
  settle();
  EXPECT_TRUE(sentence->text().startsWith("With the rate held at")) << sentence->text().toStdString();
  EXPECT_FALSE(window_->findChild<QToolButton*>("spike.sample")->isVisible()) << "it is no sample";
  EXPECT_GE(window_->findChild<TableList*>("spike.Trials")->shown_rows(), 1);
  press("spike.branch");
  until([&] { return bench_->shown_run() != run && !bench_->training(); });
  EXPECT_EQ(bench_->shown()->branch.run, run);
  EXPECT_EQ(bench_->shown()->branch.step, 60);
  EXPECT_EQ(bench_->picked(), std::vector<int64_t>{run});
}

TEST_F(Spikes, a_run_without_one_says_so) {
  ASSERT_TRUE(window_->commands().run("run.spike"));
  until([&] { return banner_shown(); });
  EXPECT_TRUE(banner().contains("stands out")) << banner().toStdString();
  problems_.clear();
}

}  // namespace
}  // namespace tenon::views
