// A step op by op, without a window: the tables, the cursor, the tensor as of an op, and a change of a value as a form
// has it.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/messages.h"
#include "tests/views/step_fixture.h"
#include "tracing/record/step_recorder.h"
#include "tracing/record/tensor_versions.h"
#include "views/shared/step_cursor.h"
#include "views/tensor/edit_draft.h"
#include "views/tensor/history_table.h"
#include "views/tensor/tensor_model.h"
#include "views/walk/walk_table.h"

namespace tenon::views {
namespace {

using tracing::StepRecord;

std::shared_ptr<const StepRecord> recorded() {
  static const std::shared_ptr<const StepRecord> record = [] {
    const Template& t = find_template("spirals");
    TrainingSession session(t.model, t.recipe);
    session.step();
    return tracing::record_step(session, "cnn-01");
  }();
  return record;
}
int tensor_named(const StepRecord& r, const std::string& name) {
  for (size_t i = 0; i < r.tensors.size(); ++i)
    if (r.tensors[i].name == name) return static_cast<int>(i);
  ADD_FAILURE() << "no " << name;
  return 0;
}
/// The first weight of two axes.
std::string weight_of(const StepRecord& r) {
  for (const auto& t : r.tensors)
    if (t.category == Category::parameter && t.producer == 0 && t.layout.ndim() == 2) return t.name;
  return {};
}
uint32_t writer_of(const StepRecord& r, const std::string& name) {
  return r.tensors[static_cast<size_t>(tensor_named(r, name))].versions.back().from;
}

TEST(Walk, has_a_row_for_each_op_which_leads_to_it) {
  const StepRecord& r = *recorded();
  const Table t = walk_ops_table(r);
  ASSERT_EQ(t.rows.size(), r.ops.size());
  for (size_t i = 0; i < t.rows.size(); ++i) {
    EXPECT_TRUE(t.rows[i].selection.same(Selection::op(static_cast<int64_t>(i) + 1)));
    EXPECT_EQ(t.rows[i].cells[1].text, r.ops[i].name);
  }
  EXPECT_SAYS(cursor_text(r, 1), r.ops[0].name + " #1 of ");
  EXPECT_EQ(cursor_text(r, 0), "before the first op");
}

TEST(Walk, shows_a_weight_before_and_after_the_op_that_updates_it) {
  const StepRecord& r = *recorded();
  const std::string weight = weight_of(r);
  const Table t = walk_tensors_table(r, writer_of(r, weight));
  bool found = false;
  for (const Table::Row& row : t.rows) {
    if (row.cells[0].text != weight) continue;
    found = true;
    EXPECT_EQ(row.cells[3].text, "written over");
    EXPECT_NE(row.cells[1].key, row.cells[2].key);
    EXPECT_TRUE(row.selection.same(Selection::tensor(tensor_named(r, weight))));
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(walk_tensors_table(r, 0).rows.empty());
}

TEST(Walk, lists_what_is_there_the_largest_first) {
  const StepRecord& r = *recorded();
  const auto lives = tracing::tensor_lives(r);
  const Table first = walk_alive_table(r, lives, 1),
              later = walk_alive_table(r, lives, static_cast<uint32_t>(r.ops.size() / 2));
  EXPECT_LT(first.rows.size(), later.rows.size());
  for (size_t i = 1; i < later.rows.size(); ++i) EXPECT_GE(later.rows[i - 1].cells[1].key, later.rows[i].cells[1].key);
  EXPECT_SAYS(alive_text(r, lives, 1), std::to_string(first.rows.size()) + " tensors are there");
}

TEST(Walk, the_cursor_stays_where_it_is_while_tensors_are_chosen) {
  const Links links = testing::small_links();
  StepCursor c;
  EXPECT_FALSE(c.take(links, Selection::tensor(2)));
  EXPECT_EQ(c.seq(), 0u);
  EXPECT_TRUE(c.take(links, Selection::op(4)));
  EXPECT_FALSE(c.take(links, Selection::op(4)));
  EXPECT_FALSE(c.take(links, Selection::tensor(2)));
  EXPECT_FALSE(c.take(links, Selection::step(120)));
  EXPECT_FALSE(c.take(links, Selection::op(99)));
  EXPECT_EQ(c.seq(), 4u);
  EXPECT_TRUE(c.take(links, Selection::module("features.0")));
  EXPECT_EQ(c.seq(), 1u);
}

TEST(Walk, a_tensor_is_shown_as_of_the_op_that_is_selected) {
  const Links links{recorded()};
  const StepRecord& r = *recorded();
  const std::string weight = weight_of(r);
  const int t = tensor_named(r, weight);
  const uint32_t writer = writer_of(r, weight);
  TensorModel m;
  int asked = 0;
  m.on_need_stats = [&](int) { ++asked; };
  m.set_step(links);
  m.set_selection(Selection::tensor(t));
  EXPECT_TRUE(m.changes());
  const double before = value_at(m.value(), {1, 0});
  EXPECT_EQ(before, value_at(r.tensors[static_cast<size_t>(t)].value, {1, 0}));
  const int told = asked;
  m.set_selection(Selection::op(writer));
  m.set_selection(Selection::tensor(t));
  EXPECT_EQ(m.as_of(), writer);
  EXPECT_NE(value_at(m.value(), {1, 0}), before);
  EXPECT_GT(asked, told);
  m.set_selection(Selection::op(writer - 1));
  m.set_selection(Selection::tensor(t));
  EXPECT_EQ(value_at(m.value(), {1, 0}), before);
  // Another step: the same tensor and element.
  m.set_focus(1, 1);
  m.set_step(links);
  EXPECT_EQ(m.tensor(), t);
  EXPECT_EQ(m.focus(), (Dims{1, 1}));
}

TEST(EditDraft, is_of_the_op_that_gave_a_tensor_or_of_what_has_a_name) {
  const StepRecord& r = *recorded();
  const std::string weight = weight_of(r);
  const uint32_t writer = writer_of(r, weight);
  const auto text = [&](const std::string& name, uint32_t seq, const Dims& at = {0, 1}) {
    return edit_text(EditDraft(r, tensor_named(r, name), seq, at, 0.5).edit());
  };
  std::string output;
  uint32_t made = 0;
  for (const auto& op : r.ops)
    if (op.name == "linear" && !made) output = r.tensors[static_cast<size_t>(op.outputs[0])].name, made = op.seq;
  EXPECT_EQ(text(output, 0), "2 #" + std::to_string(made) + ": output[0, 1] = 0.5");
  EXPECT_EQ(text(output, made + 3), "2 #" + std::to_string(made) + ": output[0, 1] = 0.5");
  EXPECT_EQ(text(weight, 0), "2: weight(" + weight + ")[0, 1] = 0.5");
  EXPECT_EQ(text(weight, 3), "2 #3: weight(" + weight + ")[0, 1] = 0.5");
  EXPECT_EQ(text("grad of " + weight, 3), "2: grad(" + weight + ")[0, 1] = 0.5");
  EXPECT_EQ(text("grad of " + weight, writer - 1),
            "2 #" + std::to_string(writer - 1) + ": grad(" + weight + ")[0, 1] = 0.5");
  for (const auto& t : r.tensors)
    if (t.category == Category::optimizer && t.producer == 0 && t.layout.ndim() == 2) {
      EXPECT_EQ(text(t.name, 0), "2: state(" + t.name + ")[0, 1] = 0.5");
    }
  const EditDraft data(r, tensor_named(r, "batch input"), 0, {0, 1}, 0.5);
  EXPECT_SAYS(data.refusal(), "No op gave this tensor");

  EditDraft d(r, tensor_named(r, output), made, {0, 1}, 0.5);
  EXPECT_TRUE(d.refusal().empty());
  EXPECT_SAYS(d.when(), "when linear #" + std::to_string(made));
  d.set_whole(true);
  d.set_how(TensorEdit::How::clamp);
  d.set_bounds(2, 1);
  EXPECT_SAYS(d.fault(), "lower bound");
  d.set_bounds(-1, 1);
  EXPECT_TRUE(d.fault().empty());
  const projects::TrainOptions o = d.options();
  EXPECT_EQ(o.from, "cnn-01");
  EXPECT_EQ(o.from_step, 1);
  EXPECT_EQ(o.edits, std::vector<std::string>{"2 #" + std::to_string(made) + ": output clamp -1..1"});
  d.set_whole(false);
  EXPECT_SAYS(d.options().edits[0], "output[0, 1] clamp");

  auto sample = std::make_shared<StepRecord>(r);
  sample->sample = 3;
  EXPECT_SAYS(EditDraft(*sample, tensor_named(r, output), 0, {0, 1}, 0).refusal(), "test split");
}

TEST(History, has_a_row_a_step_the_last_one_first) {
  projects::ElementHistory h{"cnn-01", "fc1.weight", {3, 4}, {}};
  h.steps.push_back({.step = 11, .missing = {}, .had = true, .before = 1, .after = 1.5, .writes = {}});
  h.steps.back().writes.push_back({90, "adam_step", "fc1", "optimizer", 1, 1.5});
  h.steps.push_back({.step = 12, .missing = "the step has no fc1.weight", .writes = {}});
  const Table t = history_table(h);
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.rows[0].cells[4].text, "the step has no fc1.weight");
  EXPECT_EQ(t.rows[1].cells[4].text, "adam_step #90");
  EXPECT_EQ(t.rows[1].cells[3].key, 0.5);
  EXPECT_TRUE(t.rows[1].selection.same(Selection::step(11)));
  EXPECT_EQ(history_text(h), "fc1.weight[3, 4] of cnn-01, steps 11 to 12: written by adam_step");
}

}  // namespace
}  // namespace tenon::views
