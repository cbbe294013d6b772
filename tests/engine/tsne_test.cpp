// t-SNE: what is alike stands together, better than in the principal plane; the same bits at any number of threads.
#include "engine/train/tsne.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/placed_rows.h"

namespace tenon {
namespace {

using placed::apart;
using placed::grouped;
using placed::kept_neighbours;
using placed::knot;
using placed::Places;

TEST(Tsne, neighbours_stay_neighbours_where_no_plane_keeps_them) {
  const std::vector<float> rows = knot(500, 11);
  const PrincipalPlane plane = principal_plane(rows, 11);
  const Places at = tsne(rows, 11, plane);
  const double before = kept_neighbours(rows, 11, plane.points, 10), after = kept_neighbours(rows, 11, at, 10);
  EXPECT_LT(before, 0.88) << "the plane crosses itself";
  EXPECT_GT(after, 0.93);
  double mean = 0;
  for (const auto& p : at) mean += p[0];
  EXPECT_NEAR(mean, 0, 1e-6);
}

TEST(Tsne, groups_stand_apart) {
  constexpr int64_t kWidth = 20, kGroups = 6;
  const std::vector<float> rows = grouped(kGroups, 60, kWidth);
  const Places at = tsne(rows, kWidth, principal_plane(rows, kWidth));
  for (size_t i = 0; i < at.size(); ++i) {
    size_t nearest = i == 0;
    for (size_t j = 0; j < at.size(); ++j)
      if (j != i && apart(at[i], at[j]) < apart(at[i], at[nearest])) nearest = j;
    EXPECT_EQ(nearest % kGroups, i % kGroups) << i;
  }
}

TEST(Tsne, the_bits_do_not_depend_on_the_threads) {
  placed::expect_bits_without_threads([](const auto& rows, int64_t width, const auto& plane) {
    return tsne(rows, width, plane, {.perplexity = 12, .iterations = 60});
  });
}

TEST(Tsne, few_equal_and_broken_rows) {
  placed::expect_few_equal_and_broken_rows(
      [](const auto& rows, int64_t width, const auto& plane) { return tsne(rows, width, plane); });
}

TEST(Tsne, is_cancelled_between_two_iterations) {
  placed::expect_cancelled_between_two(TsneOptions().iterations,
                                       [](const auto& rows, int64_t width, const auto& plane, const auto& progress) {
                                         return tsne(rows, width, plane, {}, progress);
                                       });
}

}  // namespace
}  // namespace tenon
