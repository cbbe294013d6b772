// What every node of a model loses for being computed in f32.
#include "engine/formats/onnx/node_errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/pool.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/view.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

Tensor row(std::vector<float> values) {
  const Tensor t = empty({1, static_cast<int64_t>(values.size())}, DType::f32);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
OnnxValue declared(const std::string& name) {
  OnnxValue v;
  v.name = name;
  v.typed = true;
  return v;
}
/// x + w, then exp, then a cast to i64 and back.
OnnxModel small_model() {
  OnnxModel m;
  m.graph.inputs = {declared("x")};
  m.graph.outputs = {declared("y")};
  m.graph.initializers = {{"w", row({0.1f, 1e8f})}};
  m.graph.nodes = {{"add", "Add", "", {"x", "w"}, {"a"}, {}},
                   {"", "Neg", "", {"a"}, {"n"}, {}},
                   {"round", "Cast", "", {"n"}, {"i"}, {{"to", int64_t{7}}}},
                   {"back", "Cast", "", {"i"}, {"y"}, {{"to", int64_t{1}}}}};
  return m;
}

TEST(NodeErrors, the_same_model_is_computed_in_f64) {
  const OnnxModel wide = in_f64(small_model());
  EXPECT_EQ(wide.graph.inputs[0].dtype, DType::f64);
  EXPECT_EQ(wide.graph.nodes[4].integer("to", 0), 11);
  EXPECT_EQ(wide.graph.nodes[3].integer("to", 0), 7);
  Tensor x = empty({1, 2}, DType::f64);
  x.data<double>()[0] = 0.1;
  x.data<double>()[1] = 3;
  const Tensor sum = run_onnx(with_outputs(wide, {"a"}), {x}).at(0);
  ASSERT_EQ(sum.dtype(), DType::f64);
  EXPECT_EQ(sum.data<double>()[0], 0.1 + double{0.1f});
  EXPECT_EQ(sum.data<double>()[1], 1e8 + 3);
  EXPECT_EQ(small_model().graph.nodes[3].integer("to", 0), 1);
}

/// A file may have more weights than the memory holds twice.
TEST(NodeErrors, weights_are_wide_only_while_they_are_read) {
  OnnxModel m = small_model();
  constexpr int64_t kMany = 1 << 18;
  m.graph.initializers.clear();
  m.graph.nodes.clear();
  std::string last = "x";
  for (int i = 0; i < 16; ++i) {
    const std::string w = "w" + std::to_string(i), sum = "sum" + std::to_string(i), next = "y" + std::to_string(i);
    Tensor t = empty({kMany, 1}, DType::f32);
    std::fill_n(t.data<float>(), kMany, 0.5f);
    m.graph.initializers.emplace_back(w, t);
    m.graph.nodes.push_back({"", "ReduceSum", "", {w}, {sum}, {{"keepdims", int64_t{0}}}});
    m.graph.nodes.push_back({"", "Add", "", {last, sum}, {next}, {}});
    last = next;
  }
  m.graph.initializers.emplace_back("unread", m.graph.initializers[0].second);
  m.graph.outputs = {declared(last)};
  const int64_t before = pool_stats().live_bytes;
  const OnnxModel wide = in_f64(m);
  int64_t most = 0;
  OnnxLimits limits;
  limits.go_on = [&](int64_t, int64_t) {
    most = std::max(most, pool_stats().live_bytes - before);
    return true;
  };
  const OnnxResult r = run_onnx_items(wide, {OnnxItem(cast(row({1, 2}), DType::f64))}, limits);
  EXPECT_EQ(r.outputs.at(0).tensor.data<double>()[1], 2 + 16 * kMany * 0.5);
  EXPECT_LT(most, 3 * kMany * 8) << "16 of them would be " << 16 * kMany * 8;
  const auto& named = wide.graph.initializers.back();
  EXPECT_EQ(named.first, "unread");
  EXPECT_EQ(named.second.dtype(), DType::f32);
}

TEST(NodeErrors, a_node_that_loses_digits_is_told_with_how_many) {
  // 1e8 + 3 has no place among the f32, which lie 8 apart there.
  const auto errors = node_errors(small_model(), {row({0.0f, 3.0f})});
  ASSERT_EQ(errors.size(), 3u) << "what makes whole numbers has no error of rounding";
  EXPECT_EQ(errors[0].name, "add");
  EXPECT_EQ(errors[0].op_type, "Add");
  EXPECT_NEAR(errors[0].worst, 3 / 1e8, 1e-12);
  EXPECT_EQ(errors[1].name, "n") << "a node without a name is called as what it makes";
  EXPECT_EQ(errors[2].node, 3u);
  EXPECT_EQ(node_errors(small_model(), {row({0.0f, 8.0f})})[0].worst, 0.0) << "0.1f is the same number in f64";
}

TEST(NodeErrors, an_overflow_in_f32_is_infinite) {
  OnnxModel m = small_model();
  m.graph.nodes[1].op_type = "Exp";
  m.graph.initializers[0].second = row({0, 0});
  EXPECT_TRUE(std::isinf(node_errors(m, {row({1.0f, 100.0f})})[1].worst));
}

}  // namespace
}  // namespace tenon::formats
