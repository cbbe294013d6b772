#include "tracing/record/step_recorder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/parallel.h"
#include "engine/templates/templates.h"
#include "engine/train/session.h"
#include "tracing/record/memory_history.h"
#include "tracing/record/numbers.h"

namespace tenon::tracing {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<TrainingSession> session_of(const std::string& name, const Settings& set) {
  const Template& t = find_template(name);
  Recipe recipe = t.recipe;
  for (const auto& [key, value] : set) recipe.set(key, value);
  return std::make_unique<TrainingSession>(t.model, recipe);
}
std::unique_ptr<TrainingSession> spirals(const Settings& set = {}) { return session_of("spirals", set); }

// Same names, same values: what a checkpoint is compared by.
void expect_same_state(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  EXPECT_EQ(a.state, b.state);
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    std::vector<double> x, y;
    each_value(a.tensors[i].second, [&](int64_t, double v) {
      x.push_back(v);
      return true;
    });
    each_value(b.tensors[i].second, [&](int64_t, double v) {
      y.push_back(v);
      return true;
    });
    EXPECT_EQ(x, y) << a.tensors[i].first;
  }
}

TEST(StepRecorder, RecordingChangesNoBit) {
  auto plain = spirals(), watched = spirals();
  for (int i = 0; i < 5; ++i) plain->step();
  for (int i = 0; i < 4; ++i) watched->step();
  auto record = record_step(*watched, "run");
  EXPECT_EQ(record->step, 5);
  expect_same_state(plain->save(), watched->save());
  plain->step();
  watched->step();
  expect_same_state(plain->save(), watched->save());
}

TEST(StepRecorder, OpsAreNumberedLinkedAndTimed) {
  auto session = spirals();
  auto r = record_step(*session, "run");
  ASSERT_GT(r->ops.size(), 10u);
  bool forward = false, backward = false;
  for (size_t i = 0; i < r->ops.size(); ++i) {
    const OpRecord& o = r->ops[i];
    EXPECT_EQ(o.seq, i + 1);
    EXPECT_FALSE(o.name.empty());
    EXPECT_GT(o.duration_ns, 0) << o.name;
    for (int t : o.inputs) ASSERT_LT(static_cast<size_t>(t), r->tensors.size());
    for (int t : o.outputs) ASSERT_LT(static_cast<size_t>(t), r->tensors.size());
    if (o.origin.phase == Phase::forward && !module_path(o.origin.module).empty()) forward = true;
    if (o.origin.phase == Phase::backward && o.forward_seq > 0) {
      backward = true;
      ASSERT_LE(o.forward_seq, r->ops.size());
      EXPECT_EQ(r->ops[o.forward_seq - 1].origin.module, o.origin.module) << o.name;
    }
  }
  EXPECT_TRUE(forward);
  EXPECT_TRUE(backward);
  const traces::Trace& timeline = *r->timeline.store;
  for (traces::EventId e = 0; e < timeline.size(); ++e)
    if (const uint32_t seq = r->timeline.op(e).seq) {
      EXPECT_EQ(timeline.event_name(e), r->ops[seq - 1].name);
    }
}

TEST(StepRecorder, KeepsParametersAsTheyWereBeforeTheStep) {
  auto session = spirals();
  Checkpoint before = session->save();
  auto r = record_step(*session, "run");
  int found = 0;
  for (const auto& [name, t] : before.tensors) {
    if (name.rfind("model/", 0) != 0) continue;
    for (const TensorRecord& known : r->tensors) {
      if ("model/" + known.name != name) continue;
      ++found;
      ASSERT_TRUE(known.value.defined());
      EXPECT_EQ(statistics(known.value).norm, statistics(t).norm) << name;
    }
  }
  EXPECT_GE(found, 4);
}

TEST(StepRecorder, AutogradGraphReachesEveryParameterWithItsGradientNorm) {
  auto session = spirals();
  auto r = record_step(*session, "run");
  std::set<std::string> leaves;
  for (const GradNode& n : r->grad_nodes) {
    if (n.leaf) {
      leaves.insert(n.name);
      EXPECT_GT(n.grad_norm, 0) << n.name;
    } else {
      ASSERT_GT(n.forward_seq, 0u);
      EXPECT_EQ(n.name, r->ops[n.forward_seq - 1].name + " backward");
      EXPECT_FALSE(n.next.empty());
    }
    for (auto e : n.next) ASSERT_LT(static_cast<size_t>(e.node), r->grad_nodes.size());
  }
  size_t parameters = 0;
  for (const TensorRecord& t : r->tensors) parameters += t.category == Category::parameter && leaves.count(t.name);
  EXPECT_EQ(leaves.size(), parameters);
  for (const TensorRecord& t : r->tensors)
    if (t.name.rfind("grad of ", 0) == 0) {
      EXPECT_TRUE(leaves.count(t.name.substr(8)));
    }
}

