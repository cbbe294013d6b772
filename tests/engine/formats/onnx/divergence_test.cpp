// Which node of a file computes something else than the model that it was exported from: faults planted one at a time
// in exports of many models, each named at its node; no alarm on exports as they are.
#include "engine/formats/onnx/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "core/error.h"
#include "core/random.h"
#include "engine/formats/onnx/export.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "tests/engine/normal_values.h"

namespace tenon::formats {
namespace {

using testing_values::normal_values;

constexpr double kTold = 1e-5;

/// A model with its export and its own values.
struct Specimen {
  OnnxModel file;
  ModelValues own;
};

struct Dice {
  Philox random;
  uint64_t at = 0;
  int64_t below(int64_t n) { return static_cast<int64_t>(random.uniform_double(at++) * static_cast<double>(n)) % n; }
};

using Layers = std::vector<std::pair<std::string, std::vector<Attr>>>;

/// Some convolutional blocks, a head, and behind it a product of what was rounded to f16.
Layers some_layers(Dice& dice) {
  Layers all;
  int64_t channels = 3;
  const int64_t blocks = 1 + dice.below(3);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t out = 4 + dice.below(5), kernel = 3 + 2 * dice.below(2);
    all.push_back({"Conv2d",
                   {{"in_channels", channels},
                    {"out_channels", out},
                    {"kernel_size", std::vector<int64_t>{kernel, kernel}},
                    {"padding", std::vector<int64_t>{kernel / 2, kernel / 2}}}});
    channels = out;
    all.push_back({"BatchNorm2d", {{"num_features", channels}}});
    const char* acts[] = {"ReLU", "GELU", "Tanh", "SiLU"};
    all.push_back({acts[dice.below(4)], {}});
  }
  all.push_back({"AvgPool2d", {{"kernel_size", std::vector<int64_t>{2, 2}}}});
  all.push_back({"Flatten", {}});
  all.push_back({"Linear", {{"in_features", channels * 16}, {"out_features", int64_t{12}}}});
  all.push_back({"LayerNorm", {{"normalized_shape", std::vector<int64_t>{12}}}});
  all.push_back({"Linear", {{"in_features", int64_t{12}}, {"out_features", int64_t{12}}}});
  all.push_back({"Softmax", {{"dim", int64_t{-1}}}});
  return all;
}

ModelSpec chained(const Layers& layers) {
  ModelSpec spec;
  spec.name = "net";
  spec.layers.push_back({"input", "Input", {{"shape", std::vector<int64_t>{3, 8, 8}}}});
  for (const auto& [type, attrs] : layers) {
    const std::string name = "l" + std::to_string(spec.layers.size());
    spec.wires.push_back({spec.layers.back().name, 0, name, 0});
    spec.layers.push_back({name, type, attrs});
  }
  spec.wires.push_back({spec.layers.back().name, 0, "output", 0});
  spec.layers.push_back({"output", "Output", {}});
  return spec;
}

Specimen specimen(uint64_t seed) {
  Dice dice{Philox{seed, 5}};
  GraphModule m(chained(some_layers(dice)));
  m.initialize(seed);
  const NoGrad off;
  for (uint64_t i = 0; i < 3; ++i)
    m(normal_values({8, 3, 8, 8}, seed + i));  // batch norms have statistics of their own
  m.train(false);
  const Tensor x = normal_values({5, 3, 8, 8}, seed + 100), w = normal_values({12, 6}, seed + 200);
  std::vector<std::pair<std::string, Tensor>> named{{"w", w}};
  for (const auto& p : m.parameters()) named.emplace_back(p.name, p.tensor);
  for (const auto& b : m.buffers()) named.emplace_back(b.name, b.tensor);
  const Graph g = in_onnx_terms(trace_graph(
      [&](const std::vector<Tensor>& in) {
        const Tensor rounded = cast(cast(m(in[0]), DType::f16), DType::f32);
        return std::vector<Tensor>{matmul(permute(permute(rounded, {1, 0}), {1, 0}), w)};
      },
      {x}, named));
  Specimen s;
  s.file = parse_onnx(onnx_bytes(to_onnx(g, "net")), "net");
  s.own = model_values(g, {x});
  return s;
}

/// The k-th of some nodes; none where there is none.
std::optional<size_t> pick(const OnnxGraph& g, Dice& dice, const std::function<bool(const OnnxNode&)>& is) {
  std::vector<size_t> found;
  for (size_t i = 0; i < g.nodes.size(); ++i)
    if (is(g.nodes[i])) found.push_back(i);
  if (found.empty()) return {};
  return found[static_cast<size_t>(dice.below(static_cast<int64_t>(found.size())))];
}

OnnxAttribute::Value& attribute(OnnxNode& n, const std::string& name) {
  for (OnnxAttribute& a : n.attributes)
    if (a.name == name) return a.value;
  n.attributes.push_back({name, int64_t{0}});
  return n.attributes.back().value;
}

// Each plants one fault and names the value that is the first to be wrong.

std::optional<std::string> transposed_attribute(OnnxGraph& g, Dice& dice) {
  const auto at = pick(g, dice, [](const OnnxNode& n) {
    return n.op_type == "Gemm" || n.op_type == "Transpose" || n.op_type == "AveragePool";
  });
  OnnxNode& n = g.nodes.at(at.value());
  if (n.op_type == "Gemm") {
    attribute(n, "transB") = int64_t{1} - n.integer("transB", 0);
  } else if (n.op_type == "Transpose") {
    auto perm = n.integers("perm");
    std::swap(perm[0], perm[1]);
    attribute(n, "perm") = perm;
  } else {
    attribute(n, "kernel_shape") = std::vector<int64_t>{1, 4};
  }
  return n.outputs[0];
}
std::optional<std::string> stale_constant(OnnxGraph& g, Dice& dice) {
  const auto at = pick(g, dice, [&](const OnnxNode& n) {
    const Tensor* w = n.inputs.size() > 1 ? g.initializer(n.inputs[1]) : nullptr;
    return w && w->dtype() == DType::f32 && w->numel() > 1;
  });
  const OnnxNode& n = g.nodes.at(at.value());
  for (auto& [name, t] : g.initializers)
    if (name == n.inputs[1]) {
      t = clone(t);
      t.data<float>()[dice.below(t.numel())] += 0.25f;  // one number that a later step changed
    }
  return n.outputs[0];
}
std::optional<std::string> wrong_pad(OnnxGraph& g, Dice& dice) {
  const auto at = pick(g, dice, [](const OnnxNode& n) { return n.op_type == "Conv"; });
  OnnxNode& n = g.nodes.at(at.value());
  auto pads = n.integers("pads");
  // All at one end: the size stays as it is. Or one more, and the size does not.
  if (dice.below(2))
    pads[2] += pads[0], pads[0] = 0;
  else
    ++pads[static_cast<size_t>(dice.below(4))];
  attribute(n, "pads") = pads;
  return n.outputs[0];
}
std::optional<std::string> lost_cast(OnnxGraph& g, Dice&) {
  const auto at = std::find_if(g.nodes.begin(), g.nodes.end(), [](const OnnxNode& n) { return n.op_type == "Cast"; });
  const std::string from = at->inputs[0], made = at->outputs[0];
  g.nodes.erase(at);
  std::string reader;
  for (OnnxNode& n : g.nodes)
    for (std::string& name : n.inputs)
      if (name == made) name = from, reader = n.outputs[0];
  return reader;
}
std::optional<std::string> other_epsilon(OnnxGraph& g, Dice& dice) {
  const auto at = pick(g, dice, [](const OnnxNode& n) {
    return n.op_type == "BatchNormalization" || n.op_type == "LayerNormalization";
  });
  OnnxNode& n = g.nodes.at(at.value());
  attribute(n, "epsilon") = n.number("epsilon", 1e-5) * (dice.below(2) ? 100 : 1000);
  return n.outputs[0];
}
std::optional<std::string> wrong_axis(OnnxGraph& g, Dice& dice) {
  const auto at =
      pick(g, dice, [](const OnnxNode& n) { return n.op_type == "Softmax" || n.op_type == "LayerNormalization"; });
  OnnxNode& n = g.nodes.at(at.value());
  attribute(n, "axis") = int64_t{0};
  return n.outputs[0];
}

struct Fault {
  const char* name;
  std::optional<std::string> (*plant)(OnnxGraph& g, Dice& dice);
};
constexpr Fault kFaults[] = {{"transposed attribute", transposed_attribute},
                             {"stale constant", stale_constant},
                             {"wrong pad", wrong_pad},
                             {"cast fused away", lost_cast},
                             {"epsilon", other_epsilon},
                             {"axis", wrong_axis}};

TEST(Divergence, planted_faults_are_named_at_their_node) {
  int right = 0, planted = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const Specimen s = specimen(seed);
    for (const Fault& fault : kFaults) {
      Dice dice{Philox{seed, 77}};
      OnnxModel file = s.file;
      const std::optional<std::string> at = fault.plant(file.graph, dice);
      ASSERT_TRUE(at) << fault.name;
      ++planted;
      const Divergence found = find_divergence(file, s.own, kTold);
      if (found.first < 0) {
        ADD_FAILURE() << fault.name << " of model " << seed << " at " << *at << " was not found";
        continue;
      }
      EXPECT_EQ(found.nodes[static_cast<size_t>(found.first)].name, *at) << fault.name << " of model " << seed;
      right += found.nodes[static_cast<size_t>(found.first)].name == *at;
    }
  }
  EXPECT_EQ(planted, 150);
  EXPECT_EQ(right, planted);
}

