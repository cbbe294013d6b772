#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"

namespace tenon::kernels {

inline std::vector<float> uniform_values(int64_t n, uint64_t stream) {
  Philox random{42, stream};
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = 2 * random.uniform(i) - 1;
  return v;
}
template <class T>
std::vector<double> wide(const std::vector<T>& v) {
  return {v.begin(), v.end()};
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance * (1 + std::abs(want[i]))) << what << " element " << i;
}

/// Runs `make` at 1, 2 and 3 threads and expects the same bytes.
template <class Make>
void expect_thread_invariant(const Make& make) {
  set_num_threads(1);
  auto one = make();
  for (int threads : {2, 3}) {
    set_num_threads(threads);
    auto more = make();
    ASSERT_EQ(one.size(), more.size());
    EXPECT_EQ(0, std::memcmp(one.data(), more.data(), one.size() * sizeof(one[0]))) << threads << " threads";
  }
  set_num_threads(0);
}

}  // namespace tenon::kernels
