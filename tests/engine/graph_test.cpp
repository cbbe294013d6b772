#include "engine/graph/graph.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "core/error.h"
#include "core/parallel.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/export.h"
#include "engine/nn/layers.h"
#include "engine/nn/norm.h"
#include "engine/nn/random_state.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dropout.h"
#include "engine/ops/index.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "tests/engine/same_bits.h"
#include "tests/messages.h"

namespace tenon {
namespace {

using testing_words::error_of;

/// Runs the nodes one after the other. `memory` holds what constants were before; afterwards, what they became.
std::vector<Tensor> run_graph(const Graph& g, const std::vector<Tensor>& inputs,
                              std::map<std::string, Tensor>& memory) {
  NoGrad off;
  std::vector<Tensor> at(g.values.size());
  for (size_t i = 0; i < g.inputs.size(); ++i) at[static_cast<size_t>(g.inputs[i])] = inputs[i];
  for (size_t v = 0; v < g.values.size(); ++v)
    if (g.values[v].constant.defined()) {
      auto found = memory.find(g.values[v].name);
      at[v] = found == memory.end() ? g.values[v].constant : found->second;
    }
  for (const Graph::Node& n : g.nodes) {
    std::vector<Tensor> in, out(static_cast<size_t>(n.op->info.outputs));
    for (int v : n.inputs) in.push_back(v < 0 ? Tensor() : at[static_cast<size_t>(v)]);
    const bool in_place = !n.writes.empty() && n.writes[0].after == n.outputs[0];
    if (in_place) {
      dispatch_in_place(*n.op, n.attrs.get(), in.data(), static_cast<int>(in.size()));
    } else {
      dispatch(*n.op, n.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
      for (size_t k = 0; k < out.size(); ++k)
        if (n.outputs[k] >= 0) at[static_cast<size_t>(n.outputs[k])] = out[k];
    }
    for (const Graph::Write& w : n.writes) at[static_cast<size_t>(w.after)] = at[static_cast<size_t>(w.before)];
  }
  std::vector<Tensor> results;
  for (int v : g.outputs) results.push_back(at[static_cast<size_t>(v)]);
  return results;
}

std::vector<std::pair<std::string, Tensor>> named(const std::vector<nn::Named>& list) {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const nn::Named& n : list) all.emplace_back(n.name, n.tensor);
  return all;
}
std::map<std::string, Tensor> copies(const std::vector<std::pair<std::string, Tensor>>& list) {
  std::map<std::string, Tensor> all;
  for (const auto& [name, t] : list) all[name] = clone(detach(t));
  return all;
}

TEST(Graph, AnOptimizersUpdateIsTracedAndReplayed) {
  for (const char* type : {"adam", "sgd", "rmsprop"}) {
    nn::Linear layer(4, 3);
    layer.initialize(1, "layer");
    auto optimizer = optim::make_optimizer(type, layer.parameters());
    backward(sum(square(layer(randn({5, 4})))));
    optimizer->step(0.1);  // states that are not all 0
    auto memory = named(layer.parameters());
    for (const auto& s : named(optimizer->state())) memory.push_back(s);
    for (const nn::Named& p : layer.parameters()) memory.emplace_back("gradient of " + p.name, grad_of(p.tensor));
    auto before = copies(memory);
    const Graph g = trace_graph(
        [&](const std::vector<Tensor>& in) {
          optimizer->step(0.1);
          return std::vector<Tensor>{mul(in[0], 1)};
        },
        {ones({1})}, memory);
    int writes = 0;
    for (const Graph::Node& n : g.nodes) {
      for (const Graph::Write& w : n.writes)
        EXPECT_EQ(g.values[static_cast<size_t>(w.before)].memory, g.values[static_cast<size_t>(w.after)].memory);
      writes += static_cast<int>(n.writes.size());
    }
    EXPECT_GE(writes, 2 * static_cast<int>(1 + optimizer->state().size() / 2)) << type;
    run_graph(g, {ones({1})}, before);
    for (const auto& [name, t] : memory) EXPECT_TRUE(same_bits(before.at(name), t)) << type << " " << name;
  }
}

TEST(Graph, RunningStatisticsAreTracedAndReplayed) {
  nn::BatchNorm norm(1, 3, nn::BatchNorm::Options{});
  norm.initialize(1, "norm");
  const Tensor x = randn({8, 3}), fresh = randn({8, 3});
  const auto memory = named(norm.state_dict());
  const Graph g =
      trace_graph([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{norm(in[0])}; }, {x}, memory);
  auto replayed = copies(memory);
  const Tensor y = run_graph(g, {fresh}, replayed)[0];
  EXPECT_TRUE(same_bits(y, norm(fresh)));
  for (const auto& [name, t] : memory) EXPECT_TRUE(same_bits(replayed.at(name), t)) << name;
  const Graph update = trace_graph(
      [](const std::vector<Tensor>& in) {
        Tensor x = in[0];
        return std::vector<Tensor>{add_(x, 1)};
      },
      {ones({2})});
  const std::string said = error_of([&] { formats::to_onnx(update, "update"); });
  EXPECT_NE(said.find("it writes to 'input', which is there already"), std::string::npos) << said;
}

TEST(Graph, ATracedStepDrawsTheNumbersOfAnotherFromItsKey) {
  nn::Dropout drop(0.4);
  drop.initialize(1, "drop");
  const Tensor x = randn({6, 5});
  const auto step = [&](uint64_t number, const std::function<void()>& f) {
    nn::RandomScope random({9, number, 0});
    f();
  };
  Graph g;
  Tensor other_key, other;
  step(3, [&] {
    g = trace_graph([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{add(drop(in[0]), drop(in[0]))}; },
                    {x}, {{"key", nn::step_key({})}});
  });
  step(4, [&] {
    other_key = nn::step_key({});
    other = add(drop(x), drop(x));
  });
  std::map<std::string, Tensor> keys = {{"key", other_key}};
  EXPECT_TRUE(same_bits(run_graph(g, {x}, keys)[0], other));
}

TEST(Graph, DroppedElementsDoNotDependOnThreads) {
  const Tensor x = ones({70000});
  set_num_threads(1);
  const Tensor one = dropout(x, 0.3, {random_key(3, 8), 5, 2});
  set_num_threads(2);
  const Tensor two = dropout(x, 0.3, {random_key(3, 8), 5, 2});
  set_num_threads(0);
  EXPECT_TRUE(same_bits(one, two));
  EXPECT_TRUE(same_bits(one, dropout(x, 0.3, {random_key(3, 10), 5, 0})));
}

TEST(Graph, WritesThroughViewsKeepTheirOrder) {
  const auto f = [](const std::vector<Tensor>& in) {
    Tensor a = mul(in[0], 2), row = select(a, 0, 1), before = add(row, 0.0);
    add_(row, 5);
    Tensor unused = mul(a, 100);
    mul_(unused, 2);
    return std::vector<Tensor>{before, neg(a)};
  };
  const Tensor x = randn({3, 2});
  const Graph g = trace_graph(f, {x});
  for (const Graph::Node& n : g.nodes) {
    const int v = n.outputs[0];
    EXPECT_NE(g.values[static_cast<size_t>(v)].name, "mul_5") << "nothing reads what was made of it";
  }
  std::map<std::string, Tensor> none;
  const auto got = run_graph(g, {x}, none), expected = f({x});
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
}

/// Counts the ops that run while another one computes.
struct Nesting : OpObserver {
  std::vector<std::string> running, nested;
  void before(const Call& c) override {
    if (!running.empty()) nested.push_back(std::string(c.op->info.name) + " in " + running.back());
    running.push_back(c.op->info.name);
  }
  void after(const Call&, int64_t, int64_t) override { running.pop_back(); }
};

TEST(Graph, NoKernelDispatchesAnOp) {
  Nesting nesting;
  for (const OpDef& op : all_ops()) {
    if (!op.samples) continue;
    Samples samples;
    op.samples(samples);
    for (const Sample& s : samples.all())
      for (const bool half : {false, true}) {
        std::vector<Tensor> in;
        for (const Tensor& t : s.inputs)
          in.push_back(half && t.defined() && t.dtype() == DType::f64 ? cast(t, DType::bf16) : t);
        std::vector<Tensor> out(static_cast<size_t>(op.info.outputs));
        ObserveScope observe(nesting);
        dispatch(op, s.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
      }
  }
  std::string all;
  for (const std::string& n : nesting.nested) all += n + "\n";
  EXPECT_EQ(all, "");
}

}  // namespace
}  // namespace tenon
