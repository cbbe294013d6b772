// A step from a plan has the bits of its ops: templates, layers that draw and count, precisions, batches of two sizes;
// and what cannot be planned says why.
#include "engine/graph/step_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "core/profile.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/ops/activation.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/templates/templates.h"
#include "engine/train/open_data.h"
#include "engine/train/planned_step.h"
#include "tests/engine/same_bits.h"
#include "tests/engine/sessions.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using namespace testing_sessions;
using testing_words::error_of;
using I = int64_t;

/// Convolution, statistics, dropout, views and sums of two ways.
ModelSpec busy_model() {
  Chain c("busy", {1, 28, 28});
  c.add("conv", "Conv2d", {{"out_channels", I{4}}, {"kernel_size", std::vector<I>{3, 3}}});
  c.add("norm", "BatchNorm2d").add("act", "GELU").add("pool", "MaxPool2d").add("drop", "Dropout", {{"p", 0.25}});
  return c.add("flat", "Flatten").add("fc", "Linear", {{"out_features", I{10}}}).done();
}

/// Says how many sizes of batch were planned.
size_t plans_of(const TrainingSession& s) {
  size_t n = 0;
  for (const std::string& line : s.planned()) {
    n += line.find("from a plan") != line.npos;
    const size_t more = line.find(" other form");
    if (more != line.npos) n += std::stoul(line.substr(line.rfind(' ', more - 1)));
  }
  return n;
}
std::string told(const TrainingSession& s) {
  std::string all;
  for (const std::string& line : s.planned()) all += line + "\n";
  return all;
}

/// Trains with and without a plan; the states have to be the same. What is told of the plans.
std::string expect_planned(const ModelSpec& model, Recipe recipe, I steps, size_t plans) {
  const auto data = std::make_shared<const data::Split>(open_data(recipe));
  recipe.set("compile", "false");
  TrainingSession eager(model, recipe, {{}, nullptr, data});
  recipe.set("compile", "true");
  TrainingSession planned(model, recipe, {{}, nullptr, data});
  for (I i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    const StepResult a = eager.step(), b = planned.step();
    EXPECT_EQ(a.loss, b.loss) << "step " << a.step << "\n" << told(planned);
    EXPECT_EQ(a.accuracy, b.accuracy) << "step " << a.step;
    EXPECT_EQ(a.grad_norm, b.grad_norm) << "step " << a.step;
  }
  EXPECT_TRUE(eager.planned().empty());
  EXPECT_EQ(plans_of(planned), plans) << told(planned);
  const Checkpoint a = eager.save(), b = planned.save();
  expect_same(a, b);
  return told(planned);
}

TEST(StepPlan, EveryTemplateHasTheBitsOfItsOps) {
  for (const Template& t : templates()) {
    SCOPED_TRACE(t.name);
    Recipe r = t.recipe;
    r.set("data.batch_size", "3");
    if (r.fallback("data.workers") != r.at("data.workers")) r.set("data.workers", "0");
    const std::string plan = expect_planned(t.model, r, 5, 1);
    if (t.name == "resnet18") EXPECT_SAYS(plan, "tile by tile in");  // sums and what comes after them
  }
}

/// The bytes that the values of its steps share.
I arena_of(const ModelSpec& model, const Recipe& recipe, I* again = nullptr) {
  TrainingSession s(model, with(recipe, {{"compile", "true"}}));
  for (I i = 0; i < 3; ++i) s.step();
  if (!s.plan()) throw Error("no plan: " + told(s));
  if (again) *again = s.plan()->figures().again;
  return s.plan()->figures().arena_bytes;
}

TEST(StepPlan, WhatIsCheapIsComputedAgainForLessMemoryAndTheSameBits) {
  for (const char* name : {"byte-gpt", "resnet18", "u-net"}) {
    SCOPED_TRACE(name);
    const Template& t = find_template(name);
    Recipe kept = t.recipe;
    kept.set("data.batch_size", "4");
    if (kept.fallback("data.workers") != kept.at("data.workers")) kept.set("data.workers", "0");
    const Recipe again = with(kept, {{"recompute", "1"}});
    EXPECT_SAYS(expect_planned(t.model, again, 5, 1), "for the second time");
    I kernels = 0;
    const I all = arena_of(t.model, kept, &kernels);
    EXPECT_EQ(kernels, 0);
    const I less = arena_of(t.model, again, &kernels);
    EXPECT_GT(kernels, 0);
    EXPECT_LT(less, all);
  }
}

