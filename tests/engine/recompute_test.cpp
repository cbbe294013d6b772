// Which kernels of a planned step run a second time, so that what they gave is not kept: those of activations and
// norms whose inputs backward needs as well; nothing that draws numbers, is costly, or saves nothing at the peak.
#include "engine/graph/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/graph/step_plan.h"
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

/// Four layers, a norm and an activation behind each.
ModelSpec normed(const char* activation) {
  Chain c = wide();
  for (const std::string i : {"1", "2", "3", "4"})
    c.add("norm" + i, "LayerNorm").add("act" + i, activation).add("more" + i, "Linear", {{"out_features", I{64}}});
  return ended(c);
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
  const std::multiset<std::string> again = PlanOf(normed("ReLU")).again();
  EXPECT_TRUE(again.count("layer_norm norm1") && again.count("relu act1"));
}

TEST(Recompute, WhatDrawsNumbersOrSavesNothingRunsOnce) {
  const PlanOf draws(ended(wide().add("drop", "Dropout", {{"p", 0.5}})));
  EXPECT_TRUE(std::any_of(draws.rows.begin(), draws.rows.end(), [&](const StepPlanRow& r) {
    return r.op == std::string("dropout") && r.last > &r - draws.rows.data();
  })) << "it is in the plan, and somebody needs it";
  EXPECT_EQ(draws.again().count("dropout drop"), 0u);
  EXPECT_TRUE(PlanOf(ended(wide())).again().empty()) << "products are not cheap";
  EXPECT_TRUE(PlanOf(ended(wide().add("act", "ReLU"))).again().empty()) << "of a ReLU the result alone is kept";
  EXPECT_TRUE(PlanOf(ended(wide().add("act", "GELU")), "0").again().empty());
}

TEST(Recompute, EachKernelRunsOnceMoreAtMost) {
  // Of GELU the input is kept, too: what the norm gave, which is made again before both.
  const std::multiset<std::string> again = PlanOf(normed("GELU")).again();
  EXPECT_TRUE(again.count("layer_norm norm1") && again.count("gelu act1"));
  for (const std::string& kernel : again) EXPECT_EQ(again.count(kernel), 1u) << kernel;
}

/// A step that is made by hand. Block 0 is given; each op makes a block of its own.
struct MadeTrace {
  explicit MadeTrace(I given) : trace() { trace.blocks.push_back({StepTrace::Origin::given, 0, bytes(given)}); }
  static size_t bytes(I n) { return static_cast<size_t>(n) * sizeof(float); }
  static StepTrace::Window window(int block, I n) { return {block, DType::f32, Layout::contiguous({n}), false}; }
  StepTrace::Window all_of(int block) const {
    return window(block, static_cast<I>(trace.blocks[static_cast<size_t>(block)].bytes / sizeof(float)));
  }
  void step(const char* op, const std::vector<int>& in, const std::vector<int>& out) {
    StepTrace::Step s;
    s.op = &all_ops().at(op);
    for (const int b : in) s.in.push_back(all_of(b));
    for (const int b : out) s.out.push_back(all_of(b));
    s.origin.seq = static_cast<uint32_t>(trace.steps.size()) + 1;
    trace.steps.push_back(std::move(s));
  }
  int make(const char* op, const std::vector<int>& in, I n) {
    trace.blocks.push_back({StepTrace::Origin::made, -1, bytes(n)});
    step(op, in, {static_cast<int>(trace.blocks.size()) - 1});
    return static_cast<int>(trace.blocks.size()) - 1;
  }
  /// Something large that comes and goes: the peak.
  void pass_peak() {
    const int large = make("cat", {0}, 1000);
    step("neg", {large}, {large});
  }
  void result(int block) { trace.results.push_back(all_of(block)); }
  I again() {
    const size_t before = trace.steps.size();
    const I n = compute_again(trace);
    EXPECT_EQ(trace.steps.size(), before + static_cast<size_t>(n));
    // Every block is written before it is read.
    std::set<int> written{0};
    for (const StepTrace::Step& s : trace.steps) {
      for (const StepTrace::Window& w : s.in) EXPECT_TRUE(written.count(w.block)) << s.op->info.name << " " << w.block;
      for (const StepTrace::Window& w : s.out) written.insert(w.block);
    }
    EXPECT_EQ(compute_again(trace), n) << "once is enough";
    EXPECT_EQ(trace.steps.size(), before + static_cast<size_t>(n));
    return n;
  }
  StepTrace trace;
};

TEST(Recompute, WhatWaitsWhileThePeakGoesByIsMadeAgain) {
  MadeTrace m(100);
  const int a = m.make("relu", {0}, 100), b = m.make("exp", {a}, 100);
  m.pass_peak();
  m.result(m.make("add", {a, b}, 100));
  EXPECT_EQ(m.again(), 2) << "relu, and exp of the second relu";
  for (const StepTrace::Window& w : m.trace.steps.back().in) EXPECT_GT(w.block, 4) << "it reads what was made again";
}

TEST(Recompute, NothingIsMadeOfWhatWasWrittenMeanwhile) {
  MadeTrace m(100);
  const int a = m.make("relu", {0}, 100);
  m.pass_peak();
  m.step("neg", {0}, {0});  // in place: a is no longer relu of it
  m.result(m.make("add", {a, 0}, 100));
  EXPECT_EQ(m.again(), 0);
}

TEST(Recompute, NothingIsMadeOfWhatIsWrittenThroughAnotherWindow) {
  MadeTrace m(100);
  const int x = m.make("exp", {0}, 100), a = m.make("relu", {x}, 100);
  m.pass_peak();
  m.step("neg", {x}, {x});
  m.trace.steps.back().in[0] = m.trace.steps.back().out[0] = MadeTrace::window(x, 7);  // a part of it
  m.result(m.make("add", {a, x}, 100));
  EXPECT_EQ(m.again(), 0);
}

TEST(Recompute, WhatIsWrittenTwiceIsNotMadeAgain) {
  MadeTrace m(100);
  const int a = m.make("relu", {0}, 100);
  m.step("neg", {a}, {a});
  m.pass_peak();
  m.result(m.make("add", {a, 0}, 100));
  EXPECT_EQ(m.again(), 0);
}

TEST(Recompute, ResultsStayWhereTheyAre) {
  MadeTrace m(100);
  const int a = m.make("relu", {0}, 100);
  m.pass_peak();
  m.result(m.make("neg", {a}, 100));
  m.result(a);
  EXPECT_EQ(m.again(), 0);
}

TEST(Recompute, ThreeKernelsForOneValueAreTooMany) {
  for (const int kernels : {1, 2, 3}) {
    MadeTrace m(100);
    int a = 0;
    for (int i = 0; i < kernels; ++i) a = m.make("exp", {a}, 100);
    m.pass_peak();
    m.result(m.make("add", {a, 0}, 100));
    EXPECT_EQ(m.again(), kernels == 3 ? 0 : kernels);
  }
}

TEST(Recompute, SmallValuesAreNotWorthAKernel) {
  MadeTrace m(3);
  const int a = m.make("relu", {0}, 3);
  m.pass_peak();
  m.result(m.make("neg", {a}, 3));
  EXPECT_EQ(m.again(), 0);
}

}  // namespace
}  // namespace tenon
