// One call of an op in a recorded step, followed from its inputs to its gradient.
#include "tracing/ops/op_story.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/op/op.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/messages.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_recorder.h"

namespace tenon::tracing {
namespace {

using testing_words::error_of;

const StepRecord& told_step() {
  static const std::shared_ptr<const StepRecord> record = [] {
    const Template& t = find_template("spirals");
    TrainingSession session(t.model, t.recipe);
    session.step();
    return record_step(session, "run");
  }();
  return *record;
}
const OpRecord& first_of(const std::string& op) {
  const auto& ops = told_step().ops;
  return *std::find_if(ops.begin(), ops.end(), [&](const OpRecord& o) { return o.name == op; });
}
/// What is told of a stage, in order.
std::vector<std::string> lines_of(const Finding& f, const std::string& stage) {
  std::vector<std::string> lines;
  for (const auto& row : f.tables.at(0).rows)
    if (std::get<std::string>(row[0]) == stage) lines.push_back(std::get<std::string>(row[1]));
  return lines;
}
template <class T>
T figure(const Finding& f, const std::string& name) {
  for (const Fact& fact : f.facts)
    if (fact.name == name) return std::get<T>(fact.value);
  ADD_FAILURE() << "no figure " << name;
  return {};
}

TEST(OpStory, every_op_of_a_step_has_one) {
  for (const OpRecord& op : told_step().ops) {
    const Finding f = op_story(told_step(), op.seq);
    EXPECT_EQ(f.sentence.find(op.name + " #" + std::to_string(op.seq) + " of "), 0u) << f.sentence;
    EXPECT_EQ(lines_of(f, "kernel").size(), 1u) << f.sentence;
    EXPECT_EQ(figure<int64_t>(f, "took_ns"), op.duration_ns);
    const size_t tensors =
        static_cast<size_t>(std::count_if(op.inputs.begin(), op.inputs.end(), [](int i) { return i >= 0; }) +
                            std::count_if(op.outputs.begin(), op.outputs.end(), [](int i) { return i >= 0; }));
    EXPECT_EQ(f.tables.at(1).rows.size(), tensors) << f.sentence;
  }
}

TEST(OpStory, a_layers_product_goes_to_its_gradient) {
  const OpRecord& op = first_of("linear");
  const Finding f = op_story(told_step(), op.seq);
  const std::string called = lines_of(f, "call").at(0);
  EXPECT_NE(called.find(module_path(op.origin.module) + " calls linear on "), std::string::npos) << called;
  int64_t ops = 0, ns = 0;
  for (const OpRecord& o : told_step().ops)
    if (o.forward_seq == op.seq) ++ops, ns += o.duration_ns;
  ASSERT_GT(ops, 0);
  EXPECT_EQ(figure<int64_t>(f, "gradient_ns"), ns);
  const auto gradient = lines_of(f, "gradient");
  EXPECT_EQ(static_cast<int64_t>(std::count_if(gradient.begin(), gradient.end(),
                                               [](const auto& s) { return s.find(" gives ") != s.npos; })),
            ops);
  EXPECT_EQ(lines_of(f, "graph").size(), 1u);
  EXPECT_GT(figure<int64_t>(f, "saved_bytes"), 0);
  // Its values are those of the tensor.
  const TensorRecord& in = told_step().tensors[static_cast<size_t>(op.inputs[0])];
  const Statistics s = statistics(in.value);
  const auto& row = f.tables.at(1).rows.at(0);
  EXPECT_EQ(std::get<std::string>(row[1]), in.name);
  EXPECT_EQ(std::get<double>(row[4]), s.min);
  EXPECT_EQ(std::get<double>(row[5]), s.max);
}

TEST(OpStory, what_belongs_to_a_gradient_says_whose) {
  for (const OpRecord& o : told_step().ops) {
    if (!o.forward_seq) continue;
    const OpRecord& of = told_step().ops[o.forward_seq - 1];
    const std::string said = lines_of(op_story(told_step(), o.seq), "gradient").at(0);
    EXPECT_NE(said.find("gradient of " + of.name + " #" + std::to_string(of.seq)), std::string::npos) << said;
  }
}

TEST(OpStory, calls_add_up) {
  int64_t count = 0, ns = 0;
  for (const OpRecord& o : told_step().ops)
    if (o.name == "linear") ++count, ns += o.duration_ns;
  const Finding f = op_calls(told_step(), "linear");
  EXPECT_EQ(figure<int64_t>(f, "calls"), count);
  EXPECT_EQ(figure<int64_t>(f, "took_ns"), ns);
  const auto& rows = f.tables.at(0).rows;
  ASSERT_EQ(static_cast<int64_t>(rows.size()), count);
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_GE(std::get<int64_t>(rows[i - 1][5]), std::get<int64_t>(rows[i][5]));
  EXPECT_EQ(f.tables.at(0).sights.size(), rows.size());
}

TEST(OpStory, what_is_not_there_is_told) {
  EXPECT_FALSE(op_calls(told_step(), "conv3d").ok);
  const auto count = static_cast<uint32_t>(told_step().ops.size());
  const std::string said = error_of([&] { op_story(told_step(), count + 1); });
  EXPECT_NE(said.find("1 to " + std::to_string(count)), std::string::npos) << said;
  EXPECT_NE(error_of([] { op_story(told_step(), 0); }), "no error");
}

}  // namespace
}  // namespace tenon::tracing