TEST(StepPlan, BatchesOfTwoSizesHaveTwoPlans) {
  // 130 samples: eight batches of 16 and one of 2 an epoch.
  for (const char* threads : {"1", "3"}) {
    const int before = num_threads();
    set_num_threads(std::atoi(threads));
    expect_planned(deep_spirals(), spirals({{"data.batch_size", "16"}, {"epochs", "6"}}), 50, 2);
    set_num_threads(before);
  }
}

TEST(StepPlan, LayersThatDrawAndCountDoSoAsBefore) {
  const Recipe plain = with({}, {{"data.dataset", "fashion-mnist"}, {"data.batch_size", "8"}});
  for (const Settings& set : std::vector<Settings>{{},
                                                   {{"recompute", "1"}},
                                                   {{"recompute", "2"}},
                                                   {{"amp", "bf16"}},
                                                   {{"amp", "fp16"}},
                                                   {{"optimizer.clip_norm", "0.5"}, {"average.type", "ema"}},
                                                   {{"init.freeze", "conv.*; norm.*"}}}) {
    SCOPED_TRACE(set.empty() ? "plain" : set[0].first + " = " + set[0].second);
    expect_planned(busy_model(), with(plain, set), 7, 1);
  }
}

TEST(StepPlan, ASessionThatIsLoadedOrChangedPlansAnew) {
  const Recipe r = spirals({{"data.batch_size", "26"}, {"epochs", "9"}, {"compile", "false"}});
  TrainingSession eager(deep_spirals(), r);
  TrainingSession planned(deep_spirals(), with(r, {{"compile", "true"}}));
  run(eager, 7);
  run(planned, 7);
  TrainingSession loaded(deep_spirals(), with(r, {{"compile", "true"}}));
  loaded.load(planned.save());
  run(eager, 7);
  run(planned, 7);
  run(loaded, 7);
  EXPECT_EQ(eager.save().state["steps"], loaded.save().state["steps"]);
  // Another loss is another plan.
  eager.change(with(r, {{"loss.label_smoothing", "0.1"}}));
  planned.change(with(r, {{"loss.label_smoothing", "0.1"}, {"compile", "true"}}));
  for (int i = 0; i < 6; ++i) ASSERT_EQ(eager.step().loss, planned.step().loss) << i;
  EXPECT_EQ(plans_of(planned), 1u);
  // And it can be left.
  planned.change(with(r, {{"loss.label_smoothing", "0.1"}}));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(eager.step().loss, planned.step().loss) << i;
  EXPECT_TRUE(planned.planned().empty());
  expect_same(eager.save(), planned.save());
}

TEST(StepPlan, EvaluationsHaveAPlanToo) {
  const Recipe r = spirals({{"data.batch_size", "26"}, {"epochs", "9"}, {"average.type", "ema"}, {"compile", "false"}});
  TrainingSession eager(deep_spirals(), r), planned(deep_spirals(), with(r, {{"compile", "true"}}));
  for (int i = 0; i < 6; ++i) {
    run(eager, 2);
    run(planned, 2);
    const Evaluation a = eager.evaluate(), b = planned.evaluate();
    ASSERT_EQ(a.loss, b.loss) << i;
    ASSERT_EQ(a.correct, b.correct) << i;
  }
  EXPECT_SAYS(told(planned), "evaluation: batches of f32 [");
  EXPECT_SAYS(told(planned), " and 1 other form: 17 batches from a plan each, the largest is a plan of ");
  expect_same(eager.save(), planned.save());
}

TEST(StepPlan, WhoLooksSeesOps) {
  TrainingSession s(deep_spirals(), spirals({{"data.batch_size", "26"}, {"epochs", "9"}, {"compile", "true"}}));
  run(s, 5);
  ASSERT_NE(s.plan(), nullptr);
  struct Counter : OpObserver {
    int ops = 0, linears = 0;
    void after(const Call& call, int64_t, int64_t) override {
      ++ops;
      linears += std::string(call.op->info.name) == "linear";
    }
  } counter;
  {
    const ObserveScope observe(counter);
    s.step();
  }
  EXPECT_EQ(counter.linears, 3);
  const int seen = counter.ops;
  s.step();
  EXPECT_EQ(counter.ops, seen);
  std::string rows;
  for (const StepPlanRow& r : s.plan()->rows()) rows += fmt::format("{} {} {}\n", r.op, r.module, r.results);
  EXPECT_SAYS(rows, "linear fc2 f32 [26, 12]");
}

