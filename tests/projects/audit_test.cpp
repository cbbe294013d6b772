// A step computed twice: the same bits at any number of threads; with another precision the first op that is beyond a
// tolerance, and how the difference grows.
#include "projects/audit.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/create.h"
#include "tests/messages.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using AuditTest = testing_files::SpiralsTest;

TEST_F(AuditTest, ThreadsChangeNoBit) {
  train("a", {}, 30);
  const int64_t run = project->run("a").id;
  for (int64_t step : {1, 17, 30}) {
    const Audit a = audit_step(*project, run, step, {.threads_a = 1, .threads_b = 2});
    EXPECT_TRUE(a.difference.equal()) << a.sentence;
    EXPECT_GT(a.difference.ops.size(), 10u);
    EXPECT_EQ(a.loss_a, a.loss_b);
    EXPECT_NE(a.sentence.find("the same bits"), std::string::npos);
  }
}

TEST_F(AuditTest, AnotherPrecisionIsNamedAtItsFirstOp) {
  train("a", {}, 20);
  const int64_t run = project->run("a").id;
  const Audit a = audit_step(*project, run, 20, {.set = {{"amp", "bf16"}}});
  EXPECT_FALSE(a.difference.equal());
  ASSERT_GE(a.difference.first, 0);
  const tracing::OpDifference& op = a.difference.ops[static_cast<size_t>(a.difference.first)];
  EXPECT_EQ(op.op, "linear");
  EXPECT_EQ(op.module, "layers.0");
  EXPECT_GT(op.relative, 1e-5);
  EXPECT_LT(op.relative, 0.05);
  for (int64_t i = 0; i < a.difference.first; ++i) EXPECT_EQ(a.difference.ops[static_cast<size_t>(i)].differs, 0);
  EXPECT_NEAR(a.loss_a, a.loss_b, 0.05);
  const Audit wide = audit_step(*project, run, 20, {.set = {{"amp", "bf16"}}, .tolerance = 1e9});
  EXPECT_LT(wide.difference.first, 0);
  EXPECT_NE(wide.sentence.find("are within"), std::string::npos) << wide.sentence;
}

TEST_F(AuditTest, AStepThatWasNotDoneIsRefused) {
  train("a", {}, 5);
  const int64_t run = project->run("a").id;
  EXPECT_THROW(audit_step(*project, run, 6, {}), Error);
  EXPECT_THROW(audit_step(*project, run, 0, {}), Error);
}

TEST(StepDifference, NamesTheElementThatIsFarthestApart) {
  auto step = [](std::vector<float> values) {
    tracing::StepRecord r;
    Tensor t = empty({2, 2});
    std::copy(values.begin(), values.end(), t.data<float>());
    r.tensors.push_back({.name = "y", .value = t});
    tracing::OpRecord op;
    op.seq = 1;
    op.name = "mul";
    op.outputs = {0};
    r.ops.push_back(op);
    return r;
  };
  const auto d = tracing::compare_steps(step({3, 4, 0, 0}), step({3, 4, 0, 1}), 0.1);
  ASSERT_EQ(d.first, 0);
  EXPECT_EQ(d.ops[0].differs, 1);
  EXPECT_EQ(to_string(d.ops[0].index), "[1, 1]");
  EXPECT_DOUBLE_EQ(d.ops[0].relative, 0.2);
  EXPECT_LT(tracing::compare_steps(step({3, 4, 0, 0}), step({3, 4, 0, 1}), 0.3).first, 0);
  const auto bad = tracing::compare_steps(step({3, 4, 0, 0}), step({3, NAN, 0, 0}), 0.5);
  EXPECT_EQ(bad.first, 0) << "what is not finite in one alone is beyond any tolerance";
  EXPECT_TRUE(tracing::compare_steps(step({NAN, 4, 0, 0}), step({NAN, 4, 0, 0}), 0).equal());
}

}  // namespace
}  // namespace tenon::projects
