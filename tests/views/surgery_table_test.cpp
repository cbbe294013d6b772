// What becomes of each tensor as a table, and a branch with another model as a draft.
#include "views/shared/surgery_table.h"

#include <gtest/gtest.h>

#include "engine/spec/chain.h"
#include "views/training/branch_draft.h"

namespace tenon::views {
namespace {

TEST(SurgeryTable, says_of_each_tensor_what_becomes_of_it) {
  using Deed = SurgeryRow::Deed;
  const std::vector<SurgeryRow> rows = {{"a.weight", Shape{4, 2}, Shape{6, 2}, Deed::widened, "2 more outputs"},
                                        {"a.bias", Shape{4}, Shape{4}, Deed::kept, ""},
                                        {"b.weight", std::nullopt, Shape{3}, Deed::begun, "as the seed gives it"},
                                        {"c.weight", Shape{5}, std::nullopt, Deed::gone, ""}};
  const Table few = surgery_table(rows, false), all = surgery_table(rows, true);
  ASSERT_EQ(few.rows.size(), 3u);
  ASSERT_EQ(all.rows.size(), 4u);
  EXPECT_EQ(few.rows[0].cells[2].text, "[4, 2] → [6, 2]");
  EXPECT_EQ(all.rows[1].cells[1].text, "kept");
  EXPECT_EQ(few.rows[1].cells[2].text, "[3]");
  EXPECT_EQ(few.rows[2].cells[1].text, "gone");
  EXPECT_EQ(few.rows[0].selection.kind, Selection::Kind::module);
  EXPECT_EQ(few.rows[0].selection.name, "a");
}

TEST(BranchDraft, takes_the_projects_model_where_it_is_told) {
  const auto model = [](int64_t width) {
    return Chain("m", {2})
        .add("fc1", "Linear", {{"out_features", width}})
        .add("fc2", "Linear", {{"out_features", int64_t{2}}})
        .done();
  };
  projects::RunInfo run;
  run.name = "whole";
  run.steps = run.total_steps = 40;
  run.recipe = Recipe().to_json();
  run.model = model(16);
  BranchDraft draft(run, 10);
  draft.set_with_model(true);
  EXPECT_FALSE(draft.with_model()) << "none is offered";
  draft.offer_model(std::make_shared<const ModelSpec>(model(24)));
  EXPECT_EQ(draft.options().model, nullptr);
  EXPECT_EQ(draft.said(), "");
  draft.set_with_model(true);
  EXPECT_EQ(draft.said(), "fc1.out_features 16 → 24");
  EXPECT_EQ(draft.options().model, draft.offered_model());
  draft.add_change();
  draft.set_value(0, 0.25);
  EXPECT_EQ(draft.settings().size(), 1u);
  EXPECT_EQ(draft.options().set, draft.settings());
  EXPECT_TRUE(draft.said().starts_with("fc1.out_features 16 → 24, optimizer.lr")) << draft.said();
}

}  // namespace
}  // namespace tenon::views