TEST(StepPlan, WhatCannotBePlannedSaysWhy) {
  const auto why = [](const Settings& set) {
    TrainingSession s(deep_spirals(), with(spirals({{"data.batch_size", "26"}, {"compile", "true"}}), set));
    run(s, 5);
    EXPECT_EQ(plans_of(s), 0u);
    return told(s);
  };
  EXPECT_SAYS(why({{"data.micro_batches", "2"}}), "data.micro_batches adds gradients up");
  EXPECT_SAYS(why({{"optimizer.type", "lbfgs"}}), "searches along a line");
}

/// x w + a number that the host counts: as an attribute, or as a constant.
class Tallying : public nn::Module {
 public:
  enum class As { attribute, constant, value, later, nothing };
  explicit Tallying(As as) : as_(as) {
    w_ = full({3}, 1.5);
    add_parameter("w", w_);
  }
  std::string describe() const override { return "Tallying"; }
  void move_weight() {
    w_ = clone(detach(w_));
    set_requires_grad(w_);
  }

 protected:
  Tensor forward(const Tensor& x) override {
    ++n_;
    const Tensor y = mul(x, w_);
    if (as_ == As::attribute) return leaky_relu(y, 0.1 * static_cast<double>(n_));
    if (as_ == As::later && n_ > 3) return mul(y, w_);
    if (as_ == As::value) return item(sum(detach(y))) > 1000 ? mul(y, w_) : y;
    return as_ == As::constant ? add(y, full({3}, static_cast<double>(n_))) : y;
  }

 private:
  As as_;
  Tensor w_;
  I n_ = 0;
};

struct Planned {
  Tallying model;
  PlannedStep step{model};
  explicit Planned(Tallying::As as) : model(as) {
    model.initialize(0);
    model.train();
  }
  PlannedStep::Values run(const Tensor& x) {
    t_state.origin.seq = 0;
    model.zero_grad();
    return step.run(x, x, 1, model.parameters(), [&] {
      PlannedStep::Values v;
      v.output = model(x);
      v.loss = mse_loss(v.output, x);
      backward(v.loss);
      return v;
    });
  }
  std::string told() const {
    std::string all;
    for (const std::string& line : step.told()) all += line;
    return all;
  }
};

TEST(StepPlan, WhatChangesFromStepToStepIsFound) {
  Planned same(Tallying::As::nothing), attribute(Tallying::As::attribute), constant(Tallying::As::constant),
      value(Tallying::As::value);
  for (int i = 0; i < 6; ++i)
    for (Planned* p : {&same, &attribute, &constant, &value}) p->run(full({2, 3}, i + 1));
  EXPECT_SAYS(same.told(), "3 steps from a plan");
  EXPECT_SAYS(attribute.told(), "has other attributes in every step");
  EXPECT_SAYS(constant.told(), "reads a constant that changes");
  EXPECT_SAYS(value.told(), "a value is read on the way");
}

TEST(StepPlan, APlanIsProvenAgainAfterTenStepsAndAHundred) {
  Planned same(Tallying::As::nothing), later(Tallying::As::later);
  for (int i = 0; i < 3 + 10 + 1; ++i)
    for (Planned* p : {&same, &later}) {
      const Tensor before = clone(p->model.parameters()[0].tensor);
      p->run(full({2, 3}, i + 1));
      EXPECT_TRUE(same_bits(before, p->model.parameters()[0].tensor)) << "a proof is a step as any other";
      const std::vector<PlanNews> news = p->step.take_news();
      EXPECT_EQ(news.size(), i == 2 || (i == 13 && p == &later) ? 1u : 0u) << i;
      if (i == 13 && p == &later)
        EXPECT_SAYS(news.at(0).text,
                    "a layer keeps something in no buffer, and the last 10 steps from the plan may be wrong");
    }
  EXPECT_SAYS(same.told(), "10 steps from a plan");
  for (int i = 0; i < 90 + 1 + 5; ++i) same.run(full({2, 3}, i + 1));
  EXPECT_SAYS(same.told(), "105 steps from a plan");
}

TEST(StepPlan, AFormThatIsLongGoneMakesRoomForAnother) {
  Planned p(Tallying::As::nothing);
  for (int rows = 1; rows <= 9; ++rows) p.run(full({rows, 3}, 1));
  EXPECT_SAYS(p.told(), "batches come in more forms than plans are kept");
  for (int i = 0; i < 1000; ++i) p.run(full({8, 3}, i + 1));
  for (int i = 0; i < 5; ++i) p.run(full({9, 3}, i + 1));
  EXPECT_SAYS(p.told(), " from a plan each");
  EXPECT_SAYS(p.told(), "and 1 other form");
}

