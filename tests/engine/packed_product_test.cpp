// Products by a matrix that stays: of any number of rows and columns, those that our own tiles take and those that
// oneDNN takes, cut into pieces, with what follows told of each element once.
#include "engine/kernels/packed_product.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "core/vectors.h"

namespace tenon::kernels {
namespace {

std::vector<float> side_values(int64_t count, int64_t step) {
  std::vector<float> v(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) v[static_cast<size_t>(i)] = static_cast<float>(i * step % 199 - 99) / 64;
  return v;
}

struct Sides {
  int64_t rows, k, n;
  bool turned;
  std::vector<float> x, w, bias;
  Sides(int64_t r, int64_t depth, int64_t c, bool t)
      : rows(r),
        k(depth),
        n(c),
        turned(t),
        x(side_values(r * depth, 37)),
        w(side_values(depth * c, 53)),
        bias(side_values(c, 71)) {}
  double exact(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p)
      sum += static_cast<double>(x[static_cast<size_t>(i * k + p)]) *
             static_cast<double>(w[static_cast<size_t>(turned ? j * k + p : p * n + j)]);
    return sum;
  }
};

/// Our own tiles take some sizes where vectors are wide; oneDNN takes all others.
class PackedProductIn : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !has_wide_vectors()) GTEST_SKIP() << "this processor has no vectors of 512 bits";
    allow_wide_vectors(GetParam());
  }
  void TearDown() override { allow_wide_vectors(true); }
};
INSTANTIATE_TEST_SUITE_P(Vectors, PackedProductIn, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "wide" : "plain"; });

TEST_P(PackedProductIn, rows_and_columns_of_any_number) {
  for (const int64_t n : {5, 191, 192, 200, 515})
    for (const int64_t k : {1, 40, 513})
      for (const int64_t rows : {1, 2, 13, 49, 130, 2049}) {
        if (rows * k * n > 60'000'000) continue;
        const Sides s(rows, k, n, (n + k + rows) % 2 == 0);
        const bool biased = (n + rows) % 3 != 0;
        const PackedProduct product(k, n, s.turned, s.w.data(), biased ? s.bias.data() : nullptr);
        std::vector<float> y(static_cast<size_t>(rows * n), NAN);
        std::vector<std::atomic<int>> told(y.size());
        product.run(rows, s.x.data(), y.data(), [&](float* piece, int64_t at, int64_t count) {
          ASSERT_EQ(piece, y.data() + at);
          for (int64_t i = 0; i < count; ++i) {
            ++told[static_cast<size_t>(at + i)];
            piece[i] = -piece[i];
          }
        });
        for (const auto& times : told) ASSERT_EQ(times, 1) << rows << " x " << k << " x " << n;
        for (int64_t i = 0; i<rows; i += rows> 100 ? 31 : 1)
          for (int64_t j = 0; j < n; ++j) {
            const double want = s.exact(i, j) + (biased ? static_cast<double>(s.bias[static_cast<size_t>(j)]) : 0);
            ASSERT_NEAR(-y[static_cast<size_t>(i * n + j)], want, 1e-5 * (std::abs(want) + static_cast<double>(k)))
                << rows << " x " << k << " x " << n << ", element " << i << ", " << j;
          }
      }
}

TEST_P(PackedProductIn, bits_do_not_depend_on_threads_or_on_who_asks_beside) {
  for (const int64_t n : {150, 640}) {
    const Sides s(150, 700, n, true);
    const PackedProduct product(s.k, n, true, s.w.data(), s.bias.data());
    std::vector<float> alone(static_cast<size_t>(s.rows * n));
    set_num_threads(1);
    product.run(s.rows, s.x.data(), alone.data());
    set_num_threads(3);
    const auto same = [&] {
      std::vector<float> y(alone.size());
      product.run(s.rows, s.x.data(), y.data());
      return std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)) == 0;
    };
    EXPECT_TRUE(same());
    std::atomic<int> right{0};
    std::vector<std::thread> askers;
    for (int t = 0; t < 4; ++t)
      askers.emplace_back([&] {
        for (int i = 0; i < 5; ++i) right += same();
      });
    for (std::thread& t : askers) t.join();
    EXPECT_EQ(right, 20);
    set_num_threads(0);
  }
}

}  // namespace
}  // namespace tenon::kernels
