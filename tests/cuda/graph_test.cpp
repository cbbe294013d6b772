// Steps on a GPU from plans, and from graphs that were recorded of them: the bits of their ops, results that stay what
// they are, and what cannot be recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/backend.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/graph/plan_replay.h"
#include "engine/graph/step_plan.h"
#include "engine/nn/layers.h"
#include "engine/nn/norm.h"
#include "engine/nn/random_state.h"
#include "engine/op/cuda_device.h"
#include "engine/ops/create.h"
#include "engine/ops/linalg.h"
#include "engine/ops/loss.h"
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
    PlanReplay replay(*plan, {SmallStep::batch(1)}, false);
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
  PlanReplay replay(*plan, {SmallStep::batch(1)}, false);
  const Tensor loss = replay.run({SmallStep::batch(1)})[1];
  const std::string first = host_bytes(loss);
  EXPECT_TRUE(replay.free());
  Tensor held = replay.run({SmallStep::batch(2)})[2];
  EXPECT_EQ(host_bytes(loss), first) << "a loss that is read later";
  EXPECT_FALSE(replay.free()) << "its gradient is held";
  held = view_of(held, Layout::contiguous({35}));
  EXPECT_FALSE(replay.free()) << "a view of it is";
  held.reset();
  EXPECT_TRUE(replay.free());
  PlanReplay giving(*plan, {SmallStep::batch(1)}, true);
  std::vector<Tensor> all;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(giving.free());
    all.push_back(giving.run({SmallStep::batch(i)})[2]);
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(host_bytes(all[static_cast<size_t>(i)]), host_bytes(step.ops(SmallStep::batch(i))[2])) << i;
}

TEST(CudaGraphs, WhatOtherThreadsDoMeanwhileIsDoneAndNoPartOfIt) {
  const Device gpu = emulated::device();
  const Backend& backend = backend_of(gpu);
  const Stream stream = current_stream(gpu);
  Tensor mine = full({100}, 1, DType::f32, gpu), theirs = full({100}, 1, DType::f32, gpu);
  backend.begin_graph(stream);
  {
    const NoGrad off;
    add_(mine, 1);
  }
  std::string seen;
  std::thread([&] {
    const NoGrad off;
    add_(theirs, 5);
    Tensor more = to_device(scattered({1 << 18}, 1), gpu);  // memory of its own, that goes back
    more.reset();
    seen = host_bytes(theirs);
  }).join();
  EXPECT_EQ(seen, host_bytes(full({100}, 6)));
  void* graph = backend.end_graph();
  EXPECT_EQ(host_bytes(mine), host_bytes(full({100}, 1))) << "it was recorded, not done";
  for (int i = 0; i < 2; ++i) backend.replay_graph(graph, stream);
  EXPECT_EQ(host_bytes(mine), host_bytes(full({100}, 3)));
  EXPECT_EQ(host_bytes(theirs), host_bytes(full({100}, 6)));
  backend.drop_graph(graph);
}

TEST(CudaGraphs, ConvolutionsNormsAndDropoutHaveTheBitsOfTheirOps) {
  const Device gpu = emulated::device();
  const auto make = [&] {
    Conv2dOptions same;
    same.padding = {1, 1};
    auto model = std::make_shared<nn::Sequential>(std::vector<std::shared_ptr<nn::Module>>{
        std::make_shared<nn::Conv2d>(2, 4, Dims{3, 3}, same, true, gpu),
        std::make_shared<nn::BatchNorm2d>(4, 1e-5, 0.1, true, gpu), nn::relu(), std::make_shared<nn::Dropout>(0.3),
        std::make_shared<nn::Flatten>(), std::make_shared<nn::Linear>(4 * 36, 3, true, gpu)});
    model->initialize(4);
    model->train();
    return model;
  };
  const auto ops = make(), planned = make();
  PlannedStep plans(*planned);
  bool recorded = false;
  for (uint64_t i = 0; i < 16; ++i) {
    const Tensor x = to_device(scattered({5, 2, 6, 6}, static_cast<double>(i)), gpu);
    const Tensor y = to_device(scattered({5, 3}, static_cast<double>(i) + 0.5), gpu);
    std::vector<std::string> bits[2];
    for (const bool plan : {false, true}) {
      nn::Sequential& model = plan ? *planned : *ops;
      const nn::RandomScope random({7, i, 0});
      t_state.origin.seq = 0;
      for (const nn::Named& p : model.parameters()) zero_grad(p.tensor);
      const auto eager = [&] {
        PlannedStep::Values v;
        v.output = model(x);
        v.loss = mse_loss(v.output, y);
        backward(v.loss);
        return v;
      };
      const PlannedStep::Values v = plan ? plans.run(x, y, 1, model.parameters(), eager) : eager();
      bits[plan] = {host_bytes(v.output), host_bytes(v.loss)};
      for (const nn::Named& p : model.parameters()) bits[plan].push_back(host_bytes(grad_of(p.tensor)));
      for (const nn::Named& b : model.buffers()) bits[plan].push_back(host_bytes(b.tensor));
    }
    EXPECT_EQ(bits[0], bits[1]) << "step " << i;
    for (const PlanNews& n : plans.take_news()) {
      EXPECT_FALSE(n.op_by_op) << n.text;
      recorded |= n.text.find("as one graph") != std::string::npos;
    }
  }
  EXPECT_TRUE(recorded);
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
  PlanReplay replay(plan, {x}, false);
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
    const PlanReplay replay(plan, {x}, false);
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
