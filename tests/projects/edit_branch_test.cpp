// Runs that go on from a step with a value changed within it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/parallel.h"
#include "engine/train/recipe.h"
#include "engine/train/tensor_edit.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tests/projects/spirals.h"
#include "tracing/record/step_record.h"
#include "tracing/record/tensor_versions.h"

namespace tenon::projects {
namespace {

using testing_words::error_of;

struct EditedBranches : testing_files::BranchesTest {
  void SetUp() override {
    BranchesTest::SetUp();
    record = record_step(*project, project->run("parent").id, 21);
  }
  static TrainOptions from(const std::string& run, int64_t step, std::vector<std::string> edits) {
    TrainOptions o = BranchesTest::from(run, step);
    o.edits = std::move(edits);
    return o;
  }
  /// Edits of step 21 that write what is there, at every op and every kind of tensor.
  std::vector<std::string> same_values() const {
    std::vector<std::string> all;
    for (const tracing::OpRecord& op : record->ops)
      for (size_t k = 0; k < op.outputs.size(); ++k) {
        const tracing::TensorRecord& t = record->tensors[static_cast<size_t>(op.outputs[k])];
        const Tensor value = tracing::value_after(t, op.seq);
        if (!value.defined() || value.numel() == 0) continue;
        const Dims first = Dims::filled(value.ndim(), 0);
        all.push_back(edit_text({21, op.seq, TensorEdit::Target::output, static_cast<int>(k), "", first,
                                 TensorEdit::How::set, value_at(value, first)}));
      }
    for (const tracing::TensorRecord& t : record->tensors) {
      const bool weight = t.category == Category::parameter && t.producer == 0;
      if (weight) all.push_back(fmt_edit("weight", t.name));
      if (t.name.starts_with("grad of ")) all.push_back(fmt_edit("grad", t.name.substr(8)));
      if (t.category == Category::optimizer && t.producer == 0) all.push_back(fmt_edit("state", t.name));
    }
    return all;
  }
  std::string some_weight() const {
    for (const tracing::TensorRecord& t : record->tensors)
      if (t.category == Category::parameter && t.layout.ndim() == 2) return t.name;
    return {};
  }
  static std::string fmt_edit(const std::string& what, const std::string& name) {
    return "21: " + what + "(" + name + ") * 1";
  }
  /// Of an op of step 21 that the forward pass has.
  std::string edit_of(const std::string& op, const std::string& change) const {
    for (const tracing::OpRecord& o : record->ops)
      if (o.name == op) return "#" + std::to_string(o.seq) + ": output" + change;
    ADD_FAILURE() << "no " << op;
    return {};
  }

  std::shared_ptr<const tracing::StepRecord> record;
};

TEST_F(EditedBranches, writing_what_is_there_has_the_digests_of_the_parent) {
  const RunInfo parent = project->run("parent");
  const auto edits = same_values();
  ASSERT_GT(edits.size(), record->ops.size());
  const RunInfo child = branch(from("parent", 20, edits));
  for (int64_t step : {0, 20, 21, 22, 40, 60}) EXPECT_EQ(digest_of(child, step), digest_of(parent, step)) << step;
  const auto mine = project->metric(child.id, "loss"), theirs = project->metric(parent.id, "loss");
  ASSERT_EQ(mine.size(), 40u);
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_EQ(mine[i].value, theirs[i + 20].value);
}

TEST_F(EditedBranches, time_travel_crosses_the_edit_bit_for_bit) {
  const RunInfo parent = project->run("parent");
  const RunInfo child =
      branch(from("parent", 20, {edit_of("linear", "[0, 0] = 9"), "weight(" + some_weight() + ")[0, 1] * 3"}));
  EXPECT_EQ(digest_of(child, 20), digest_of(parent, 20));
  EXPECT_NE(digest_of(child, 21), digest_of(parent, 21));
  std::vector<std::string> kept;
  for (int64_t step = 21; step <= 60; ++step) kept.push_back(digest_of(child, step));
  // From the one checkpoint before the edit, whatever the number of threads.
  for (const CheckpointInfo& c : project->checkpoints(child.id))
    if (c.step > 20) project->delete_checkpoint(c.id);
  for (int64_t step : {21, 22, 33, 60})
    for (int threads : {1, 2}) EXPECT_EQ(digest_of(child, step, threads), kept[static_cast<size_t>(step - 21)]) << step;
  // What is recorded of that step is what the run did, and another step knows nothing of it.
  EXPECT_EQ(record_step(*project, child.id, 21)->loss, project->metric(child.id, "loss").front().value);
  EXPECT_NE(record_step(*project, child.id, 21)->loss, record->loss);
  EXPECT_EQ(record_step(*project, child.id, 25)->loss, project->metric(child.id, "loss").at(4).value);
}

TEST_F(EditedBranches, the_edit_is_kept_with_the_run_and_by_its_branches) {
  const std::string edit = edit_of("linear", " * 0");
  const RunInfo child = branch(from("parent", 20, {edit}));
  EXPECT_EQ(Recipe::from_json(child.recipe).text("edits"), "21 " + edit);
  const RunInfo again = branch(from(child.name, 20, {}));
  EXPECT_EQ(digest_of(again, 60), digest_of(child, 60));
  const RunInfo more = branch(from(child.name, 20, {"25: weight(" + some_weight() + ") * 2"}));
  EXPECT_EQ(Recipe::from_json(more.recipe).text("edits"), "21 " + edit + "; 25: weight(" + some_weight() + ") * 2");
  EXPECT_EQ(digest_of(more, 24), digest_of(child, 24));
  EXPECT_NE(digest_of(more, 25), digest_of(child, 25));
  const RunInfo later = branch(from(child.name, 40, {}));
  EXPECT_EQ(digest_of(later, 60), digest_of(child, 60));
}

TEST_F(EditedBranches, is_resumed_like_any_run) {
  TrainOptions o = from("parent", 20, {edit_of("linear", "[0, 0] = 9")});
  const std::string whole = digest_of(branch(o), 60);
  o.run_name = "cut";
  o.start_paused = true;
  {
    auto d = RunDriver::start(project, o);
    d->stop();
    d->wait();
  }
  EXPECT_EQ(project->run("cut").steps, 20);
  train("", {}, 0, "cut");
  EXPECT_EQ(digest_of(project->run("cut"), 60), whole);
  EXPECT_SAYS(error_of([&] {
                TrainOptions resumed;
                resumed.resume = "cut";
                resumed.edits = {"70 #1: output = 0"};
                RunDriver::start(project, resumed);
              }),
              "edits cannot change in a run that has begun");
}

TEST_F(EditedBranches, what_cannot_be_begins_no_run) {
  const size_t before = project->runs().size();
  const auto says = [&](const std::string& edit) {
    return error_of([&] { RunDriver::start(project, from("parent", 20, {edit})); });
  };
  EXPECT_SAYS(says("#9999: output = 1"), "step 21 has no op #9999");
  EXPECT_SAYS(says("20 #1: output = 1"), "a branch from step 20 begins with step 21");
  EXPECT_SAYS(says("weight(nobody) = 1"), "there is no nobody");
  EXPECT_SAYS(says(edit_of("linear", "[999, 0] = 1")), "there is no element [999, 0]");
  EXPECT_SAYS(says("#1 output = 1"), "character");
  EXPECT_EQ(project->runs().size(), before);
}

}  // namespace
}  // namespace tenon::projects
