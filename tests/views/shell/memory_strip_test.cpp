// The line of the recipe on memory: what the next run needs, and what needs less, applied by a click.
#include <gtest/gtest.h>

#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include "engine/train/recipe.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"

namespace tenon::views {
namespace {

class MemoryOfTheNextRun : public testing::WindowTest {
 protected:
  void show() {
    ASSERT_TRUE(window_->commands().run("recipe.edit"));
    settle();
  }
  void type(const QString& key, const QString& text) {
    auto* box = window_->view("recipe")->findChild<QWidget*>("recipe." + key);
    ASSERT_NE(box, nullptr) << qPrintable(key);
    box->setFocus();
    if (auto* number = qobject_cast<QSpinBox*>(box)) number->selectAll();
    if (auto* words = qobject_cast<QLineEdit*>(box)) words->selectAll();
    QTest::keyClicks(box, text);
    QTest::keyClick(box, Qt::Key_Return);
    settle();
  }
  QString line() { return window_->findChild<QLabel*>("recipe.memory")->accessibleName(); }
  Recipe saved() { return Recipe::from_json(bench_->project()->recipe()); }
};

TEST_F(MemoryOfTheNextRun, memory_is_told_before_a_run_and_what_saves_some_is_applied_by_a_click) {
  open_spirals();
  show();
  until([&] { return line().startsWith("about "); });
  EXPECT_TRUE(line().contains("at batch " + QString::fromStdString(attr_text(saved().at("data.batch_size")))))
      << qPrintable(line());
  const QString before = line();
  const Recipe first = saved();
  press("recipe.memory.open");
  until([this] { return window_->findChild<QToolButton*>("recipe.memory.apply.0") != nullptr; });
  settle();
  auto* layers = window_->findChild<TableList*>("recipe.memory.layers");
  ASSERT_GT(layers->shown_rows(), 3);
  // The first proposal whose button is to be seen, by the mouse.
  auto* apply = window_->findChild<QToolButton*>("recipe.memory.apply.0");
  const QString setting = apply->toolTip();  // "--set optimizer.type=sgd"
  ASSERT_TRUE(setting.startsWith("--set ")) << qPrintable(setting);
  press("recipe.memory.apply.0");
  settle();
  until([&] { return line() != before && line().startsWith("about "); });
  Recipe expected = first;
  const QStringList pair = setting.mid(6).split('=');
  expected.set(pair[0].toStdString(), pair[1].toStdString());
  EXPECT_EQ(saved(), expected);
  ASSERT_TRUE(window_->commands().run("recipe.undo"));
  settle();
  until([&] { return line() == before; });
  EXPECT_EQ(saved(), first);
}

TEST_F(MemoryOfTheNextRun, a_run_that_memory_cannot_hold_is_told_and_not_begun) {
  open_spirals();
  show();
  type("data.samples", "1000000000");
  type("data.batch_size", "900000000");
  until([&] { return line().contains("it will not fit"); });
  EXPECT_EQ(window_->findChild<QLabel*>("recipe.memory")->property("voice").toString(), "news");
  ASSERT_TRUE(window_->commands().run("run.train"));
  settle();
  until([this] { return banner().contains("a step needs"); });
  EXPECT_FALSE(bench_->training());
  EXPECT_TRUE(bench_->contents().runs.empty());
  // A file that is not there: nothing can be said.
  type("data.samples", "0");
  type("data.batch_size", "64");
  until([&] { return line().startsWith("about "); });
  type("data.batch_size", "100000");
  until([&] { return line().startsWith("What memory it needs cannot be said"); });
}

}  // namespace
}  // namespace tenon::views
