// A step op by op in the window, by mouse and keys: every view stands at the op; a value is changed and gone on with as
// a branch; one element is followed over steps.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include "engine/train/recipe.h"
#include "projects/time_travel.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/tensor/tensor_model.h"

namespace tenon::views {
namespace {

class WalkPage : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    train(30);
    load_step(12);
    ASSERT_TRUE(window_->commands().run("view.walk"));
    settle();
  }
  std::string says(const QString& name) { return part<QLabel>(name)->accessibleName().toStdString(); }
  const tracing::StepRecord& record() { return *bench_->links().record(); }
  int64_t at() {
    const Selection& s = bench_->bus.current();
    return s.kind == Selection::Kind::op ? s.id : -1;
  }
  void click_on(const QString& name) {
    auto* w = part(name);
    ASSERT_TRUE(w->isVisible() && w->isEnabled()) << name.toStdString();
    click(w, w->rect().center());
    settle();
  }
  /// A row of a table, by the mouse.
  void click_row(TableList* list, int row) {
    const QModelIndex i = list->model()->index(row, 0);
    list->scrollTo(i);
    click(list->viewport(), list->visualRect(i).center());
    settle();
  }
  void type(const QString& into, const QString& text) {
    auto* line = part<QLineEdit>(into);
    line->setFocus();
    line->selectAll();
    QTest::keyClick(line, Qt::Key_Delete);
    QTest::keyClicks(line, text);
    settle();
  }
  void run_to_end() {
    until([&] { return !bench_->jobs.has("walk"); });
    settle();
  }
};

TEST_F(WalkPage, keys_and_buttons_go_from_op_to_op_and_every_view_stands_there) {
  EXPECT_EQ(part<TableList>("walk.ops")->shown_rows(), static_cast<int>(record().ops.size()));
  key(window_.get(), Qt::Key_F8);
  settle();
  EXPECT_EQ(at(), 1);
  key(window_.get(), Qt::Key_F8);
  key(window_.get(), Qt::Key_F8);
  settle();
  EXPECT_EQ(at(), 3);
  key(window_.get(), Qt::Key_F8, Qt::ShiftModifier);
  settle();
  EXPECT_EQ(at(), 2);
  EXPECT_EQ(says("walk.at").substr(0, record().ops[1].name.size()), record().ops[1].name);
  click_on("walk.next");
  EXPECT_EQ(at(), 3);
  click_on("walk.back");
  EXPECT_EQ(at(), 2);
  // The tensor of the op is the one that the explorer shows.
  EXPECT_EQ(bench_->model<TensorModel>().tensor(), record().ops[1].outputs[0]);
  // Within the module, and out of it.
  const uint16_t module = record().ops[1].origin.module;
  click_on("walk.module.next");
  ASSERT_GT(at(), 2);
  EXPECT_EQ(record().ops[static_cast<size_t>(at()) - 1].origin.module, module);
  key(window_.get(), Qt::Key_F9, Qt::ShiftModifier);
  settle();
  EXPECT_EQ(at(), 2);
  key(window_.get(), Qt::Key_F7, Qt::ShiftModifier);
  settle();
  EXPECT_NE(record().ops[static_cast<size_t>(at()) - 1].origin.module, module);
  // What is selected elsewhere is where one stands, and back goes through it.
  bench_->select(Selection::op(7, "timeline"));
  settle();
  EXPECT_EQ(says("walk.at").find(record().ops[6].name + " #7"), 0u) << says("walk.at");
  bench_->bus.back();
  settle();
  EXPECT_EQ(says("walk.at").find(" #7"), std::string::npos);
  // A row of the ops is a way, too.
  click_row(part<TableList>("walk.ops"), 4);
  EXPECT_EQ(at(), 5);
}

TEST_F(WalkPage, runs_to_a_break_and_says_why_it_stopped) {
  EXPECT_FALSE(part<QToolButton>("walk.run")->isEnabled());
  type("walk.breaks", "op lin");
  EXPECT_TRUE(part<QToolButton>("walk.run")->isEnabled());
  type("walk.breaks", "max_abs(grad(*)) > 1");
  EXPECT_FALSE(part<QToolButton>("walk.run")->isEnabled());
  EXPECT_NE(says("walk.answer").find("output(...) is expected"), std::string::npos) << says("walk.answer");
  type("walk.breaks", "op linear");
  click_on("walk.run");
  run_to_end();
  const int64_t first = at();
  ASSERT_GT(first, 0);
  EXPECT_EQ(record().ops[static_cast<size_t>(first) - 1].name, "linear");
  EXPECT_EQ(says("walk.answer"), "Stopped at linear #" + std::to_string(first) + ": op linear");
  key(window_.get(), Qt::Key_F4);
  run_to_end();
  EXPECT_GT(at(), first);
  EXPECT_EQ(record().ops[static_cast<size_t>(at()) - 1].name, "linear");
  key(window_.get(), Qt::Key_F4, Qt::ShiftModifier);
  run_to_end();
  EXPECT_EQ(at(), first);
  type("walk.breaks", "nonfinite(output(*)) > 0");
  QTest::keyClick(part<QLineEdit>("walk.breaks"), Qt::Key_Return);
  run_to_end();
  EXPECT_EQ(says("walk.answer"), "No break holds on the way.");
  EXPECT_EQ(at(), first);
}