TEST(StepPlan, WhatHappensToPlansIsNewsOnce) {
  Planned p(Tallying::As::nothing), other(Tallying::As::attribute);
  std::vector<std::vector<PlanNews>> news, refused;
  for (int i = 0; i < 5; ++i) {
    p.run(full({2, 3}, i + 1));
    news.push_back(p.step.take_news());
    other.run(full({2, 3}, i + 1));
    refused.push_back(other.step.take_news());
  }
  for (const size_t step : {0u, 1u, 3u, 4u}) EXPECT_TRUE(news[step].empty()) << step;
  ASSERT_EQ(news[2].size(), 1u) << "the plan is proven in the third step";
  EXPECT_SAYS(news[2][0].text, "batches of f32 [2, 3] come from a plan of ");
  EXPECT_TRUE(refused[0].empty());
  ASSERT_EQ(refused[1].size(), 1u) << "two traces differ";
  EXPECT_SAYS(refused[1][0].text, "batches of f32 [2, 3] run op by op: ");
  EXPECT_TRUE(refused[2].empty() && refused[4].empty());
  const int id = p.model.add_forward_hook([](nn::Module&, std::span<const Tensor>, Tensor&) {});
  for (int i = 0; i < 2; ++i) p.run(full({2, 3}, 9));
  p.model.remove_hook(id);
  const std::vector<PlanNews> hooked = p.step.take_news();
  ASSERT_EQ(hooked.size(), 1u) << "a reason is told once";
  EXPECT_SAYS(hooked[0].text, "some steps run op by op: hooks look at what layers compute");
  p.run(full({4, 3}, 1));
  p.run(full({4, 3}, 2));
  p.run(full({4, 3}, 3));
  const std::vector<PlanNews> wider = p.step.take_news();
  ASSERT_EQ(wider.size(), 1u);
  EXPECT_SAYS(wider[0].text, "batches of f32 [4, 3] come from a plan of ");
}

TEST(StepPlan, LayersWithOtherMemoryArePlannedAFewTimes) {
  Planned p(Tallying::As::nothing);
  std::vector<std::string> all;
  for (int i = 0; i < 40; ++i) {
    if (i % 4 == 3) p.model.move_weight();
    p.run(full({2, 3}, i + 1));
    for (const PlanNews& n : p.step.take_news()) all.push_back(n.text);
  }
  // Each plan costs three steps and lasts for one.
  const auto count = [&](std::string_view what) {
    return std::count_if(all.begin(), all.end(), [&](const std::string& line) { return line.find(what) != line.npos; });
  };
  EXPECT_EQ(count("are planned anew: layers were given other memory"), 4);
  EXPECT_EQ(count("run op by op: layers are given other memory again and again"), 1);
  EXPECT_EQ(count("come from a plan"), 5);
  EXPECT_SAYS(p.told(), "run op by op after 4 steps from plans: layers are given other memory again and again");
}

TEST(StepPlan, APlanThatLastsIsNoneThatIsGivenUp) {
  Planned p(Tallying::As::nothing);
  int made = 0;
  for (int i = 0; i < 15 * 7; ++i) {
    if (i % 15 == 14) p.model.move_weight();
    p.run(full({2, 3}, i + 1));
    for (const PlanNews& n : p.step.take_news()) made += n.text.find("come from a plan") != n.text.npos;
  }
  EXPECT_EQ(made, 7);
  EXPECT_SAYS(p.told(), "76 steps from plans that were dropped");
}

TEST(StepPlan, ResultsAreTheCallersAlone) {
  Planned p(Tallying::As::nothing);
  for (int i = 0; i < 4; ++i) p.run(full({2, 3}, i + 1));
  const PlannedStep::Values first = p.run(full({2, 3}, 5));
  const Tensor gradient = grad_of(p.model.parameters()[0].tensor);
  const Tensor output = clone(first.output), kept = clone(gradient);
  p.run(full({2, 3}, 7));
  EXPECT_TRUE(same_bits(first.output, output));
  EXPECT_TRUE(same_bits(gradient, kept));
  EXPECT_FALSE(same_bits(grad_of(p.model.parameters()[0].tensor), kept));
}

TEST(StepPlan, LayersWithAHookRunOpByOp) {
  Planned p(Tallying::As::nothing);
  for (int i = 0; i < 5; ++i) p.run(full({2, 3}, i + 1));
  int called = 0;
  const int id = p.model.add_forward_hook([&](nn::Module&, std::span<const Tensor>, Tensor&) { ++called; });
  p.run(full({2, 3}, 9));
  EXPECT_EQ(called, 1);
  p.model.remove_hook(id);
  p.run(full({2, 3}, 9));
  EXPECT_EQ(called, 1);
  EXPECT_SAYS(p.told(), "3 steps from a plan");
}

}  // namespace
}  // namespace tenon
