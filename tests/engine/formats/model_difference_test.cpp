// Two model files: which tensors and nodes match, and what the differences of their values come to.
#include "engine/formats/model_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

using State = TensorPair::State;

Tensor of_values(const Shape& shape, const std::vector<float>& values) {
  Tensor t = empty(shape);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
Tensor drawn_values(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Tensor t = empty(shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

/// A file that holds these, without bytes of its own.
ModelFile made_file(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  ModelFile m;
  m.path = "made";
  std::vector<Tensor> values;
  for (const auto& [name, t] : tensors) {
    m.tensors.push_back({.name = name,
                         .dtype = tenon::name(t.dtype()),
                         .shape = {t.size().begin(), t.size().end()},
                         .bytes = t.nbytes()});
    values.push_back(t);
  }
  m.values = [values](size_t i) { return values.at(i); };
  return m;
}
ModelFile graph_of(std::vector<ModelFile::Node> nodes) {
  ModelFile m = made_file({});
  m.nodes = std::move(nodes);
  return m;
}

TEST(TensorDifferences, are_what_the_formulas_say) {
  const TensorDifference d = tensor_difference(of_values({2, 2}, {3, 0, 0, 4}), of_values({2, 2}, {3, 1, 0, 2}));
  EXPECT_EQ(d.count, 4);
  EXPECT_EQ(d.changed, 2);
  EXPECT_FALSE(d.same_bits);
  EXPECT_DOUBLE_EQ(d.norm_a(), 5);
  EXPECT_DOUBLE_EQ(d.norm_b(), std::sqrt(14.0));
  EXPECT_DOUBLE_EQ(d.norm(), std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(d.relative(), std::sqrt(5.0) / 5);
  EXPECT_DOUBLE_EQ(d.cosine(), 17 / (5 * std::sqrt(14.0)));
  EXPECT_EQ(d.largest, 2);
  EXPECT_EQ(d.largest_at, 3);
  EXPECT_EQ(d.a_there, 4);
  EXPECT_EQ(d.b_there, 2);
  EXPECT_EQ(d.worst(), 2);
  EXPECT_EQ(d.worst_relative(), 0.5);
}

TEST(TensorDifferences, one_unit_in_the_last_place_is_found_and_the_sign_of_zero) {
  Tensor a = drawn_values({300, 301}, 1), b = clone(a);
  float& moved = b.data<float>()[70'000];
  moved = std::nextafter(moved, 10.f);
  TensorDifference d = tensor_difference(a, b);
  EXPECT_EQ(d.changed, 1);
  EXPECT_EQ(d.largest_at, 70'000);
  EXPECT_GT(d.largest, 0);
  EXPECT_LT(d.relative(), 1e-8);
  EXPECT_GT(d.cosine(), 1 - 1e-12);
  d = tensor_difference(of_values({1}, {0.f}), of_values({1}, {-0.f}));
  EXPECT_FALSE(d.same_bits);
  EXPECT_EQ(d.changed, 1);
  EXPECT_EQ(d.norm(), 0);
  EXPECT_EQ(d.cosine(), 1);
  EXPECT_EQ(d.largest_at, 0);
}

TEST(TensorDifferences, what_is_not_finite_is_counted_and_summed_up_nowhere) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const Tensor a = of_values({5}, {1, nan, inf, 2, 3}), b = of_values({5}, {1, nan, inf, nan, 4});
  const TensorDifference d = tensor_difference(a, b);
  EXPECT_EQ(d.not_finite, 3);
  EXPECT_EQ(d.changed, 2) << "the same NaN and the same infinity did not change";
  EXPECT_EQ(d.first_not_finite, 3);
  EXPECT_EQ(d.norm(), 1);
  EXPECT_EQ(d.largest_at, 4);
  EXPECT_EQ(d.worst(), inf) << "NaN stands beside 2";
  EXPECT_EQ(tensor_difference(of_values({2}, {nan, 2}), of_values({2}, {-nan, 3})).worst_relative(), 0.5);
  EXPECT_EQ(tensor_difference(of_values({1}, {inf}), of_values({1}, {-inf})).worst(), inf);
  EXPECT_TRUE(tensor_difference(a, a).same_bits);
  EXPECT_EQ(tensor_difference(of_values({1}, {0}), of_values({1}, {1})).relative(),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(tensor_difference(of_values({1}, {0}), of_values({1}, {1})).cosine()));
  EXPECT_EQ(tensor_difference(empty({0, 3}), empty({0, 3})).largest_at, -1);
}

TEST(TensorDifferences, types_and_strides_do_not_matter_to_values) {
  const Tensor a = drawn_values({64, 48}, 2), rounded = cast(a, DType::bf16);
  TensorDifference d = tensor_difference(a, rounded);
  EXPECT_FALSE(d.same_bits);
  EXPECT_GT(d.changed, 64 * 48 / 2);
  EXPECT_GT(d.relative(), 1e-4);
  EXPECT_LT(d.relative(), 1.0 / 256) << "bf16 has eight bits";
  d = tensor_difference(cast(rounded, DType::f32), rounded);
  EXPECT_EQ(d.changed, 0) << "the values are the same, the type is not";
  EXPECT_FALSE(d.same_bits);
  const Tensor turned = contiguous(transpose(a, 0, 1));
  EXPECT_TRUE(tensor_difference(a, transpose(turned, 0, 1)).same_bits);
  EXPECT_TRUE(tensor_difference(cast(a, DType::f16), transpose(cast(turned, DType::f16), 0, 1)).same_bits);
}

TEST(TensorDifferences, have_the_same_bits_at_any_number_of_threads_and_stop_when_told) {
  const Tensor a = drawn_values({2'000'003}, 3), b = drawn_values({2'000'003}, 4);
  const int threads = num_threads();
  set_num_threads(1);
  const TensorDifference one = tensor_difference(a, b);
  set_num_threads(4);
  const TensorDifference four = tensor_difference(a, b);
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(&one.square, &four.square, sizeof one.square), 0);
  EXPECT_EQ(std::memcmp(&one.dot, &four.dot, sizeof one.dot), 0);
  EXPECT_EQ(one.largest_at, four.largest_at);
  EXPECT_THROW(tensor_difference(a, b, [](int64_t) { return false; }), Error);
  EXPECT_THROW(tensor_difference(a, empty({3})), Error);
}

TEST(ModelDifferences, tell_every_way_in_which_two_tensors_differ) {
  const Tensor w = drawn_values({4, 6}, 5);
  Tensor moved = clone(w);
  moved.data<float>()[7] += 1;
  const ModelFile a = made_file({{"same", w}, {"moved", w}, {"narrow", w}, {"turned", w}, {"grown", w}, {"gone", w}});
  const ModelFile b = made_file({{"new", w},
                                 {"same", w},
                                 {"moved", moved},
                                 {"narrow", cast(w, DType::bf16)},
                                 {"turned", contiguous(transpose(w, 0, 1))},
                                 {"grown", drawn_values({5, 6}, 6)}});
  int64_t told = 0;
  const ModelDifference d = model_difference(a, b, [&](int64_t done, int64_t total) {
    EXPECT_LE(done, total);
    EXPECT_EQ(total, 5 * 24);
    told = done;
    return true;
  });
  EXPECT_GT(told, 0);
  std::map<std::string, State> states;
  for (const TensorPair& p : d.tensors)
    states[p.a >= 0 ? a.tensors[static_cast<size_t>(p.a)].name : b.tensors[static_cast<size_t>(p.b)].name] = p.state;
  EXPECT_EQ(states, (std::map<std::string, State>{{"same", State::same},
                                                  {"moved", State::changed},
                                                  {"narrow", State::other_type},
                                                  {"turned", State::transposed},
                                                  {"grown", State::other_shape},
                                                  {"gone", State::only_a},
                                                  {"new", State::only_b}}));
  EXPECT_EQ(d.tensors[3].difference.changed, 0) << "a transpose holds the same";
  EXPECT_EQ(d.tensors[1].difference.largest_at, 7);
  EXPECT_NEAR(d.tensors[1].difference.norm(), 1, 1e-6);
  EXPECT_EQ(d.all().count, 4 * 24);
  EXPECT_THROW(model_difference(a, b, [](int64_t, int64_t) { return false; }), Error);
}

TEST(ModelDifferences, names_match_without_what_wraps_them) {
  const Tensor w = drawn_values({3}, 7);
  const ModelFile plain = made_file({{"fc.weight", w}, {"fc.bias", w}, {"step", w}}),
                  wrapped = made_file({{"module.fc.weight", w}, {"module.fc.bias", w}, {"step", w}, {"other", w}});
  for (const bool swapped : {false, true}) {
    const ModelDifference d = swapped ? model_difference(plain, wrapped) : model_difference(wrapped, plain);
    EXPECT_EQ(swapped ? d.dropped_b : d.dropped_a, "module.");
    EXPECT_EQ(d.count(State::same), 3u);
    EXPECT_EQ(d.count(swapped ? State::only_b : State::only_a), 1u);
  }
}

TEST(ModelDifferences, values_that_cannot_be_read_are_said_so) {
  ModelFile a = made_file({{"w", drawn_values({3}, 8)}}), b = made_file({{"w", drawn_values({3}, 8)}});
  b.tensors[0].problem = "is quantized";
  const ModelDifference d = model_difference(a, b);
  ASSERT_EQ(d.tensors[0].state, State::unread);
  EXPECT_EQ(d.tensors[0].problem, "in B it is quantized");
}

TEST(GraphDifferences, nodes_match_by_name_then_by_op_and_place) {
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  auto node = [](const std::string& name, const std::string& op, std::vector<std::string> in, const std::string& out,
                 Attributes attributes = {}) {
    return ModelFile::Node{name, op, "", "", std::move(in), {out}, std::move(attributes)};
  };
  // Names of values are anyone's; the second of two without a name is gone; one has other attributes.
  const ModelFile a =
      graph_of({node("conv", "Conv", {"x", "w"}, "1", {{"pads", "[1, 1]"}, {"group", "1"}}),
                node("", "Relu", {"1"}, "2"), node("", "Relu", {"2"}, "3"), node("add", "Add", {"3", "1"}, "4")});
  const ModelFile b =
      graph_of({node("conv", "Conv", {"x", "w"}, "c", {{"pads", "[0, 0]"}, {"dilations", "[2]"}}),
                node("", "Relu", {"c"}, "r"), node("add", "Add", {"r", "c"}, "s"), node("tail", "Tanh", {"s"}, "t")});
  const auto pairs = node_differences(a, b);
  ASSERT_EQ(pairs.size(), 5u);
  EXPECT_EQ(pairs[0].b, 0);
  EXPECT_EQ(pairs[0].change, "group: 1 -> none; pads: [1, 1] -> [0, 0]; dilations: none -> [2]");
  EXPECT_TRUE(pairs[1].same()) << pairs[1].change;
  EXPECT_EQ(pairs[2].b, -1);
  EXPECT_EQ(pairs[3].b, 2);
  EXPECT_EQ(pairs[3].change, "other inputs");
  EXPECT_EQ(pairs[4].a, -1);
  for (const NodePair& p : node_differences(a, a)) EXPECT_TRUE(p.same()) << p.change;
}

}  // namespace
}  // namespace tenon::formats
