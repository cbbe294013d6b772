#include "projects/search/search_space.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "projects/search/sweep_plan.h"
#include "tests/messages.h"

namespace tenon::projects {
namespace {

using testing_words::message_of;

SearchKey key(const std::string& name, const std::string& text) {
  return SearchSpace({{name, text}}, Recipe()).keys().at(0);
}
std::string refused(const std::string& name, const std::string& text) {
  return message_of([&] { key(name, text); });
}

TEST(SearchSpace, reads_lists_and_ranges_and_writes_them_again) {
  EXPECT_EQ(key("optimizer.type", "adam, sgd").text(), "adam,sgd");
  EXPECT_EQ(key("optimizer.lr", "log:1e-4..1e-1:4").text(), "log:1e-04..0.1:4");
  EXPECT_EQ(key("optimizer.weight_decay", "0..0.5").text(), "lin:0..0.5");
  EXPECT_EQ(key("data.batch_size", "int:1..8").text(), "int:1..8");
  EXPECT_EQ(key("data.transforms", "flip|random_crop padding=2,3").values.size(), 2u) << "values that hold commas";
  for (const char* text : {"log:1e-04..0.1:4", "lin:0..0.5", "0.1,0.2"})
    EXPECT_EQ(key("optimizer.lr", key("optimizer.lr", text).text()).text(), key("optimizer.lr", text).text());
}

TEST(SearchSpace, refuses_as_set_does_before_anything_starts) {
  EXPECT_NE(refused("optimizer.lrr", "1,2").find("did you mean optimizer.lr"), std::string::npos);
  EXPECT_NE(refused("data.batch_size", "0,64").find("at least 1"), std::string::npos);
  EXPECT_NE(refused("data.batch_size", "int:0..64").find("at least 1"), std::string::npos);
  EXPECT_NE(refused("optimizer.type", "adam,sgdd").find("sgdd"), std::string::npos);
  EXPECT_NE(refused("optimizer.lr", "log:0..1").find("above 0"), std::string::npos);
  EXPECT_NE(refused("optimizer.lr", "lin:2..1").find("not above its beginning"), std::string::npos);
  EXPECT_NE(refused("optimizer.lr", "log:x..1").find("two numbers"), std::string::npos);
  EXPECT_NE(refused("optimizer.lr", "log:1e-3..1:1").find("2 to 1000"), std::string::npos);
  EXPECT_NE(refused("optimizer.type", "log:1..2").find("no range"), std::string::npos);
  EXPECT_NE(refused("data.batch_size", "int:1.5..3").find("whole numbers"), std::string::npos);
  EXPECT_NE(refused("seed", "1,2,1").find("listed twice"), std::string::npos);
  EXPECT_NE(message_of([] {
              SearchSpace({{"seed", "1,2"}, {"seed", "3,4"}}, Recipe());
            }).find("given twice"),
            std::string::npos);
  EXPECT_NE(message_of([] { SearchSpace({}, Recipe()); }).find("searches nothing"), std::string::npos);
}

TEST(SearchSpace, a_key_of_another_definition_needs_that_one_among_the_choices) {
  EXPECT_NE(refused("optimizer.momentum", "0,0.9").find("says nothing"), std::string::npos) << "to adam, the default";
  EXPECT_NO_THROW(SearchSpace({{"optimizer.momentum", "0,0.9"}, {"optimizer.type", "adam,sgd"}}, Recipe()));
}

TEST(SearchSpace, values_fill_their_share_of_the_unit_interval) {
  const SearchKey list = key("optimizer.type", "adam,sgd,lion"), log = key("optimizer.lr", "log:1e-4..1e-2"),
                  whole = key("data.batch_size", "int:3..6"), steps = key("data.batch_size", "log:8..128");
  EXPECT_EQ(list.value_at(0), "adam");
  EXPECT_EQ(list.value_at(0.34), "sgd");
  EXPECT_EQ(list.value_at(1), "lion");
  EXPECT_EQ(log.value_at(0.5), "0.001");
  EXPECT_EQ(whole.value_at(0.26), "4");
  EXPECT_EQ(whole.value_at(0.999), "6");
  EXPECT_EQ(steps.value_at(0.5), "32");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(whole.value_at(i / 1000.0));
  EXPECT_EQ(seen.size(), 4u);
  for (const SearchKey& k : {list, log, whole, steps})
    for (double place : {0.01, 0.3, 0.62, 0.99}) {
      const std::string value = k.value_at(place);
      EXPECT_EQ(k.value_at(k.place_of(value)), value) << k.text() << " at " << place;
    }
}

TEST(SearchSpace, a_grid_runs_through_its_last_key_first) {
  const SearchSpace space({{"optimizer.lr", "log:1e-3..1e-1:3"}, {"optimizer.type", "adam,sgd"}}, Recipe());
  ASSERT_EQ(space.grid_size(), 6);
  std::vector<std::string> points;
  for (int64_t i = 0; i < 6; ++i) {
    const Settings s = space.grid_point(i);
    points.push_back(s[0].second + " " + s[1].second);
  }
  EXPECT_EQ(points,
            (std::vector<std::string>{"0.001 adam", "0.001 sgd", "0.01 adam", "0.01 sgd", "0.1 adam", "0.1 sgd"}));
  EXPECT_EQ(key("data.batch_size", "int:1..3").grid_size(), 3) << "no more than there are";
}

TEST(SearchSpace, words_are_equally_far_from_each_other) {
  const SearchSpace space({{"optimizer.type", "adam,sgd,lion"}, {"optimizer.lr", "log:1e-3..1e-1"}}, Recipe());
  ASSERT_EQ(space.features(), 4u);
  const auto at = [&](const char* type, const char* lr) {
    return space.features({{"optimizer.type", type}, {"optimizer.lr", lr}});
  };
  const auto far = [](const std::vector<double>& a, const std::vector<double>& b) {
    double square = 0;
    for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(square);
  };
  EXPECT_NEAR(far(at("adam", "0.01"), at("sgd", "0.01")), 1, 1e-12);
  EXPECT_NEAR(far(at("adam", "0.01"), at("lion", "0.01")), 1, 1e-12);
  EXPECT_NEAR(far(at("adam", "0.001"), at("adam", "0.1")), 1, 1e-12);
}

TEST(SearchSpace, what_is_suggested_for_a_key_can_be_searched) {
  const Recipe recipe;
  for (const AttrDef& d : recipe.used_keys()) {
    if (attr_text(recipe.at(d.name)).empty()) continue;  // a path: nothing to suggest
    EXPECT_NO_THROW(SearchSpace({{d.name, suggested_range(d, recipe)}}, recipe))
        << d.name << " = " << suggested_range(d, recipe);
  }
}

TEST(SweepPlan, is_the_same_after_the_file) {
  const SweepPlan plan({{"optimizer.lr", "log:1e-4..1e-1"}}, {{"metric", "test_accuracy"}, {"runs", int64_t{7}}},
                       Recipe());
  EXPECT_EQ(plan.direction, 1) << "high ones of an accuracy";
  EXPECT_EQ(SweepPlan::from_json(plan.to_json(), Recipe()).to_json(), plan.to_json());
  EXPECT_EQ(SweepPlan({{"seed", "1,2,3"}}, {{"method", "grid"}}, Recipe()).runs, 3) << "the whole grid";
  EXPECT_EQ(plan.round_of(7), 7);
  const SweepPlan rounds({{"seed", "1,2,3"}}, {{"side_by_side", int64_t{3}}}, Recipe());
  EXPECT_EQ(rounds.round_of(3), 1);
  EXPECT_EQ(rounds.round_of(4), 4);
  EXPECT_NE(message_of([] {
              SweepPlan({{"seed", "1,2"}}, {{"metric", "accuracy"}}, Recipe());
            }).find("test_accuracy"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::projects