TEST(Divergence, exports_as_they_are_raise_no_alarm) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Specimen s = specimen(1000 + seed);
    const Divergence found = find_divergence(s.file, s.own, kTold);
    EXPECT_EQ(found.first, -1) << seed << ": "
                               << (found.first < 0 ? "" : found.nodes[static_cast<size_t>(found.first)].name) << " by "
                               << (found.first < 0 ? 0
                                                   : found.nodes[static_cast<size_t>(found.first)].alone.relative());
    EXPECT_EQ(found.unmatched, 0u);
    EXPECT_TRUE(found.broken.empty()) << found.broken;
    EXPECT_EQ(found.nodes.size(), s.file.graph.nodes.size());
  }
}

TEST(Divergence, what_follows_a_fault_answers_for_itself_and_shows_how_it_grows) {
  const Specimen s = specimen(7);
  OnnxModel file = s.file;
  Dice dice{Philox{7, 77}};
  const std::string at = stale_constant(file.graph, dice).value();
  const Divergence found = find_divergence(file, s.own, kTold);
  ASSERT_GE(found.first, 0);
  for (size_t i = 0; i < found.nodes.size(); ++i) {
    const NodeDivergence& n = found.nodes[i];
    if (static_cast<int64_t>(i) != found.first) {
      EXPECT_LE(n.alone.relative(), kTold) << n.name;
    }
    if (static_cast<int64_t>(i) < found.first) {
      EXPECT_LE(n.carried.relative(), kTold) << n.name;
    }
  }
  EXPECT_GT(found.nodes.back().carried.relative(), kTold) << "what comes out is wrong, too";
}