TEST_F(WalkPage, a_weight_is_seen_before_and_after_its_update_and_what_is_alive) {
  const auto last = static_cast<int64_t>(record().ops.size());
  bench_->select(Selection::op(last, "test"));
  settle();
  auto* tensors = part<TableList>("walk.tensors");
  int written = -1;
  for (int i = 0; i < static_cast<int>(tensors->table().rows.size()); ++i)
    if (tensors->table().rows[static_cast<size_t>(i)].cells[3].text == "written over")
      written = written < 0 ? i : written;
  ASSERT_GE(written, 0);
  const Table::Row row = tensors->table().rows[static_cast<size_t>(written)];
  EXPECT_NE(row.cells[1].text, row.cells[2].text);
  // Its row shows the tensor as of the op, and the op stays where one stands.
  click_row(tensors, written);
  const auto& model = bench_->model<TensorModel>();
  EXPECT_EQ(model.tensor(), row.selection.id);
  EXPECT_EQ(model.as_of(), last);
  const double after = value_at(model.value(), model.focus());
  key(window_.get(), Qt::Key_F8, Qt::ShiftModifier);
  settle();
  EXPECT_EQ(at(), last - 1);
  bench_->select(Selection::tensor(row.selection.id, "test"));
  settle();
  EXPECT_NE(value_at(model.value(), model.focus()), after);
  click_on("walk.page.alive");
  EXPECT_GT(part<TableList>("walk.alive")->shown_rows(), 4);
  EXPECT_NE(says("walk.alive.text").find("tensors are there"), std::string::npos);
}

TEST_F(WalkPage, a_value_is_changed_and_gone_on_with_as_a_branch) {
  uint32_t op = 0;
  for (const auto& o : record().ops)
    if (o.name == "linear" && !op) op = o.seq;
  bench_->select(Selection::op(op, "test"));
  ASSERT_TRUE(window_->commands().run("view.tensor"));
  settle();
  ASSERT_TRUE(part<QToolButton>("tensor.change")->isVisible());
  click_on("tensor.change");
  auto* form = part<QDialog>("edit");
  ASSERT_NE(form, nullptr);
  EXPECT_TRUE(form->isVisible());
  type("edit.value", "two");
  EXPECT_FALSE(part<QPushButton>("edit.train")->isEnabled());
  type("edit.value", "9");
  const QString edit = QString("12 #%1: output[0, 0] = 9").arg(op);
  EXPECT_TRUE(part<QLabel>("edit.said")->text().contains(edit)) << part<QLabel>("edit.said")->text().toStdString();
  auto* button = part<QPushButton>("edit.train");
  click(button, button->rect().center());
  until([&] { return bench_->project()->runs().size() == 2; });
  until([&] { return !bench_->training(); });
  settle();
  const auto runs = bench_->project()->runs();
  ASSERT_EQ(runs.size(), 2u);
  const projects::RunInfo child = bench_->project()->run(bench_->status().run);
  EXPECT_EQ(child.branch.step, 11);
  EXPECT_EQ(Recipe::from_json(child.recipe).text("edits"), edit.toStdString());
  const std::string parent = child.branch.name;
  EXPECT_EQ(projects::digest_at(*bench_->project(), child.id, 11),
            projects::digest_at(*bench_->project(), child.branch.run, 11));
  EXPECT_NE(projects::digest_at(*bench_->project(), child.id, 12),
            projects::digest_at(*bench_->project(), child.branch.run, 12));
}

TEST_F(WalkPage, an_element_is_followed_over_the_last_steps) {
  ASSERT_TRUE(window_->commands().run("view.tensor"));
  settle();
  int weight = -1;
  for (size_t i = 0; i < record().tensors.size(); ++i)
    if (record().tensors[i].category == Category::parameter && record().tensors[i].layout.ndim() == 2 && weight < 0)
      weight = static_cast<int>(i);
  ASSERT_GE(weight, 0);
  bench_->select(Selection::tensor(weight, "test"));
  settle();
  click_on("tensor.history");
  until([&] { return !bench_->jobs.has("history"); });
  settle();
  auto* table = part<TableList>("tensor.history.table");
  ASSERT_TRUE(table->isVisible());
  EXPECT_EQ(table->shown_rows(), 12);
  EXPECT_EQ(table->table().rows[0].cells[0].text, "12");
  EXPECT_NE(says("tensor.history.told").find("steps 1 to 12: written by "), std::string::npos)
      << says("tensor.history.told");
  // A row leads to its step, and the tensor that is looked at stays.
  click_row(table, 3);
  until([&] { return !bench_->loading_step(); });
  settle();
  EXPECT_EQ(record().step, 9);
  EXPECT_EQ(bench_->model<TensorModel>().tensor(), weight);
  click_on("tensor.history.close");
  EXPECT_FALSE(table->isVisible());
}

}  // namespace
}  // namespace tenon::views
