// Which tensor of a file goes where.
#include "engine/train/weight_map.h"

#include <gtest/gtest.h>

#include "engine/ops/create.h"
#include "engine/train/recipe.h"
#include "tests/engine/files.h"

namespace tenon {
namespace {

using testing_files::error_of;
using Shape1 = std::vector<int64_t>;

std::vector<ModelTensor> tensors_of_model() {
  return {{"stem.weight", {8, 3}},
          {"stem.bias", {8}},
          {"norm.weight", {8}},
          {"norm.bias", {8}},
          {"norm.running_mean", {8}, true},
          {"norm.running_var", {8}, true},
          {"head.weight", {4, 8}},
          {"head.bias", {4}}};
}
GivenTensor given(const std::string& name, Shape1 shape) {
  GivenTensor g{name, "f32", shape, {}, {}};
  g.tensor = zeros(Shape(shape));
  return g;
}
Recipe with(const std::string& map, const std::string& match = "name") {
  Recipe r;
  r.set("init.map", map);
  r.set("init.match", match);
  return r;
}
WeightMap mapped(std::vector<GivenTensor> file, const std::string& map = "", const std::string& match = "name") {
  return map_weights(tensors_of_model(), std::move(file), WeightRules(with(map, match)));
}
/// "stem.weight < a.weight by rule" for every row.
std::vector<std::string> rows(const WeightMap& m) {
  std::vector<std::string> all;
  for (const WeightRow& r : m.rows)
    all.push_back((r.target < 0 ? "" : m.model[static_cast<size_t>(r.target)].name) + " < " +
                  (r.source < 0 ? "" : m.given[static_cast<size_t>(r.source)].name) + " " + name(r.state));
  return all;
}
bool has(const WeightMap& m, const std::string& row) {
  const auto all = rows(m);
  return std::find(all.begin(), all.end(), row) != all.end();
}

TEST(WeightMap, the_same_name_also_inside_a_dictionary) {
  const WeightMap m = mapped({given("state_dict/stem.weight", {8, 3}), given("state_dict/stem.bias", {8}),
                              given("state_dict/head.weight", {10, 8}), given("opt/state/0/exp_avg", {8, 3}),
                              given("state_dict/norm.num_batches_tracked", {})});
  EXPECT_TRUE(has(m, "stem.weight < state_dict/stem.weight by name"));
  EXPECT_TRUE(has(m, "stem.bias < state_dict/stem.bias by name"));
  EXPECT_TRUE(has(m, "head.weight < state_dict/head.weight wrong shape"));
  EXPECT_TRUE(has(m, "head.bias <  missing"));
  EXPECT_TRUE(has(m, " < opt/state/0/exp_avg left over"));
  EXPECT_TRUE(has(m, " < state_dict/norm.num_batches_tracked left over"));
  EXPECT_EQ(m.taken(), 2u);
  EXPECT_EQ(m.rows.size(), 8u + 2u);
  EXPECT_EQ(m.text(),
            "2 of 8 tensors of the model are taken (2 by name); 5 missing, 1 wrong shape; of the file 2 left over");
  // Which of two dictionaries is meant is not guessed.
  const std::string refusal = error_of([] { mapped({given("ema/stem.bias", {8}), given("model/stem.bias", {8})}); });
  EXPECT_SAYS(refusal, "both \"ema/stem.bias\" and \"model/stem.bias\" of the file are to be \"stem.bias\"");
  EXPECT_TRUE(has(mapped({given("ema/stem.bias", {8}), given("model/stem.bias", {8})}, "ema/*="),
                  "stem.bias < model/stem.bias by name"));
  // A whole name comes before one without its dictionary.
  EXPECT_TRUE(has(mapped({given("ema/stem.bias", {8}), given("stem.bias", {8})}), "stem.bias < stem.bias by name"));
}

TEST(WeightMap, rules_come_first_and_the_first_that_fits_holds) {
  const WeightMap m = mapped({given("backbone.a.weight", {8, 3}), given("backbone.a.bias", {8}),
                              given("stem.bias", {8}), given("fc.weight", {4, 8}), given("fc.bias", {4})},
                             "backbone.a.bias=; backbone.a.*=stem.*; fc.*=head.*; fc.bias=stem.bias");
  EXPECT_TRUE(has(m, "stem.weight < backbone.a.weight by rule"));
  EXPECT_TRUE(has(m, " < backbone.a.bias left out"));
  EXPECT_TRUE(has(m, "stem.bias < stem.bias by name"));
  EXPECT_TRUE(has(m, "head.bias < fc.bias by rule"));
  EXPECT_TRUE(has(mapped({given("a", {8}), given("stem.bias", {8})}, "a=stem.bias"), "stem.bias < a by rule"));
  EXPECT_TRUE(has(mapped({given("a", {8})}, "a=nowhere"), " < a left over"));
  EXPECT_SAYS(error_of([] { mapped({}, "just words"); }), "\"just words\" is no rule");
  EXPECT_SAYS(error_of([] { mapped({}, "a.*=b.*.*"); }), "more stars behind");
  EXPECT_SAYS(error_of([] {
                mapped({given("a", {8}), given("b", {8})}, "a=stem.bias; b=stem.bias");
              }),
              "both \"a\" and \"b\"");
}

TEST(WeightMap, shapes_suggest_and_are_taken_only_where_asked) {
  const std::vector<GivenTensor> file = {given("conv1.weight", {8, 3}),
                                         given("bn.weight", {8}),
                                         given("conv1.bias", {8}),
                                         given("bn.bias", {8}),
                                         given("bn.running_mean", {8}),
                                         given("bn.running_var", {8}),
                                         given("out", {4, 8}),
                                         given("o2", {4}),
                                         given("o3", {4})};
  const WeightMap m = mapped(file);
  EXPECT_EQ(m.taken(), 0u);
  EXPECT_TRUE(has(m, "stem.weight < conv1.weight suggested by shape"));
  EXPECT_TRUE(has(m, "head.weight < out suggested by shape"));
  EXPECT_TRUE(has(m, "head.bias <  missing")) << "two are left of its shape";
  EXPECT_TRUE(has(m, " < o2 left over"));
  const WeightMap taken = mapped(file, "", "shape");
  EXPECT_TRUE(has(taken, "stem.bias < conv1.bias by shape")) << "each kind in its order";
  EXPECT_TRUE(has(taken, "norm.weight < bn.weight by shape"));
  EXPECT_TRUE(has(taken, "norm.running_var < bn.running_var by shape"));
  EXPECT_EQ(taken.taken(), 7u);
  // A mean never becomes a weight because both have one size.
  const WeightMap other = mapped({given("x.running_mean", {4})}, "", "shape");
  EXPECT_TRUE(has(other, "head.bias <  missing"));
}

TEST(WeightMap, a_rule_for_a_beginning_is_found) {
  std::vector<GivenTensor> file;
  for (const ModelTensor& t : tensors_of_model()) file.push_back(given("module." + t.name, t.shape));
  const WeightMap m = mapped(file);
  EXPECT_EQ(m.rule, "module.*=*");
  EXPECT_EQ(m.rule_pairs, 8);
  EXPECT_EQ(mapped(file, m.rule).taken(), 8u);
  EXPECT_EQ(mapped(file, m.rule).rule, "");
}

TEST(WeightMap, what_cannot_be_read_is_not_taken) {
  GivenTensor g = given("stem.bias", {8});
  g.tensor = {};
  g.problem = "is quantized";
  EXPECT_TRUE(has(mapped({g}), "stem.bias < stem.bias unreadable"));
}

TEST(WeightMap, a_rule_of_one_name_takes_the_place_of_another) {
  EXPECT_EQ(with_rule("", "a", "x"), "a=x");
  EXPECT_EQ(with_rule("a=x; m.*=*", "a", "y"), "a=y; m.*=*");
  EXPECT_EQ(with_rule("a=x; m.*=*", "b", "x"), "b=x; m.*=*") << "two tensors are never one";
  EXPECT_EQ(with_rule("a=x", "a", ""), "a=");
}

}  // namespace
}  // namespace tenon