TEST(Divergence, a_file_of_other_names_is_compared_by_what_comes_out) {
  const Specimen s = specimen(9);
  OnnxModel file = s.file;
  const auto renamed = [](std::string& name) {
    if (!name.empty()) name = "other/" + name;
  };
  for (OnnxNode& n : file.graph.nodes) {
    for (std::string& name : n.inputs) renamed(name);
    for (std::string& name : n.outputs) renamed(name);
  }
  for (auto& [name, t] : file.graph.initializers) renamed(name);
  for (auto* values : {&file.graph.inputs, &file.graph.outputs})
    for (OnnxValue& v : *values) renamed(v.name);
  Divergence found = find_divergence(file, s.own, kTold);
  EXPECT_EQ(found.nodes.size(), 1u);
  EXPECT_EQ(found.unmatched, file.graph.nodes.size() - 1);
  EXPECT_EQ(found.first, -1);
  for (auto& [name, t] : file.graph.initializers)
    if (name == "other/w") t = normal_values(t.size(), 99);
  found = find_divergence(file, s.own, kTold);
  ASSERT_EQ(found.first, 0);
  EXPECT_EQ(found.nodes[0].op_type, "MatMul");
}

TEST(Divergence, a_file_that_cannot_be_run_names_the_node_where_it_ends) {
  const Specimen s = specimen(11);
  OnnxModel file = s.file;
  const auto first_conv = std::find_if(file.graph.nodes.begin(), file.graph.nodes.end(),
                                       [](const OnnxNode& n) { return n.op_type == "Conv"; });
  const OnnxNode& conv = *first_conv;
  for (auto& [name, t] : file.graph.initializers)
    if (name == conv.inputs[1]) t = normal_values({4, 2, 3, 3}, 1);  // of other channels
  const Divergence found = find_divergence(file, s.own, kTold);
  ASSERT_EQ(found.first, first_conv - file.graph.nodes.begin());
  EXPECT_FALSE(found.nodes[static_cast<size_t>(found.first)].why.empty());
  EXPECT_FALSE(found.broken.empty());
}

}  // namespace
}  // namespace tenon::formats
