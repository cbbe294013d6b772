#include "projects/search/importance.h"

#include <gtest/gtest.h>

#include "core/number.h"
#include "engine/train/recipe.h"

namespace tenon::projects {
namespace {

const SweepPlan& mixed_plan() {
  static const SweepPlan p({{"optimizer.beta1", "lin:0..0.9"}, {"optimizer.type", "adam,sgd"}, {"seed", "int:0..99"}},
                           {{"method", "random"}, {"runs", int64_t{200}}}, Recipe());
  return p;
}
std::vector<Result> trials(int64_t count, double (*f)(double x, bool sgd)) {
  std::vector<Result> out;
  for (int64_t n = 1; n <= count; ++n) {
    const Settings s = *next_settings(mixed_plan(), n, {});
    out.push_back({n, s, f(*number_of(s[0].second), s[1].second == "sgd")});
  }
  return out;
}

TEST(Importance, is_that_of_a_function_whose_shares_are_known) {
  // Var(4 x) over [0, 0.9] is 16 * 0.81 / 12 = 1.08; of 2 for one word in two it is 1. The seed does nothing.
  const Importance i = importance(mixed_plan(), trials(200, [](double x, bool sgd) { return 4 * x + (sgd ? 2 : 0); }));
  ASSERT_EQ(i.shares.size(), 3u) << i.too_few;
  EXPECT_NEAR(i.shares[0].share, 1.08 / 2.08, 0.06);
  EXPECT_NEAR(i.shares[1].share, 1 / 2.08, 0.06);
  EXPECT_LT(i.shares[2].share, 0.02);
  EXPECT_LT(i.together, 0.04);
}

TEST(Importance, what_only_two_keys_together_do_belongs_to_neither) {
  const Importance i =
      importance(mixed_plan(), trials(200, [](double x, bool sgd) { return (x > 0.45) == sgd ? 1.0 : -1.0; }));
  ASSERT_EQ(i.shares.size(), 3u);
  EXPECT_LT(i.shares[0].share, 0.1);
  EXPECT_LT(i.shares[1].share, 0.1);
  EXPECT_GT(i.together, 0.8);
}

TEST(Importance, says_too_few_rather_than_guess) {
  const Importance i = importance(mixed_plan(), trials(11, [](double x, bool) { return x; }));
  EXPECT_TRUE(i.shares.empty());
  EXPECT_EQ(i.too_few, "too few trials to tell: 11 finished, 12 are needed for 3 keys");
  EXPECT_NE(importance(mixed_plan(), trials(40, [](double, bool) { return 1.0; })).too_few.find("same value"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::projects
