// Steps on a GPU from plans, and from graphs that were recorded of them: the bits of their ops, results that stay what
// they are, and what cannot be recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/graph/plan_replay.h"
#include "engine/graph/step_plan.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/linalg.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/templates/templates.h"
#include "engine/train/planned_step.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/emulated.h"

namespace tenon {
namespace {

using emulated::scattered;

std::string host_bytes(const Tensor& t) {
  const Tensor own = contiguous(to_host(detach(t)));
  return {static_cast<const char*>(own.raw()), own.nbytes()};
}

/// y = tanh(x w), the sum of its squares, and the gradient of w.
struct SmallStep {
  Tensor w = to_device(scattered({7, 5}, 2), emulated::device());
  SmallStep() { set_requires_grad(w); }
  static Tensor batch(double phase) { return to_device(scattered({4, 7}, phase), emulated::device()); }
  std::vector<Tensor> ops(const Tensor& x) const {
    const Tensor y = tanh(matmul(x, w)), loss = sum(mul(y, y));
    return {y, loss, grad({loss}, {w})[0]};
  }
  std::unique_ptr<StepPlan> plan() const {
    const Tensor x = batch(1);
    zero_grad(w);
    t_state.origin.seq = 0;
    StepTracer tracer({x}, {w});
    Tensor y, loss;
    {
      const ObserveScope observe(tracer);
      y = tanh(matmul(x, w));
      loss = sum(mul(y, y));
      backward(loss);
    }
    StepTrace trace = tracer.finish({y, loss}, {w});
    zero_grad(w);
    EXPECT_EQ(trace.why_not, "");
    return std::make_unique<StepPlan>(std::move(trace), std::vector<Tensor>{w}, StepPlan::Keep::all, x.device());
  }
};

TEST(CudaGraphs, APlanHasTheBitsOfItsOpsKernelByKernelAndAsOneGraph) {
  const SmallStep step;
  const auto plan = step.plan();
  for (int order = 0; order < 3; ++order) {
    if (!emulated::set_order(order, 3) && order > 0) break;
    plan->run({SmallStep::batch(1)});
    PlanReplay replay(*plan, {SmallStep::batch(1)});
    for (int i = 0; i < 4; ++i) {
      const Tensor x = SmallStep::batch(i + 0.5);
      const std::vector<Tensor> ops = step.ops(x), planned = plan->run({x}), replayed = replay.run({x});
      ASSERT_EQ(replayed.size(), ops.size());
      for (size_t r = 0; r < ops.size(); ++r) {
        EXPECT_EQ(host_bytes(planned[r]), host_bytes(ops[r])) << "result " << r << " of step " << i;
        EXPECT_EQ(host_bytes(replayed[r]), host_bytes(ops[r])) << "result " << r << " of step " << i;
      }
    }
  }
  emulated::set_order(0, 1);
}

TEST(CudaGraphs, WhatAStepGaveIsNotOverwrittenByTheNext) {
  const SmallStep step;
  const auto plan = step.plan();
  plan->run({SmallStep::batch(1)});
  PlanReplay replay(*plan, {SmallStep::batch(1)});
  const auto passing = [&](double phase) { return replay.run({SmallStep::batch(phase)}); };
  Tensor loss = passing(1)[1];
  const std::string first = host_bytes(loss);
  std::vector<Tensor> held = passing(2);
  EXPECT_EQ(host_bytes(loss), first) << "a loss that is read later";
  const std::string gradient = host_bytes(held[2]);
  const std::vector<Tensor> next = passing(3), after = passing(4);
  EXPECT_EQ(host_bytes(held[2]), gradient) << "a gradient that is held";
  EXPECT_EQ(host_bytes(next[2]), host_bytes(step.ops(SmallStep::batch(3))[2]));
  EXPECT_EQ(host_bytes(after[2]), host_bytes(step.ops(SmallStep::batch(4))[2]));
  EXPECT_NE(host_bytes(next[2]), host_bytes(after[2]));
}

TEST(CudaGraphs, WritesAreToldToTensorsWithAName) {
  const Device gpu = emulated::device();
  Tensor mean = to_device(scattered({5}, 1), gpu);
  const Tensor x = to_device(scattered({5}, 2), gpu);
  const NoGrad off;
  t_state.origin.seq = 0;
  StepTracer tracer({x}, {mean});
  Tensor y;
  {
    const ObserveScope observe(tracer);
    add_(mean, x);
    y = mul(mean, x);
  }
  StepPlan plan(tracer.finish({y, y}, {}), {mean}, StepPlan::Keep::all, gpu);
  plan.run({x});
  PlanReplay replay(plan, {x});
  const uint32_t before = mean.version();
  const Tensor expected = add(mean, x);
  replay.run({x});
  EXPECT_EQ(mean.version(), before + 1);
  EXPECT_EQ(host_bytes(mean), host_bytes(expected)) << "the kernel was done once";
}

TEST(CudaGraphs, WhatRunsOnTheCpuIsNotRecordedAndThePlanGoesOn) {
  const Device gpu = emulated::device();
  ASSERT_FALSE(has_cuda_kernel("cholesky"));
  const Tensor x = to_device(add(matmul(scattered({4, 4}, 1), transpose(scattered({4, 4}, 1), 0, 1)), eye(4)), gpu);
  const NoGrad off;
  t_state.origin.seq = 0;
  StepTracer tracer({x}, {});
  Tensor y;
  {
    const ObserveScope observe(tracer);
    y = mul(cholesky(x), x);
  }
  StepPlan plan(tracer.finish({y, y}, {}), {}, StepPlan::Keep::all, gpu);
  plan.run({x});
  try {
    const PlanReplay replay(plan, {x});
    FAIL() << "it was recorded";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("cholesky has no kernel for the GPU"), std::string::npos) << e.message();
  }
  EXPECT_EQ(host_bytes(plan.run({x})[0]), host_bytes(mul(cholesky(x), x))) << "the stream is as before";
}

Recipe graph_recipe(const std::string& name, const char* compile,
                    const std::vector<std::pair<std::string, std::string>>& settings) {
  Recipe r = find_template(name).recipe;
  for (const auto& [key, value] : settings) r.set(key, value);
  r.set("compile", compile);
  return r;
}

std::string saved_bytes(const Checkpoint& c) {
  std::string all;
  for (const auto& [name, tensor] : c.tensors) all += name + host_bytes(tensor);
  return all;
}

TEST(CudaGraphs, ARunHasTheBitsOfItsOps) {
  const ModelSpec& model = find_template("spirals").model;
  const std::vector<std::pair<std::string, std::string>> several[] = {
      {{"optimizer.clip_norm", "0.5"}},
      {{"amp", "bf16"}, {"optimizer.type", "adamw"}},
  };
  for (const auto& settings : several) {
    SCOPED_TRACE(settings.back().first);
    TrainingSession ops(model, graph_recipe("spirals", "false", settings), {emulated::device(), nullptr});
    TrainingSession planned(model, graph_recipe("spirals", "true", settings), {emulated::device(), nullptr});
    std::string told;
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(ops.step().loss, planned.step().loss) << "step " << i;
      for (const PlanNews& n : planned.take_plan_news()) told += n.text + "\n";
    }
    EXPECT_NE(told.find("is done as one graph of cuda:0"), std::string::npos) << told;
    EXPECT_EQ(told.find("op by op"), std::string::npos) << told;
    EXPECT_EQ(saved_bytes(ops.save()), saved_bytes(planned.save()));
    EXPECT_EQ(ops.evaluate().loss, planned.evaluate().loss);
  }
}

}  // namespace
}  // namespace tenon
