// An op looked into in the window: the call that is selected, all its calls, its definition and its source.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTest>
#include <QToolButton>

#include "engine/op/op.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/ops/op_definition.h"
#include "tracing/ops/op_story.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class OpPage : public testing::WindowTest {
 protected:
  void with_step() {
    open_spirals();
    train(10);
    load_step(5);
    bring();
  }
  void bring() {
    ASSERT_TRUE(window_->commands().run("view.ops"));
    settle();
    looked();
  }
  void looked() {
    until([&] { return !bench_->jobs.has("op"); });
    settle();
  }
  std::string sentence() { return part<QLabel>("ops.sentence")->text().toStdString(); }
  const tracing::StepRecord& record() { return *bench_->links().record(); }
  TableList* shown_rows() {
    for (auto* list : part("ops.tables")->findChildren<TableList*>())
      if (list->isVisible()) return list;
    return nullptr;
  }
  uint32_t first(const std::string& op) {
    for (const auto& o : record().ops)
      if (o.name == op) return o.seq;
    return 0;
  }
};

TEST_F(OpPage, without_a_step_every_op_is_there_with_its_definition) {
  make_window();
  bring();
  EXPECT_EQ(sentence(), tracing::op_definition("conv2d").sentence);
  EXPECT_FALSE(part<QToolButton>("ops.story")->isEnabled());
  EXPECT_FALSE(part<QToolButton>("ops.calls")->isEnabled());
  auto* names = part<QComboBox>("ops.name");
  EXPECT_EQ(static_cast<size_t>(names->count()), all_ops().size());
  names->lineEdit()->setFocus();
  names->lineEdit()->selectAll();
  QTest::keyClicks(names->lineEdit(), "linear");
  QTest::keyClick(names->lineEdit(), Qt::Key_Return);
  looked();
  EXPECT_EQ(sentence(), tracing::op_definition("linear").sentence);
  press("ops.source");
  looked();
  EXPECT_NE(part<QPlainTextEdit>("ops.text")->toPlainText().toStdString().find("struct Linear"), std::string::npos);
}

TEST_F(OpPage, it_follows_the_op_that_is_selected_and_its_rows_select) {
  with_step();
  const uint32_t call = first("linear");
  ASSERT_GT(call, 0u);
  bench_->select(Selection::op(call, "test"));
  settle();
  looked();
  EXPECT_TRUE(part<QToolButton>("ops.story")->isChecked());
  EXPECT_EQ(sentence(), tracing::op_story(record(), call).sentence);
  // A row of the gradient is a way to that op, and the page goes with it.
  TableList* rows = shown_rows();
  ASSERT_NE(rows, nullptr);
  const auto told = tracing::op_story(record(), call).tables.at(0).rows;
  int gradient = -1;
  for (size_t i = 0; i < told.size(); ++i)
    if (std::get<std::string>(told[i][1]).find(" gives ") != std::string::npos) gradient = static_cast<int>(i);
  ASSERT_GE(gradient, 0);
  const QModelIndex at = rows->model()->index(gradient, 1);
  rows->scrollTo(at);
  click(rows->viewport(), rows->visualRect(at).center());
  settle();
  looked();
  const uint32_t now = bench_->links().op_of(bench_->bus.current());
  ASSERT_GT(now, 0u);
  EXPECT_EQ(record().ops[now - 1].forward_seq, call);
  EXPECT_EQ(sentence(), tracing::op_story(record(), now).sentence);
}

TEST_F(OpPage, the_list_of_calls_stays_while_one_walks_along_it) {
  with_step();
  bench_->select(Selection::op(first("linear"), "test"));
  settle();
  press("ops.calls");
  looked();
  const std::string listed = tracing::op_calls(record(), "linear").sentence;
  EXPECT_EQ(sentence(), listed);
  TableList* rows = shown_rows();
  ASSERT_NE(rows, nullptr);
  ASSERT_GT(rows->shown_rows(), 1);
  for (int row : {1, 0}) {
    click(rows->viewport(), rows->visualRect(rows->model()->index(row, 1)).center());
    settle();
    looked();
    const uint32_t now = bench_->links().op_of(bench_->bus.current());
    ASSERT_GT(now, 0u);
    EXPECT_EQ(record().ops[now - 1].name, "linear");
    EXPECT_EQ(sentence(), listed);
  }
}

TEST_F(OpPage, where_the_step_is_gone_the_definition_stays) {
  with_step();
  bench_->select(Selection::op(static_cast<int64_t>(record().ops.size()), "test"));
  settle();
  looked();
  const std::string op = record().ops.back().name;
  open(file_);
  settle();
  looked();
  EXPECT_FALSE(bench_->links());
  EXPECT_EQ(sentence(), tracing::op_definition(op).sentence);
  EXPECT_FALSE(part<QToolButton>("ops.story")->isEnabled());
}

}  // namespace
}  // namespace tenon::views
