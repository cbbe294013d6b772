// Views tried on a tensor in the window, by mouse and keys.
#include <gtest/gtest.h>

#include <QLineEdit>
#include <QTest>
#include <QToolButton>

#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/tensor/tensor_model.h"

namespace tenon::views {
namespace {

class TensorViewsPage : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(6);
    load_step(3);
    ASSERT_TRUE(window_->commands().run("view.tensor"));
    settle();
    show_weight();
  }
  TensorModel& model() { return bench_->model<TensorModel>(); }
  void show_weight() {
    const auto& tensors = bench_->links().record()->tensors;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].name == "layers.2.weight") bench_->select(Selection::tensor(static_cast<int64_t>(i), "test"));
    settle();
    ASSERT_EQ(model().record()->name, "layers.2.weight");
  }
  QLineEdit* line() { return part<QLineEdit>("tensor.views"); }
};

TEST_F(TensorViewsPage, what_is_typed_is_tried_and_what_is_not_finished_says_why) {
  click(line(), line()->rect().center());
  QTest::keyClicks(line(), ".T[::2]");
  settle();
  EXPECT_EQ(model().record()->layout.size, (Shape{32, 64}));
  EXPECT_EQ(line()->property("bad").toString(), "false");
  QTest::keyClicks(line(), ".per");
  settle();
  EXPECT_EQ(line()->property("bad").toString(), "true");
  EXPECT_TRUE(line()->toolTip().contains("there is no view \"per\"")) << line()->toolTip().toStdString();
  EXPECT_EQ(model().views(), ".T[::2]") << "what was shown stays";
  EXPECT_FALSE(part<QToolButton>("tensor.change")->isVisible() &&
               window_->commands().action("tensor.change")->isEnabled())
      << "an element of a what-if is none of the run's";
  line()->clear();
  settle();
  EXPECT_EQ(model().views(), "");
  EXPECT_EQ(model().record()->layout.size, (Shape{64, 64}));
  EXPECT_TRUE(thrown_.empty());
}

TEST_F(TensorViewsPage, another_tensor_is_shown_as_it_is_and_a_step_keeps_the_views) {
  click(line(), line()->rect().center());
  QTest::keyClicks(line(), "[0]");
  settle();
  load_step(4);
  EXPECT_EQ(model().views(), "[0]");
  EXPECT_EQ(line()->text(), "[0]");
  bench_->select(Selection::tensor(0, "test"));
  settle();
  EXPECT_EQ(model().views(), "");
  EXPECT_EQ(line()->text(), "");
}

}  // namespace
}  // namespace tenon::views
