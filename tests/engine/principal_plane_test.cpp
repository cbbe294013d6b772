// Principal components: rows that lie in a plane, NumPy's figures, and what is no number.
#include "engine/train/principal_plane.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/engine/placed_rows.h"

namespace tenon {
namespace {

using placed::apart;

TEST(PrincipalPlane, rows_of_a_plane_keep_their_distances) {
  // Two directions at right angles, in thirty dimensions, far from the origin.
  constexpr int64_t kWidth = 30, kRows = 200;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> u(kWidth), v(kWidth);
  for (double& x : u) x = normal(random);
  for (double& x : v) x = normal(random);
  double uu = 0, uv = 0, vv = 0;
  for (int j = 0; j < kWidth; ++j) uu += u[j] * u[j], uv += u[j] * v[j];
  for (int j = 0; j < kWidth; ++j) v[j] -= uv / uu * u[j], vv += v[j] * v[j];
  std::vector<std::array<double, 2>> at(kRows);
  std::vector<float> rows;
  for (auto& p : at) {
    p = {5 * normal(random), normal(random)};
    for (int j = 0; j < kWidth; ++j)
      rows.push_back(static_cast<float>(100 + p[0] * u[j] / std::sqrt(uu) + p[1] * v[j] / std::sqrt(vv)));
  }
  const PrincipalPlane plane = principal_plane(rows, kWidth);
  ASSERT_EQ(plane.points.size(), at.size());
  EXPECT_NEAR(plane.share[0] + plane.share[1], 1, 1e-6);
  EXPECT_GT(plane.share[0], 0.9);
  for (int i = 1; i < kRows; ++i) EXPECT_NEAR(apart(plane.points[i], plane.points[0]), apart(at[i], at[0]), 2e-3) << i;
  double mean = 0;
  for (const auto& p : plane.points) mean += p[0];
  EXPECT_NEAR(mean, 0, 1e-6);
}

TEST(PrincipalPlane, the_figures_of_numpy) {
  // numpy: x = np.array([[2,0,1],[0,1,3],[4,1,0],[1,5,2]], float); c = x - x.mean(0); u, s, vt = np.linalg.svd(c)
  const PrincipalPlane plane = principal_plane({2, 0, 1, 0, 1, 3, 4, 1, 0, 1, 5, 2}, 3);
  const double at[4][2] = {{-1.647504263493886, -0.7753614192135129},
                           {0.9489586683495601, -2.2252128411279615},
                           {-2.3408721203733482, 1.540023873384476},
                           {3.0394177155176743, 1.4605503869569985}};
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 2; ++k) EXPECT_NEAR(plane.points[i][k], at[i][k], 1e-9) << i << " " << k;
  EXPECT_NEAR(plane.share[0], 0.643246848624919, 1e-12);
  EXPECT_NEAR(plane.share[1], 0.35289959586526054, 1e-12);
}

TEST(PrincipalPlane, what_is_no_number_has_no_place_and_moves_no_other) {
  const std::vector<float> all = {2, 0, 1, 0, 1, 3, 4, 1, 0, 1, 5, 2};
  std::vector<float> with = all;
  for (float v : {1.f, NAN, 2.f}) with.push_back(v);
  for (float v : {1.f, 2.f, INFINITY}) with.push_back(v);
  const PrincipalPlane a = principal_plane(all, 3), b = principal_plane(with, 3);
  ASSERT_EQ(b.points.size(), 6u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.points[i], b.points[i]);
  EXPECT_TRUE(std::isnan(b.points[4][0]) && std::isnan(b.points[5][1]));
  EXPECT_EQ(a.share, b.share);
}

TEST(PrincipalPlane, rows_without_differences_lie_on_one_point) {
  const PrincipalPlane same = principal_plane({3, 4, 3, 4, 3, 4}, 2);
  for (const auto& p : same.points) EXPECT_EQ(p, (std::array<double, 2>{0, 0}));
  EXPECT_EQ(same.share[0], 0);
  const PrincipalPlane line = principal_plane({1, 2, 3, 4}, 1);
  EXPECT_NEAR(line.share[0], 1, 1e-12);
  EXPECT_EQ(line.share[1], 0);
  EXPECT_NEAR(line.points[3][0], 1.5, 1e-12);
  EXPECT_EQ(line.points[3][1], 0);
  EXPECT_TRUE(principal_plane({}, 4).points.empty());
}

}  // namespace
}  // namespace tenon
