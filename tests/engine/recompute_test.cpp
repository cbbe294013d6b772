// Which kernels of a planned step run a second time, so that what they gave is not kept: those of activations and
// norms whose inputs backward needs as well; nothing that draws numbers, is costly, or saves nothing at the peak.
#include "engine/graph/recompute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "engine/graph/step_plan.h"
#include "engine/templates/templates.h"
#include "tests/engine/sessions.h"

namespace tenon {
namespace {

using namespace testing_sessions;
using I = int64_t;

/// The plan of a model that learns spirals in batches of 65.
struct PlanOf {
  explicit PlanOf(const ModelSpec& model, const char* recompute = "1")
      : session(model, spirals({{"data.batch_size", "65"}, {"compile", "true"}, {"recompute", recompute}})) {
    for (int i = 0; i < 4; ++i) session.step();
    if (!session.plan()) throw Error("no plan: " + session.planned().at(0));
    rows = session.plan()->rows();
  }
  /// "gelu act1", of those that run again, in any order.
  std::multiset<std::string> again() const {
    std::multiset<std::string> all;
    for (const StepPlanRow& r : rows)
      if (r.again) all.insert(std::string(r.op) + " " + r.module);
    return all;
  }
  TrainingSession session;
  std::vector<StepPlanRow> rows;
};

Chain wide() { return Chain("wide", {2}).add("fc1", "Linear", {{"out_features", I{64}}}); }
ModelSpec ended(Chain c) {
  return c.add("fc2", "Linear", {{"out_features", I{64}}})
      .add("last", "ReLU")
      .add("fc3", "Linear", {{"out_features", I{2}}})
      .done();
}

TEST(Recompute, AnActivationWhoseInputIsKeptRunsAgainInBackward) {
  const PlanOf plan(ended(wide().add("act", "GELU")));
  EXPECT_EQ(plan.again(), std::multiset<std::string>{"gelu act"});
  std::vector<size_t> places;
  for (size_t i = 0; i < plan.rows.size(); ++i)
    if (plan.rows[i].op == std::string("gelu")) places.push_back(i);
  ASSERT_EQ(places.size(), 2u);
  const StepPlanRow &first = plan.rows[places[0]], &second = plan.rows[places[1]];
  EXPECT_EQ(first.seq, second.seq) << "it is one op";
  EXPECT_EQ(first.phase, Phase::forward);
  EXPECT_EQ(second.phase, Phase::backward);
  EXPECT_LT(first.last, static_cast<int>(places[1])) << "what it gave at first is gone by then";
  EXPECT_GT(second.last, static_cast<int>(places[1])) << "somebody needs the second";
  EXPECT_EQ(plan.session.plan()->figures().again, 1);
}

TEST(Recompute, ANormAndWhatFollowsItRunAgainTogether) {
  const PlanOf plan(ended(wide().add("norm", "LayerNorm").add("act", "ReLU")));
  EXPECT_EQ(plan.again(), (std::multiset<std::string>{"layer_norm norm", "relu act"}));
}

TEST(Recompute, WhatDrawsNumbersOrSavesNothingRunsOnce) {
  EXPECT_EQ(PlanOf(ended(wide().add("drop", "Dropout", {{"p", 0.5}}))).again().count("dropout drop"), 0u);
  EXPECT_TRUE(PlanOf(ended(wide())).again().empty()) << "products are not cheap";
  EXPECT_TRUE(PlanOf(ended(wide().add("act", "ReLU"))).again().empty()) << "of a ReLU the result alone is kept";
  EXPECT_TRUE(PlanOf(ended(wide().add("act", "GELU")), "0").again().empty());
}

TEST(Recompute, ATraceStaysWholeAndItsPeakFalls) {
  // A hand-made step: x -> relu -> a; a -> exp -> b; a much larger value comes and goes; then a and b are added.
  StepTrace t;
  t.blocks = {{StepTrace::Origin::given, 0, 400},
              {StepTrace::Origin::made, -1, 400},
              {StepTrace::Origin::made, -1, 400},
              {StepTrace::Origin::made, -1, 4000},
              {StepTrace::Origin::made, -1, 400}};
  const auto at = [](int block, I n) { return StepTrace::Window{block, DType::f32, Layout::contiguous({n}), false}; };
  const auto step = [&](const char* op, std::vector<StepTrace::Window> in, StepTrace::Window out) {
    StepTrace::Step s;
    s.op = &all_ops().at(op);
    s.in = std::move(in);
    s.out = {out};
    s.origin.seq = static_cast<uint32_t>(t.steps.size()) + 1;
    t.steps.push_back(std::move(s));
  };
  step("relu", {at(0, 100)}, at(1, 100));
  step("exp", {at(1, 100)}, at(2, 100));
  step("cat", {at(0, 100)}, at(3, 1000));
  step("neg", {at(3, 1000)}, at(3, 1000));
  step("add", {at(1, 100), at(2, 100)}, at(4, 100));
  t.results = {at(4, 100)};
  EXPECT_EQ(compute_again(t), 2) << "relu for the sum, and exp from the second relu";
  ASSERT_EQ(t.steps.size(), 7u);
  const StepTrace::Step& sum = t.steps.back();
  for (const StepTrace::Window& w : sum.in) EXPECT_GT(w.block, 4) << "it reads what was made anew";
  EXPECT_EQ(t.blocks.size(), 7u);
  EXPECT_EQ(sum.out[0].block, 4);
  // Every block is written before it is read.
  std::set<int> written{0};
  for (const StepTrace::Step& s : t.steps) {
    for (const StepTrace::Window& w : s.in) EXPECT_TRUE(written.count(w.block)) << s.op->info.name << " " << w.block;
    for (const StepTrace::Window& w : s.out) written.insert(w.block);
  }
  EXPECT_EQ(compute_again(t), 0) << "once is enough";
}

}  // namespace
}  // namespace tenon
