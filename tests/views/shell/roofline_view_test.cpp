// The roofline in the window: its dots and rows select ops, what is selected elsewhere has a ring, and what it says
// where there is no step or nothing is measured.
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <filesystem>

#include "core/cache_folder.h"
#include "core/parallel.h"
#include "core/processor.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/roofline/roofline_model.h"

namespace tenon::views {
namespace {

class RooflinePage : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    forget();
  }
  void TearDown() override {
    WindowTest::TearDown();
    forget();
  }
  static void forget() {
    std::error_code none;
    std::filesystem::remove_all(cache::folder_of("ceilings"), none);
  }
  static kernels::Ceilings made() { return {processor_name(), num_threads(), 50e9, 10e9}; }
  void with_step(bool measured) {
    if (measured) kernels::keep_ceilings(made());
    open_spirals();
    train(10);
    load_step(5);
    bring();
  }
  void bring() {
    ASSERT_TRUE(window_->commands().run("view.roofline"));
    settle();
    until([&] { return view()->idle(); });
    settle();
  }
  View* view() { return window_->view("roofline"); }
  RooflineModel& model() { return bench_->model<RooflineModel>(); }
  /// What stands in the place of the picture.
  std::string said() {
    for (auto* label : view()->findChildren<QLabel*>())
      if (label->isVisible() && !label->text().isEmpty()) return label->text().toStdString();
    return {};
  }
  QPushButton* measure_button() {
    for (auto* button : view()->findChildren<QPushButton*>())
      if (button->isVisible() && button->text() == "Measure now") return button;
    return nullptr;
  }
  std::vector<size_t> row_of(uint32_t seq) {
    for (size_t i = 0; i < model().roofline()->rows.size(); ++i)
      for (const uint32_t call : model().roofline()->rows[i].calls)
        if (call == seq) return {i};
    return {};
  }
};

TEST_F(RooflinePage, a_click_on_a_dot_selects_its_longest_call_and_a_selection_elsewhere_marks_its_dot) {
  with_step(true);
  ASSERT_TRUE(model().roofline());
  EXPECT_EQ(model().roofline()->ceilings, made()) << "what is kept is not measured again";
  SceneCanvas* c = canvas("roofline");
  size_t row = 0;  // the last dot lies above all others
  for (const Scene::Target& t : model().last().targets())
    if (t.hit.kind == RooflineModel::dot) row = static_cast<size_t>(t.hit.id);
  QTest::mouseClick(c, Qt::LeftButton, {}, place(c, {RooflineModel::dot, static_cast<int64_t>(row)}));
  settle();
  const uint32_t call = model().roofline()->rows[row].calls.front();
  EXPECT_TRUE(bench_->bus.current().same(Selection::op(call)));
  EXPECT_EQ(model().marked(), std::vector<size_t>{row});
  // From elsewhere a call that is not the longest of its row.
  const auto& ops = bench_->links().record()->ops;
  const auto other = std::find_if(ops.begin(), ops.end(), [&](const auto& o) {
    const auto at = row_of(o.seq);
    return !at.empty() && at.front() != row && model().roofline()->rows[at.front()].calls.front() != o.seq;
  });
  ASSERT_NE(other, ops.end());
  bench_->select(Selection::op(other->seq, "test"));
  settle();
  EXPECT_EQ(model().marked(), row_of(other->seq));
  auto* list = part<TableList>("roofline.table");
  EXPECT_TRUE(list->currentIndex().isValid());
  const std::string marked = list->currentIndex().siblingAtColumn(0).data().toString().toStdString();
  EXPECT_EQ(marked, other->name);
  EXPECT_TRUE(bench_->bus.current().same(Selection::op(other->seq))) << "marking a row does not choose it";
}

TEST_F(RooflinePage, a_row_of_the_table_selects_and_the_most_to_win_is_first) {
  with_step(true);
  auto* list = part<TableList>("roofline.table");
  ASSERT_GT(list->shown_rows(), 3);
  EXPECT_EQ(static_cast<size_t>(list->shown_rows()), model().roofline()->rows.size());
  click(list->viewport(), list->visualRect(list->model()->index(0, 0)).center());
  settle();
  EXPECT_TRUE(bench_->bus.current().same(model().selection_of(0)));
  EXPECT_EQ(model().marked(), std::vector<size_t>{0});
  EXPECT_EQ(part<QLabel>("roofline.headline")->text().toStdString(), model().headline());
}

TEST_F(RooflinePage, what_is_not_measured_is_measured_by_a_button_beside_the_window) {
  make_window();
  bring();
  EXPECT_NE(said().find("Open a project"), std::string::npos) << said();
  close_window();
  open_spirals();
  bring();
  EXPECT_NE(said().find("Train, then pick a step"), std::string::npos) << said();
  train(6);
  load_step(3);
  bring();
  EXPECT_NE(said().find("is not measured yet"), std::string::npos) << said();
  EXPECT_FALSE(model().roofline());
  ASSERT_TRUE(measure_button());
  QTest::mouseClick(measure_button(), Qt::LeftButton);
  EXPECT_FALSE(view()->idle()) << "it is measured on a worker, and the click is over";
  EXPECT_FALSE(part<QToolButton>("roofline.again")->isEnabled());
  until([&] { return view()->idle(); });
  settle();
  ASSERT_TRUE(model().roofline());
  EXPECT_FALSE(view()->empty());
  EXPECT_EQ(kernels::kept_ceilings(), model().ceilings());
  EXPECT_TRUE(part<QToolButton>("roofline.again")->isEnabled());
  // Another step is held against the same.
  load_step(5);
  settle();
  EXPECT_EQ(model().roofline()->last_step, 5);
}

TEST_F(RooflinePage, it_is_not_measured_beside_a_run_that_trains) {
  open_spirals();
  train(6);
  load_step(3);
  bring();
  ASSERT_TRUE(measure_button());
  ASSERT_TRUE(window_->commands().run("run.step"));
  until([&] { return bench_->status().state == projects::RunStatus::State::paused; });
  settle();
  ASSERT_TRUE(bench_->training());
  EXPECT_FALSE(window_->commands().run("roofline.measure"));
  EXPECT_FALSE(part<QToolButton>("roofline.again")->isEnabled());
}

TEST_F(RooflinePage, one_command_brings_a_step_and_the_ceilings) {
  open_spirals();
  train(6);
  ASSERT_TRUE(window_->commands().run("roofline.show"));
  until([&] { return bench_->links() && view()->idle(); });
  settle();
  EXPECT_TRUE(model().roofline());
  EXPECT_FALSE(view()->empty());
}

}  // namespace
}  // namespace tenon::views
