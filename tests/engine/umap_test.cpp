// UMAP: the graph of nearest neighbours is kept in the plane; the same bits at any number of threads.
#include "engine/train/umap.h"

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

TEST(Umap, neighbours_stay_neighbours_where_no_plane_keeps_them) {
  const std::vector<float> rows = knot(500, 11);
  const PrincipalPlane plane = principal_plane(rows, 11);
  const Places at = umap(rows, 11, plane);
  EXPECT_GT(kept_neighbours(rows, 11, at, 10), kept_neighbours(rows, 11, plane.points, 10));
  Places::value_type mean{};
  for (const auto& p : at)
    for (size_t k = 0; k < 2; ++k) mean[k] += p[k];
  EXPECT_NEAR(mean[0], 0, 1e-6);
  EXPECT_NEAR(mean[1], 0, 1e-6);
}

TEST(Umap, groups_stand_apart) {
  constexpr int64_t kWidth = 20, kGroups = 6;
  const std::vector<float> rows = grouped(kGroups, 60, kWidth);
  const Places at = umap(rows, kWidth, principal_plane(rows, kWidth));
  double within = 0, between = 1e9;
  for (size_t i = 0; i < at.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (i % kGroups == j % kGroups)
        within = std::max(within, apart(at[i], at[j]));
      else
        between = std::min(between, apart(at[i], at[j]));
  EXPECT_GT(between, 0);
  int alone = 0;  // rows whose nearest one is of another group
  for (size_t i = 0; i < at.size(); ++i) {
    size_t nearest = i == 0;
    for (size_t j = 0; j < at.size(); ++j)
      if (j != i && apart(at[i], at[j]) < apart(at[i], at[nearest])) nearest = j;
    alone += nearest % kGroups != i % kGroups;
  }
  EXPECT_EQ(alone, 0) << "the widest group is " << within << ", the nearest two are " << between << " apart";
}

TEST(Umap, the_bits_do_not_depend_on_the_threads) {
  placed::expect_bits_without_threads(
      [](const auto& rows, int64_t width, const auto& plane) { return umap(rows, width, plane, {.epochs = 60}); });
}

TEST(Umap, few_equal_and_broken_rows) {
  placed::expect_few_equal_and_broken_rows(
      [](const auto& rows, int64_t width, const auto& plane) { return umap(rows, width, plane); });
}

TEST(Umap, is_cancelled_between_two_epochs) {
  placed::expect_cancelled_between_two(UmapOptions().epochs,
                                       [](const auto& rows, int64_t width, const auto& plane, const auto& progress) {
                                         return umap(rows, width, plane, {}, progress);
                                       });
}

}  // namespace
}  // namespace tenon
