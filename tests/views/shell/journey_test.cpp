// What a person does on the first day, from the start page to a file for somebody else, with a mouse that is counted.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QListWidget>
#include <QTest>
#include <QToolButton>
#include <filesystem>

#include "engine/formats/onnx/model.h"
#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

class Journey : public testing::WindowTest {
 protected:
  void hit(QWidget* w) { hit(w, w->rect().center()); }
  void hit(QWidget* w, QPoint at) {
    ASSERT_TRUE(w->isVisible()) << w->objectName().toStdString();
    ++clicks_;
    click(w, at);
    settle();
  }
  void menu(const QString& title, const QString& command) {
    clicks_ += 2;
    choose_in_menu(title, command);
    settle();
  }
  /// A file dialog's name is typed, and its button is hit.
  void name_file(const QString& path) {
    ++clicks_;
    answer(path);
  }
  template <class W = QWidget>
  W* named(const QString& name) {
    auto* w = window_->findChild<W*>(name);
    EXPECT_NE(w, nullptr) << name.toStdString();
    return w;
  }
  int clicks_ = 0;
};

TEST_F(Journey, from_a_template_to_an_exported_model_in_twelve_clicks) {
  make_window();
  settle();
  QElapsedTimer clock;
  clock.start();
  name_file(dir_.filePath("first.tenon"));
  hit(named("template.spirals"));
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
  // The rate and the schedule, in the form.
  key(window_.get(), Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
  settle();
  auto* rate = named<QLineEdit>("recipe.optimizer.lr");
  hit(rate);
  key(rate, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(rate, "0.1");
  key(rate, Qt::Key_Return);
  settle();
  auto* schedule = named<QComboBox>("recipe.schedule.type");
  hit(schedule);
  QAbstractItemView* choices = schedule->view();
  ASSERT_TRUE(choices->isVisible());
  const QModelIndex linear = choices->model()->index(schedule->findText("linear"), 0);
  choices->scrollTo(linear);
  // Qt takes what comes at once after the opening for the second half of a double click.
  QTest::mouseMove(choices->viewport(), choices->visualRect(linear).center());
  QTest::qWait(QApplication::doubleClickInterval() + 20);
  hit(choices->viewport(), choices->visualRect(linear).center());
  EXPECT_EQ(bench_->recipe().text("schedule.type"), "linear");
  EXPECT_EQ(bench_->recipe().number("optimizer.lr"), 0.1);
  // Train.
  for (QToolButton* b : window_->findChildren<QToolButton*>())
    if (b->isVisible() && b->defaultAction() == window_->commands().action("run.train")) {
      ++clicks_;
      click(b, b->rect().center());
      break;
    }
  until([this] { return bench_->shown() && bench_->shown()->status == "finished" && !bench_->training(); });
  settle();
  const Recipe told = Recipe::from_json(bench_->shown()->recipe);
  EXPECT_EQ(told.text("schedule.type"), "linear");
  // Evaluate.
  menu("Run", "run.evaluate_last");
  EXPECT_TRUE(banner().startsWith("Evaluated: ")) << banner().toStdString();
  // Export: which state, and where to.
  const QString onnx = dir_.filePath("first.onnx");
  menu("File", "file.export");
  QListWidget* states = window_->picker()->list();
  ASSERT_GT(states->count(), 0);
  name_file(onnx);
  hit(states->viewport(), states->visualItemRect(states->item(0)).center());
  ASSERT_TRUE(std::filesystem::exists(onnx.toStdString())) << banner().toStdString();
  EXPECT_TRUE(banner().contains("verified on 64 test samples")) << banner().toStdString();
  EXPECT_FALSE(formats::load_onnx(onnx.toStdString()).graph.nodes.empty());
  EXPECT_TRUE(problems_.empty());
  EXPECT_LE(clicks_, 12);
  RecordProperty("clicks", clicks_);
  RecordProperty("milliseconds", static_cast<int>(clock.elapsed()));
}

}  // namespace
}  // namespace tenon::views
