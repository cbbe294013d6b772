#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/train/principal_plane.h"

// Rows to be placed in a plane, and how well they were.
namespace tenon::placed {

using Places = std::vector<std::array<double, 2>>;

inline double apart(const std::array<double, 2>& a, const std::array<double, 2>& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1]);
}

/// Of the `k` nearest rows of each, how many are among its `k` nearest places.
inline double kept_neighbours(const std::vector<float>& rows, int64_t width, const Places& at, size_t k) {
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
inline std::vector<float> knot(int64_t count, int64_t width) {
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

/// Groups around corners of a simplex: row i belongs to group i % groups.
inline std::vector<float> grouped(int64_t groups, int64_t each, int64_t width) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> rows;
  for (int64_t i = 0; i < groups * each; ++i)
    for (int64_t c = 0; c < width; ++c) rows.push_back(normal(random) + (c == i % groups ? 8.f : 0.f));
  return rows;
}

/// What holds for every way to place rows; `place(rows, width, plane)` is the way.
template <class Place>
void expect_bits_without_threads(Place place) {
  const std::vector<float> rows = knot(203, 7);
  const PrincipalPlane plane = principal_plane(rows, 7);
  set_num_threads(1);
  const Places one = place(rows, 7, plane);
  set_num_threads(4);
  const Places four = place(rows, 7, plane);
  set_num_threads(0);
  EXPECT_EQ(one, four);
}

template <class Place>
void expect_few_equal_and_broken_rows(Place place) {
  for (int64_t n : {0, 1, 3, 4, 5, 20}) {
    std::vector<float> rows;
    for (int64_t i = 0; i < n; ++i) rows.insert(rows.end(), {static_cast<float>(i), static_cast<float>(i * i)});
    const Places at = place(rows, 2, principal_plane(rows, 2));
    ASSERT_EQ(at.size(), static_cast<size_t>(n));
    for (const auto& p : at) EXPECT_TRUE(std::isfinite(p[0]) && std::isfinite(p[1])) << n;
  }
  const std::vector<float> equal(80, 3.f);
  for (const auto& p : place(equal, 4, principal_plane(equal, 4))) EXPECT_TRUE(std::isfinite(p[0] + p[1]));
  std::vector<float> broken = knot(40, 3);
  broken[3 * 17 + 1] = NAN;
  const Places at = place(broken, 3, principal_plane(broken, 3));
  for (size_t i = 0; i < at.size(); ++i) EXPECT_EQ(std::isnan(at[i][0]), i == 17);
}

/// `place(rows, width, plane, progress)` takes `rounds` rounds where it is not stopped.
template <class Place>
void expect_cancelled_between_two(int64_t rounds, Place place) {
  const std::vector<float> rows = knot(50, 3);
  int64_t seen = 0;
  EXPECT_THROW(place(rows, 3, principal_plane(rows, 3),
                     [&](int64_t done, int64_t total) {
                       EXPECT_EQ(total, rounds);
                       seen = done;
                       return done < 5;
                     }),
               Error);
  EXPECT_EQ(seen, 5);
}

}  // namespace tenon::placed
