#include "projects/search/halving.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/train/recipe.h"

namespace tenon::projects {
namespace {

SweepPlan halving_plan(const char* metric = "test_loss", int64_t factor = 2) {
  return SweepPlan({{"seed", "1,2"}}, {{"metric", metric}, {"prune", int64_t{10}}, {"prune_factor", factor}}, Recipe());
}
/// A run that is judged every 5 steps and improves from `from` by `by` each time.
std::vector<Report> run(double from, double by, int64_t steps = 40) {
  std::vector<Report> out;
  for (int64_t s = 5; s <= steps; s += 5) out.push_back({s, from - by * static_cast<double>(s) / 5});
  return out;
}
/// The step at which it ends; 0: it went through.
int64_t ends(Halving h, const std::vector<Report>& reports) {
  for (const Report& r : reports)
    if (!h.take(r).empty()) return r.step;
  return 0;
}

TEST(Halving, the_first_trial_and_the_best_ones_go_through) {
  EXPECT_EQ(ends(Halving(halving_plan(), {}), run(9, 0)), 0);
  EXPECT_EQ(ends(Halving(halving_plan(), {run(2, 0)}), run(1, 0)), 0);
  EXPECT_EQ(ends(Halving(halving_plan(), {run(2, 0)}), run(2, 0)), 0) << "as good";
}

TEST(Halving, those_behind_end_at_the_rung_where_they_are) {
  const std::vector<std::vector<Report>> others = {run(1, 0), run(2, 0), run(3, 0)};
  EXPECT_EQ(ends(Halving(halving_plan(), others), run(2, 0)), 0) << "one in two of four: the two best";
  EXPECT_EQ(ends(Halving(halving_plan(), others), run(2.5, 0)), 10);
  EXPECT_EQ(ends(Halving(halving_plan("test_loss", 4), others), run(1.5, 0)), 10) << "one in four of four";
  // Well ahead at first, behind later: the second rung lies at 20 steps.
  EXPECT_EQ(ends(Halving(halving_plan(), {run(4, 0.8), run(4, 0.7), run(4, 0.6)}), run(2.5, 0)), 20);
  EXPECT_EQ(ends(Halving(halving_plan("test_accuracy"), others), run(2.5, 0)), 0) << "high values are better there";
  EXPECT_EQ(ends(Halving(halving_plan("test_accuracy"), others), run(1.5, 0)), 10);
}

TEST(Halving, only_those_that_came_to_a_rung_count_there) {
  const std::vector<std::vector<Report>> others = {run(1, 0, 5), run(3, 0)};
  EXPECT_EQ(ends(Halving(halving_plan(), others), run(2, 0)), 0) << "the better one ended before 10 steps";
}

TEST(Halving, a_rung_between_two_judgements_is_told_at_the_next) {
  const SweepPlan p({{"seed", "1,2"}}, {{"prune", int64_t{7}}}, Recipe());
  EXPECT_EQ(ends(Halving(p, {run(1, 0)}), run(2, 0)), 10);
}

TEST(Halving, what_is_not_finite_is_behind) {
  const double nan = std::nan("");
  EXPECT_EQ(ends(Halving(halving_plan(), {run(1, 0)}), {{5, nan}, {10, nan}}), 10);
  EXPECT_EQ(ends(Halving(halving_plan(), {run(1, 0)}), {{5, 0.5}, {10, nan}}), 0) << "the best so far counts";
  EXPECT_EQ(ends(Halving(halving_plan(), {{{5, nan}, {10, nan}}}), run(9, 0)), 0) << "nor is anyone measured by it";
}

TEST(Halving, says_why_and_nothing_where_nothing_is_pruned) {
  Halving h(halving_plan(), {run(1, 0), run(2, 0)});
  EXPECT_EQ(h.take({10, 5}),
            "pruned at step 10: its best test_loss so far is 5; of the trials that came this far (2 before it) those "
            "with 1 or less go on");
  EXPECT_EQ(h.take({20, 0}), h.verdict()) << "it stays so";
  const SweepPlan never({{"seed", "1,2"}}, {}, Recipe());
  EXPECT_EQ(ends(Halving(never, {run(1, 0)}), run(9, 0)), 0);
}

}  // namespace
}  // namespace tenon::projects
