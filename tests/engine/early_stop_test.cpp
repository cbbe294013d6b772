#include "engine/train/early_stop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/train/metric.h"
#include "engine/train/recipe.h"
#include "tests/engine/files.h"

namespace tenon {
namespace {

using testing_files::error_of;

Recipe stop_recipe(const std::vector<std::pair<std::string, std::string>>& set) {
  Recipe r;
  for (const auto& [key, value] : set) r.set(key, value);
  return r;
}
/// After how many of these values the run ends; 0: it does not.
size_t ends_after(const Recipe& r, const std::vector<double>& values) {
  std::vector<Judged> seen;
  for (double v : values) {
    seen.push_back({static_cast<int64_t>(seen.size() + 1) * 10, v});
    if (!reason_to_stop(r, seen).empty()) return seen.size();
  }
  return 0;
}

TEST(EarlyStop, ends_where_the_metric_did_not_become_better_for_long_enough) {
  const Recipe loss = stop_recipe({{"stop.metric", "test_loss"}, {"stop.patience", "2"}});
  EXPECT_EQ(ends_after(loss, {1, 0.9, 0.95, 0.91, 0.1}), 4u);
  EXPECT_EQ(ends_after(loss, {1, 0.9, 0.95, 0.8, 0.85}), 0u);
  EXPECT_EQ(ends_after(loss, {1, 1, 1}), 3u) << "the same is not better";
  const Recipe accuracy = stop_recipe({{"stop.metric", "test_accuracy"}, {"stop.patience", "2"}});
  EXPECT_EQ(ends_after(accuracy, {0.1, 0.2, 0.19, 0.2}), 4u);
  EXPECT_EQ(ends_after(accuracy, {0.1, 0.2, 0.3, 0.4}), 0u);
  EXPECT_EQ(ends_after(stop_recipe({{"stop.metric", "test_accuracy"}, {"stop.patience", "1"}, {"stop.mode", "min"}}),
                       {0.3, 0.2, 0.1, 0.2}),
            4u);
  const Recipe delta = stop_recipe({{"stop.metric", "test_loss"}, {"stop.patience", "2"}, {"stop.min_delta", "0.1"}});
  EXPECT_EQ(ends_after(delta, {1, 0.95, 0.91}), 3u) << "little steps do not add up to a better value";
  EXPECT_EQ(ends_after(delta, {1, 0.95, 0.85, 0.8, 0.7}), 0u);
  const double nan = std::nan("");
  EXPECT_EQ(ends_after(loss, {nan, nan}), 2u);
  EXPECT_EQ(ends_after(loss, {1, nan, 0.9, nan, 0.95}), 5u);
  EXPECT_EQ(ends_after(Recipe(), {1, 2, 3, 4, 5, 6}), 0u) << "stop.metric is none";
}

TEST(EarlyStop, says_why) {
  const Recipe r = stop_recipe({{"stop.metric", "test_loss"}, {"stop.patience", "2"}});
  EXPECT_EQ(reason_to_stop(r, {{10, 1}, {20, 0.5}, {30, 0.7}, {40, 0.6}}),
            "test_loss was best at step 20 (0.5) and did not become better in the 2 evaluations since "
            "(stop.patience = 2)");
}

TEST(EarlyStop, a_metric_that_is_never_recorded_is_refused) {
  const TaskView classes{"classification", 3, 1}, values{"regression", 0, 1};
  check_early_stop(stop_recipe({{"stop.metric", "test_accuracy"}}), classes);
  check_early_stop(stop_recipe({{"stop.metric", "test_loss"}}), values);
  check_early_stop(stop_recipe({{"eval_every", "0"}}), classes);
  EXPECT_SAYS(error_of([&] {
                check_early_stop(stop_recipe({{"stop.metric", "test_accuracy"}}), values);
              }),
              "no evaluation of a regression task records it");
  EXPECT_SAYS(error_of([&] {
                check_early_stop(stop_recipe({{"stop.metric", "test_loss"}, {"eval_every", "0"}}), values);
              }),
              "eval_every is 0");
  EXPECT_SAYS(error_of([] { stop_recipe({{"stop.metric", "test_luck"}}); }), "test_accuracy");
}

}  // namespace
}  // namespace tenon
