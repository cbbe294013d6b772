#include "projects/search/next_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/number.h"
#include "engine/train/recipe.h"
#include "projects/search/gaussian_process.h"

namespace tenon::projects {
namespace {

SweepPlan search_plan(const Settings& keys, const std::string& method, int64_t runs, int64_t seed = 1,
                      int64_t together = 1) {
  return SweepPlan(keys, {{"method", method}, {"runs", runs}, {"seed", seed}, {"side_by_side", together}}, Recipe());
}
const Settings kTwo = {{"optimizer.lr", "log:1e-4..1e-1"}, {"optimizer.beta1", "lin:0..0.9"}};

double number(const Settings& s, size_t i) { return number_of(s.at(i).second).value(); }
/// A valley whose floor lies at lr = 0.01, beta1 = 0.6.
double valley(const Settings& s) {
  return std::pow(std::log10(number(s, 0)) + 2, 2) + 4 * std::pow(number(s, 1) - 0.6, 2);
}

std::vector<Result> play(const SweepPlan& p, const std::function<double(const Settings&)>& f) {
  std::vector<Result> out;
  for (int64_t n = 1; const auto s = next_settings(p, n, out); ++n) out.push_back({n, *s, f(*s)});
  return out;
}
double best(const std::vector<Result>& results) {
  double least = std::numeric_limits<double>::infinity();
  for (const Result& r : results) least = std::min(least, *r.value);
  return least;
}

TEST(GaussianProcess, goes_through_what_it_was_told_and_doubts_what_it_was_not) {
  const GaussianProcess::Points x = {{0.1}, {0.3}, {0.5}, {0.7}, {0.9}};
  std::vector<double> y;
  for (const auto& p : x) y.push_back(std::sin(6 * p[0]));
  const GaussianProcess model(x, y);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(model.at(x[i]).mean, y[i], 0.02);
  EXPECT_NEAR(model.at({0.4}).mean, std::sin(2.4), 0.1);
  EXPECT_GT(model.at({0.4}).deviation, 2 * model.at({0.5}).deviation);
}

TEST(GaussianProcess, equal_and_single_values_are_no_trouble) {
  EXPECT_NEAR(GaussianProcess({{0.5}}, {3}).at({0.1}).mean, 3, 1e-9);
  EXPECT_NEAR(GaussianProcess({{0.5}, {0.5}, {0.5}}, {3, 3, 3}).at({0.5}).mean, 3, 1e-9);
}

TEST(GaussianProcess, expected_improvement_is_that_of_the_paper) {
  EXPECT_NEAR(expected_improvement({0, 1}, 0), 0.398942280401, 1e-9);
  EXPECT_NEAR(expected_improvement({0, 1}, 1), 1.083315470588, 1e-9);
  EXPECT_NEAR(expected_improvement({2, 0}, 3), 1, 1e-12);
  EXPECT_EQ(expected_improvement({2, 0}, 1), 0);
}

TEST(NextSettings, a_grid_is_gone_through_once) {
  const SweepPlan p = search_plan({{"seed", "5,6,7"}, {"optimizer.type", "adam,sgd"}}, "grid", 0);
  const auto all = play(p, [](const Settings&) { return 1.0; });
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].settings, (Settings{{"seed", "5"}, {"optimizer.type", "adam"}}));
  EXPECT_EQ(all[5].settings, (Settings{{"seed", "7"}, {"optimizer.type", "sgd"}}));
}

TEST(NextSettings, random_trials_depend_on_seed_and_number_alone) {
  const SweepPlan p = search_plan(kTwo, "random", 30);
  const auto a = play(p, valley), b = play(p, [](const Settings&) { return 0.0; });
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].settings, b[i].settings);
  EXPECT_EQ(*next_settings(p, 17, {}), a[16].settings);
  EXPECT_NE(play(search_plan(kTwo, "random", 30, 2), valley)[0].settings, a[0].settings);
}

TEST(NextSettings, the_model_finds_the_floor_of_a_valley_sooner_than_chance) {
  int sooner = 0;
  double worst = 0;
  for (int64_t seed = 1; seed <= 8; ++seed) {
    const double model = best(play(search_plan(kTwo, "bayes", 20, seed), valley));
    sooner += model < best(play(search_plan(kTwo, "random", 20, seed), valley));
    worst = std::max(worst, model);
  }
  EXPECT_GE(sooner, 7) << "of 8 seeds";
  EXPECT_LT(worst, 0.05) << "of a valley that is up to 4 deep";
}

TEST(NextSettings, the_model_chooses_among_words_and_high_values) {
  const SweepPlan p({{"optimizer.type", "adam,sgd,lion"}, {"optimizer.lr", "log:1e-4..1e-1"}},
                    {{"metric", "test_accuracy"}, {"runs", int64_t{20}}}, Recipe());
  const auto f = [](const Settings& s) {
    return (s[0].second == "lion" ? 1.0 : 0.5) - std::pow(std::log10(number(s, 1)) + 3, 2) / 4;
  };
  const auto all = play(p, f);
  const auto lions =
      std::count_if(all.begin() + 10, all.end(), [](const Result& r) { return r.settings[0].second == "lion"; });
  EXPECT_GE(lions, 6) << "of the last 10";
  EXPECT_GT(f(std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.value < b.value; })
                  ->settings),
            0.98);
}

TEST(NextSettings, trials_of_a_round_do_not_know_of_each_other) {
  const SweepPlan p = search_plan(kTwo, "bayes", 40, 3, 4);
  auto all = play(p, valley);
  all.resize(18);  // a round of 17 to 20 is at work: two of it were chosen
  const auto third = next_settings(p, 19, all);
  for (Result* r : {&all[16], &all[17]}) r->value.reset();
  EXPECT_EQ(next_settings(p, 19, all), third) << "whether the others have ended";
  EXPECT_NE(third, all[16].settings);
  EXPECT_NE(third, all[17].settings);
}

TEST(NextSettings, failed_trials_drive_the_model_away) {
  const SweepPlan p = search_plan({{"optimizer.lr", "log:1e-4..1"}}, "bayes", 24);
  std::vector<Result> all;
  for (int64_t n = 1; const auto s = next_settings(p, n, all); ++n) {
    const double lr = number(*s, 0);
    all.push_back({n, *s, lr > 0.02 ? std::nullopt : std::optional(std::pow(std::log10(lr) + 2.5, 2))});
  }
  const auto failed = std::count_if(all.begin() + 12, all.end(), [](const Result& r) { return !r.value; });
  EXPECT_LE(failed, 4) << "of the last 12";
}

TEST(NextSettings, of_many_results_the_model_takes_those_that_tell) {
  const SweepPlan p = search_plan(kTwo, "bayes", 1000);
  auto all = play(search_plan(kTwo, "random", 600), valley);
  const auto next = next_settings(p, 601, all);
  ASSERT_TRUE(next);
  EXPECT_LT(valley(*next), 0.05) << "where the best of 600 lie";
  EXPECT_EQ(next_settings(p, 601, all), next);
}

TEST(NextSettings, a_search_ends_where_all_was_tried) {
  const auto all =
      play(search_plan({{"optimizer.type", "adam,sgd,lion"}, {"data.batch_size", "16,32,64"}}, "bayes", 500),
           [](const Settings& s) { return number(s, 1); });
  std::vector<Settings> seen;
  for (const Result& r : all) seen.push_back(r.settings);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()) - seen.begin(), 9);
  EXPECT_LE(all.size(), 13u) << "9 and those that chance drew twice at the beginning";
}

}  // namespace
}  // namespace tenon::projects
