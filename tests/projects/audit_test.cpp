// A step held against a reference: computed twice, the same bits at any number of threads; with another precision the
// first op that is beyond a tolerance, and how the difference grows; each op in f64; ONNX Runtime and files.
#include "projects/audit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/onnx/model.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "projects/finish.h"
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
  const Audit wide = audit_step(*project, run, 20, {.tolerance = 1e9, .set = {{"amp", "bf16"}}});
  EXPECT_LT(wide.difference.first, 0);
  EXPECT_NE(wide.sentence.find("are within"), std::string::npos) << wide.sentence;
}

TEST_F(AuditTest, AStepThatWasNotDoneIsRefused) {
  train("a", {}, 5);
  const int64_t run = project->run("a").id;
  EXPECT_THROW(audit_step(*project, run, 6, {}), Error);
  EXPECT_THROW(audit_step(*project, run, 0, {}), Error);
}

TEST_F(AuditTest, EveryOpIsWithinTheRoundingOfF32) {
  train("a", {}, 12);
  const int64_t run = project->run("a").id;
  const Audit a = audit_step(*project, run, 12, {.against = "f64"});
  EXPECT_LT(a.difference.first, 0) << a.sentence;
  EXPECT_EQ(a.difference.unknown, 0);
  EXPECT_GT(a.difference.ops.size(), 20u);
  std::set<std::string> phases;
  int64_t off = 0;
  for (const tracing::OpDifference& op : a.difference.ops) {
    phases.insert(op.phase);
    off += op.relative > 1e-9;
    EXPECT_LT(op.relative, 1e-5) << op.op << " #" << op.a;
  }
  EXPECT_TRUE(phases.contains("forward") && phases.contains("backward") && phases.contains("optimizer"));
  EXPECT_GT(off, 5) << "sums in f32 are off by something";
  EXPECT_DOUBLE_EQ(a.loss_a, audit_step(*project, run, 12, {}).loss_a) << "looking changed nothing";
}

TEST_F(AuditTest, HalfPrecisionIsNamedAgainstF64) {
  train("a", {{"amp", "bf16"}}, 6);
  const Audit a = audit_step(*project, project->run("a").id, 6, {.against = "f64"});
  ASSERT_GE(a.difference.first, 0) << a.sentence;
  const tracing::OpDifference& op = a.difference.ops[static_cast<size_t>(a.difference.first)];
  EXPECT_GT(op.relative, 1e-4);
  EXPECT_LT(op.relative, 1e-2);
  EXPECT_NE(a.sentence.find(op.op), std::string::npos) << a.sentence;
}

TEST_F(AuditTest, AFileIsBlamedAtTheNodeThatIsWrong) {
  train("a", {}, 20);
  const RunInfo run = project->run("a");
  const std::string file = dir / "m.onnx";
  export_run(*project, run, 20, ExportFormat::onnx, file, false);
  const Audit right = audit_step(*project, run.id, 20, {.against = "file", .file = file});
  EXPECT_LT(right.difference.first, 0) << right.sentence;
  EXPECT_EQ(right.difference.unknown, 0);

  const Audit stale = audit_step(*project, run.id, 5, {.against = "file", .file = file});
  ASSERT_EQ(stale.difference.first, 0) << "the file holds the weights of another step: " << stale.sentence;

  formats::OnnxModel m = formats::load_onnx(file);
  for (auto& [name, t] : m.graph.initializers)
    if (name == "layers.2.bias") t = clone(t), t.data<float>()[0] += 0.5f;
  formats::save_onnx(file, m);
  const Audit found = audit_step(*project, run.id, 20, {.against = "file", .file = file});
  ASSERT_GE(found.difference.first, 0);
  const tracing::OpDifference& op = found.difference.ops[static_cast<size_t>(found.difference.first)];
  EXPECT_EQ(op.module, "layers.2") << found.sentence;
  EXPECT_EQ(op.differs, 31) << "one feature of each sample";
  EXPECT_GT(found.difference.ops.back().carried, 0) << "it is carried to the end";
}

TEST_F(AuditTest, AProgramOfTorchExportIsHeldAgainstTheModelNodeByNode) {
  train("a", {}, 20);
  const RunInfo run = project->run("a");
  const std::string file = dir / "m.pt2";
  export_run(*project, run, 20, ExportFormat::pt2, file, false);
  const Audit right = audit_step(*project, run.id, 20, {.against = "file", .file = file});
  EXPECT_LT(right.difference.first, 0) << right.sentence;
  EXPECT_GE(right.difference.ops.size(), 5u) << "its nodes have the names of the model's";
  const Audit stale = audit_step(*project, run.id, 5, {.against = "file", .file = file});
  EXPECT_EQ(stale.difference.first, 0) << "the file holds the weights of another step: " << stale.sentence;
}

TEST_F(AuditTest, WhatCannotBeComparedIsSaid) {
  train("a", {}, 5);
  const int64_t run = project->run("a").id;
  EXPECT_THROW(audit_step(*project, run, 5, {.against = "nothing"}), Error);
  EXPECT_THROW(audit_step(*project, run, 5, {.against = "file"}), Error);
  EXPECT_THROW(audit_step(*project, run, 5, {.against = "file", .file = dir / "none.onnx"}), Error);
  EXPECT_THROW(audit_step(*project, run, 5, {.against = "onnx", .python = "/no/such/python"}), Error);
  EXPECT_THROW(audit_step(*project, run, 5, {.against = "onnx", .python = "/bin/false"}), Error);
}

TEST_F(AuditTest, AnotherProgramIsEndedWhereItIsNotWaitedFor) {
  train("a", {}, 5);
  const std::string python = dir / "python", asked = dir / "asked";
  write_file(python, "#!/bin/sh\ntouch " + asked + "\nsleep 200\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_SAYS(testing_words::message_of([&] {
                audit_step(*project, project->run("a").id, 5, {.against = "onnx", .python = python},
                           [&](int64_t, int64_t) { return !std::filesystem::exists(asked); });
              }),
              "cancelled");
  EXPECT_TRUE(std::filesystem::exists(asked));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(150));
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
