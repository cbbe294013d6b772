// t-SNE: what is alike stands together, better than in the principal plane; the same bits at any number of threads.
#include "engine/train/tsne.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "core/error.h"
#include "core/parallel.h"

namespace tenon {
namespace {

using Places = std::vector<std::array<double, 2>>;

double apart(const std::array<double, 2>& a, const std::array<double, 2>& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1]);
}

/// Of the `k` nearest rows of each, how many are among its `k` nearest places.
double kept_neighbours(const std::vector<float>& rows, int64_t width, const Places& at, size_t k) {
  const size_t n = at.size();
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    std::vector<std::pair<double, size_t>> by_row, by_place;
    for (size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      double d = 0;
      for (int64_t c = 0; c < width; ++c) {
        const double x = rows[i * width + c] - rows[j * width + c];
        d += x * x;
      }
      by_row.emplace_back(d, j);
      by_place.emplace_back(apart(at[i], at[j]), j);
    }
    std::sort(by_row.begin(), by_row.end());
    std::sort(by_place.begin(), by_place.end());
    for (size_t a = 0; a < k; ++a)
      for (size_t b = 0; b < k; ++b) kept += by_row[a].second == by_place[b].second;
  }
  return static_cast<double>(kept) / static_cast<double>(n * k);
}

/// A closed knot in space, which no plane shows without crossings, turned into `width` dimensions.
std::vector<float> knot(int64_t count, int64_t width) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> turn(3 * width);
  for (double& v : turn) v = normal(random) / std::sqrt(static_cast<double>(width));
  std::vector<float> rows;
  for (int64_t i = 0; i < count; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count);
    const double p[3] = {std::sin(t) + 2 * std::sin(2 * t), std::cos(t) - 2 * std::cos(2 * t), -2 * std::sin(3 * t)};
    for (int64_t c = 0; c < width; ++c) {
      double v = 0.003 * normal(random);
      for (int k = 0; k < 3; ++k) v += p[k] * turn[k * width + c];
      rows.push_back(static_cast<float>(v));
    }
  }
  return rows;
}

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
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  constexpr int64_t kWidth = 20, kGroups = 6, kEach = 60;
  std::vector<float> rows;
  for (int64_t i = 0; i < kGroups * kEach; ++i)
    for (int64_t c = 0; c < kWidth; ++c) rows.push_back(normal(random) + (c == i % kGroups ? 8.f : 0.f));
  const Places at = tsne(rows, kWidth, principal_plane(rows, kWidth));
  for (size_t i = 0; i < at.size(); ++i) {
    size_t nearest = i == 0;
    for (size_t j = 0; j < at.size(); ++j)
      if (j != i && apart(at[i], at[j]) < apart(at[i], at[nearest])) nearest = j;
    EXPECT_EQ(nearest % kGroups, i % kGroups) << i;
  }
}

TEST(Tsne, the_bits_do_not_depend_on_the_threads) {
  const std::vector<float> rows = knot(203, 7);
  const PrincipalPlane plane = principal_plane(rows, 7);
  const TsneOptions few{.perplexity = 12, .iterations = 60};
  set_num_threads(1);
  const Places one = tsne(rows, 7, plane, few);
  set_num_threads(4);
  const Places four = tsne(rows, 7, plane, few);
  set_num_threads(0);
  EXPECT_EQ(one, four);
}

TEST(Tsne, few_equal_and_broken_rows) {
  for (int64_t n : {0, 1, 3, 4, 5}) {
    std::vector<float> rows;
    for (int64_t i = 0; i < n; ++i) rows.insert(rows.end(), {static_cast<float>(i), static_cast<float>(i * i)});
    const Places at = tsne(rows, 2, principal_plane(rows, 2));
    ASSERT_EQ(at.size(), static_cast<size_t>(n));
    for (const auto& p : at) EXPECT_TRUE(std::isfinite(p[0]) && std::isfinite(p[1])) << n;
  }
  const std::vector<float> equal(80, 3.f);
  for (const auto& p : tsne(equal, 4, principal_plane(equal, 4))) EXPECT_TRUE(std::isfinite(p[0] + p[1]));
  std::vector<float> broken = knot(40, 3);
  broken[3 * 17 + 1] = NAN;
  const Places at = tsne(broken, 3, principal_plane(broken, 3));
  for (size_t i = 0; i < at.size(); ++i) EXPECT_EQ(std::isnan(at[i][0]), i == 17);
}

TEST(Tsne, is_cancelled_between_two_iterations) {
  const std::vector<float> rows = knot(50, 3);
  int64_t seen = 0;
  EXPECT_THROW(tsne(rows, 3, principal_plane(rows, 3), {},
                    [&](int64_t done, int64_t total) {
                      EXPECT_EQ(total, TsneOptions().iterations);
                      seen = done;
                      return done < 5;
                    }),
               Error);
  EXPECT_EQ(seen, 5);
}

}  // namespace
}  // namespace tenon