// Of a run whose steps come from plans, too.
TEST(StepRecorder, ARecordedStepOfACompiledRunHasItsGraph) {
  auto planned = spirals({{"compile", "true"}}), eager = spirals({{"compile", "false"}});
  for (int i = 0; i < 5; ++i) planned->step(), eager->step();
  ASSERT_NE(planned->plan(), nullptr);
  const auto a = record_step(*planned, "run"), b = record_step(*eager, "run");
  ASSERT_GT(a->grad_nodes.size(), 5u);
  ASSERT_EQ(a->grad_nodes.size(), b->grad_nodes.size());
  for (size_t i = 0; i < a->grad_nodes.size(); ++i) {
    EXPECT_EQ(a->grad_nodes[i].name, b->grad_nodes[i].name);
    EXPECT_EQ(a->grad_nodes[i].grad_norm, b->grad_nodes[i].grad_norm) << a->grad_nodes[i].name;
    EXPECT_EQ(a->grad_nodes[i].saved_bytes, b->grad_nodes[i].saved_bytes) << a->grad_nodes[i].name;
  }
}

// The times are those of a pass in which nobody held values; held ones must not lead to other ops.
TEST(StepRecorder, OpsHaveTheTimesOfThemselves) {
  for (const char* name : {"byte-gpt", "u-net", "byte-lstm"}) {
    auto session = session_of(name, {{"data.batch_size", "2"}});
    const auto r = record_step(*session, "run");
    const traces::Trace& timeline = *r->timeline.store;
    size_t timed = 0;
    for (traces::EventId e = 0; e < timeline.size(); ++e) {
      const uint32_t seq = r->timeline.op(e).seq;
      if (seq == 0) continue;
      ASSERT_LE(seq, r->ops.size()) << name;
      std::string walked = r->ops[seq - 1].name, clocked(timeline.event_name(e));
      for (std::string* s : {&walked, &clocked})  // a sum of gradients is added to in its place where nobody holds it
        if (s->ends_with('_')) s->pop_back();
      ASSERT_EQ(walked, clocked) << name << " #" << seq;
      ++timed;
    }
    EXPECT_EQ(timed, r->ops.size()) << name;
  }
}

TEST(StepRecorder, MemoryBalancesAndHasEveryCategory) {
  auto session = spirals();
  session->step();
  auto r = record_step(*session, "run");
  MemoryCurve c = memory_curve(r->allocs);
  ASSERT_FALSE(c.total.empty());
  for (size_t i = 0; i < c.total.size(); ++i) {
    int64_t sum = 0;
    for (auto& k : c.bytes) {
      ASSERT_GE(k[i], 0);
      sum += k[i];
    }
    ASSERT_EQ(sum, c.total[i]);
    if (i) {
      ASSERT_LE(c.time_ns[i - 1], c.time_ns[i]);
    }
  }
  EXPECT_GT(c.peak, 0);
  auto peak = [&](Category k) {
    return *std::max_element(c.bytes[static_cast<size_t>(k)].begin(), c.bytes[static_cast<size_t>(k)].end());
  };
  for (Category k :
       {Category::parameter, Category::activation, Category::gradient, Category::optimizer, Category::data})
    EXPECT_GT(peak(k), 0) << name(k);
  int64_t live = 0;
  for (size_t i : live_at(r->allocs, c.peak_event)) live += r->allocs[i].bytes;
  EXPECT_EQ(live, c.peak);
}

TEST(NanOrigin, APlantedValueIsFoundWithItsSample) {
  auto session = spirals({{"data.nan_sample", "17"}, {"data.nan_value_index", "1"}});
  for (;;) {
    Checkpoint before = session->save();
    StepResult s = session->step();
    if (s.finite) continue;
    session->load(before);
    auto r = record_step(*session, "run");
    ASSERT_TRUE(r->nan);
    EXPECT_EQ(r->nan->step, s.step);
    EXPECT_EQ(r->nan->sample, 17);
    EXPECT_EQ(r->nan->seq, 0u);
    EXPECT_EQ(r->nan->index[1], 1);
    EXPECT_EQ(r->samples[static_cast<size_t>(r->nan->index[0])], 17);
    EXPECT_FALSE(r->nan->spread.empty());
    return;
  }
}

TEST(NanOrigin, AnOverflowNamesTheOpAndInputsThatMakeIt) {
  auto session = spirals({{"optimizer.type", "sgd"}, {"optimizer.lr", "1e30"}, {"optimizer.momentum", "0"}});
  for (int i = 0; i < 1000; ++i) {
    Checkpoint before = session->save();
    if (session->step().finite) continue;
    session->load(before);
    auto r = record_step(*session, "run");
    ASSERT_TRUE(r->nan);
    ASSERT_GT(r->nan->seq, 0u);
    const OpRecord& op = r->ops[r->nan->seq - 1];
    EXPECT_EQ(op.name, r->nan->op);
    EXPECT_FALSE(std::isfinite(r->nan->value));
    for (const auto& o : r->nan->operands) EXPECT_EQ(o.bad, 0) << o.name;
    for (uint32_t s : r->nan->spread) EXPECT_GT(s, r->nan->seq);
    EXPECT_NE(r->nan->sentence.find(op.name), std::string::npos);
    return;
  }
  FAIL() << "a rate of 1e30 never overflowed";
}

TEST(NanOrigin, ACleanStepHasNone) {
  auto session = spirals();
  EXPECT_FALSE(record_step(*session, "run")->nan);
}

}  // namespace
}  // namespace tenon::tracing
