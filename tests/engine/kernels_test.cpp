#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "core/parallel.h"
#include "core/vectors.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/loss.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/pool.h"
#include "engine/kernels/rnn.h"
#include "engine/kernels/small_product.h"
#include "engine/kernels/tiled_gemm.h"
#include "engine/kernels/tiles.h"
#include "engine/kernels/update.h"
#include "engine/op/scalar.h"
#include "tests/engine/kernel_values.h"

namespace tenon::kernels {
namespace {

struct Product {
  int64_t m, n, k;
};
class Gemm : public testing::TestWithParam<Product> {};

TEST_P(Gemm, FollowsPlainLoopsInEveryForm) {
  auto [m, n, k] = GetParam();
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (float beta : {0.0f, 1.0f}) {
        int64_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 1, ldc = n + 2;
        auto a = uniform_values((ta ? k : m) * lda, 1), b = uniform_values((tb ? n : k) * ldb, 2),
             c = uniform_values(m * ldc, 3);
        auto want = wide(c);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = beta == 0 ? 0 : want[static_cast<size_t>(i * ldc + j)];
            for (int64_t p = 0; p < k; ++p)
              sum += double(a[static_cast<size_t>(ta ? p * lda + i : i * lda + p)]) *
                     double(b[static_cast<size_t>(tb ? j * ldb + p : p * ldb + j)]);
            want[static_cast<size_t>(i * ldc + j)] = sum;
          }
        auto c64 = wide(c);
        auto a64 = wide(a), b64 = wide(b);
        gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc, beta);
        expect_near(c, want, 2e-5, "f32");
        gemm(ta, tb, m, n, k, a64.data(), lda, b64.data(), ldb, c64.data(), ldc, double(beta));
        expect_near(c64, want, 1e-12, "f64");
      }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Gemm,
                         testing::Values(Product{1, 1, 1}, Product{16, 16, 2}, Product{5, 7, 3}, Product{16, 16, 16},
                                         Product{9, 24, 20}, Product{4, 13, 17}, Product{32, 31, 32},
                                         Product{1, 300, 100}, Product{300, 1, 100}, Product{2, 3, 4000},
                                         Product{3, 2, 0}, Product{64, 10, 128}, Product{130, 97, 61},
                                         Product{33, 1100, 40}, Product{1, 19, 21}, Product{1, 16, 40},
                                         // of few rows or columns, and pieces of every kind
                                         Product{1, 1500, 1100}, Product{3, 300, 301}, Product{5, 260, 300},
                                         Product{10, 140, 300}, Product{400, 1, 401}, Product{1, 1, 40000},
                                         Product{400, 2, 90}, Product{48, 40, 60}, Product{130, 140, 1100}));

TEST(GemmVectors, AMatrixByOneIsReadAlongItsRows) {
  const auto a = uniform_values(300 * 301, 1), b = uniform_values(301, 2), before = uniform_values(301, 3);
  for (const auto& [ta, m, k] : {std::tuple<bool, int64_t, int64_t>{false, 300, 301}, {true, 301, 300}})
    for (const float beta : {0.0f, 1.0f}) {
      std::vector<float> column(before.begin(), before.begin() + m), row = column;
      gemm(ta, false, m, 1, k, a.data(), 301, b.data(), 1, column.data(), 1, beta);
      gemm(false, !ta, 1, m, k, b.data(), k, a.data(), 301, row.data(), m, beta);
      EXPECT_EQ(column, row);
    }
}

TEST(GemmRows, EachOfAFewHasTheBitsItHasAlone) {
  constexpr int64_t n = 203, k = 517;
  const auto a = uniform_values(7 * k, 1), b = uniform_values(n * k, 2), before = uniform_values(7 * n, 3);
  for (const bool add : {false, true})
    for (int64_t m = 1; m <= 7; ++m) {
      auto together = before, alone = before;
      product_of_dots(m, n, k, a.data(), k, b.data(), k, together.data(), n,
                      add ? Start<float>{together.data(), n} : Start<float>{});
      for (int64_t i = 0; i < m; ++i)
        product_of_dots(1, n, k, a.data() + i * k, k, b.data(), k, alone.data() + i * n, n,
                        add ? Start<float>{alone.data() + i * n, n} : Start<float>{});
      EXPECT_EQ(together, alone) << m;
    }
}

TEST(GemmRows, OneRowHasTheBitsItHasAmongMany) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{16, 2}, {16, 16}, {1, 16}, {21, 35}, {8, 8}, {60, 64}}) {
    constexpr int64_t kTogether = 5;
    const auto a = uniform_values(kTogether * k, 1), w = uniform_values(n * k, 2), bias = uniform_values(n, 3);
    for (const float* row : {static_cast<const float*>(nullptr), bias.data()}) {
      std::vector<float> together(static_cast<size_t>(kTogether * n)), alone(static_cast<size_t>(n));
      gemm_by_weights(kTogether, n, k, a.data(), k, w.data(), k, row, together.data(), n, {});
      for (int64_t i = 0; i < kTogether; ++i) {
        gemm_by_weights(1, n, k, a.data() + i * k, k, w.data(), k, row, alone.data(), n, {});
        EXPECT_EQ(0, std::memcmp(alone.data(), together.data() + i * n, alone.size() * sizeof(float)))
            << "row " << i << ", " << n << " by " << k << (row ? " with a bias" : "");
      }
    }
  }
}

/// What tiled products promise: blocks of k are chains of fused multiply-adds, which are added in order.
template <class T>
std::vector<T> tiled_reference(bool ta, bool tb, Product p, const T* a, int64_t lda, const T* b, int64_t ldb,
                               std::vector<T> c, int64_t ldc, bool add) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t p0 = 0; p0 < p.k; p0 += product_block(p.k)) {
        T sum = 0;
        for (int64_t q = p0; q < std::min(p.k, p0 + product_block(p.k)); ++q)
          sum = std::fma(ta ? a[q * lda + i] : a[i * lda + q], tb ? b[j * ldb + q] : b[q * ldb + j], sum);
        T& to = c[static_cast<size_t>(i * ldc + j)];
        to = add || p0 > 0 ? sum + to : sum;
      }
  return c;
}
template <class T>
void expect_tiled_bits(Product p) {
  const auto [m, n, k] = p;
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (bool add : {false, true}) {
        const int64_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 1, ldc = n + 2;
        const auto drawn_a = uniform_values((ta ? k : m) * lda, 1), drawn_b = uniform_values((tb ? n : k) * ldb, 2),
                   drawn_c = uniform_values(m * ldc, 3);
        const std::vector<T> a(drawn_a.begin(), drawn_a.end()), b(drawn_b.begin(), drawn_b.end());
        const std::vector<T> before(drawn_c.begin(), drawn_c.end());
        const auto want = tiled_reference(ta, tb, p, a.data(), lda, b.data(), ldb, before, ldc, add);
        auto got = before;
        tiled_gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, got.data(), ldc, add);
        EXPECT_EQ(got, want) << m << " x " << n << " x " << k << (ta ? " T" : " N") << (tb ? "T" : "N");
        if (m == 1 && !tb) {
          got = before;
          row_product(n, k, a.data(), ta ? lda : 1, b.data(), ldb, got.data(), add);
          EXPECT_EQ(got, want) << "row of " << n << " by " << k << (ta ? " T" : " N");
        }
        for (const int threads : {1, 3}) {
          const int usual = num_threads();
          set_num_threads(threads);
          got = before;
          tiled_product(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, got.data(), ldc, add);
          set_num_threads(usual);
          EXPECT_EQ(got, want) << m << " x " << n << " x " << k << (ta ? " T" : " N") << (tb ? "T" : "N") << " on "
                               << threads << " threads";
        }
        if (ta) continue;
        std::vector<T> packed(static_cast<size_t>(tiled_side<T>(n, k)));
        tiled_pack(tb, n, k, b.data(), ldb, packed.data());
        got = before;
        for (int64_t j = 0; j < n; j += kMostWide)
          tiled_gemm_packed(m, n, k, a.data(), lda, packed.data(), {j, std::min(kMostWide, n - j)}, got.data() + j, ldc,
                            add);
        EXPECT_EQ(got, want) << m << " x " << n << " x " << k << ", packed beforehand";
      }
}
class TiledGemm : public testing::TestWithParam<bool> {
 protected:
  TiledGemm() { allow_wide_vectors(GetParam()); }
  ~TiledGemm() override { allow_wide_vectors(true); }
};
/// Where the processor has wide vectors, both kinds give these bits.
TEST_P(TiledGemm, EveryElementIsItsChainWhateverIsComputedBesideIt) {
  for (const Product p : {Product{1, 1, 1}, Product{1, 1300, 700}, Product{6, 16, 384}, Product{7, 17, 513},
                          Product{97, 33, 20}, Product{5, 70, 800}, Product{13, 530, 9}, Product{14, 1100, 590},
                          Product{60, 48, 30}, Product{230, 70, 60}, Product{200, 210, 70}, Product{20, 40, 1030}}) {
    expect_tiled_bits<float>(p);
    expect_tiled_bits<double>(p);
  }
}
INSTANTIATE_TEST_SUITE_P(Vectors, TiledGemm, testing::Bool(),
                         [](const auto& wide) { return wide.param ? "Wide" : "Narrow"; });

TEST(GemmThreads, SameBits) {
  for (auto [m, n, k] : {Product{512, 300, 200}, Product{64, 2000, 128}, Product{1500, 64, 64}, Product{1, 9000, 700},
                         Product{9000, 1, 700}, Product{3, 5000, 600}, Product{8, 4000, 300}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        auto a = uniform_values(m * k, 1), b = uniform_values(n * k, 2);
        expect_thread_invariant([&, m = m, n = n, k = k] {
          std::vector<float> c(static_cast<size_t>(m * n));
          gemm(ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, c.data(), n);
          return c;
        });
      }
}

TEST(Pool, FirstOfEqualsWinsAndNanWinsOverAll) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  PoolShape s{1, 1, 2, 6, 1, 3, 2, 2, 2, 2, 0, 0, 1, 1};
  std::vector<float> x = {1, 1, 2, nan, -inf, -inf,  //
                          1, 0, 3, 9,   -inf, -inf};
  std::vector<float> y(3);
  std::vector<uint8_t> index(3);
  max_pool2d_forward<float, uint8_t>(s, x.data(), y.data(), index.data());
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(index[0], 0);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(index[1], 1);
  EXPECT_EQ(y[2], -inf);
  EXPECT_EQ(index[2], 0);
}

TEST(Pool, FollowsTheDefinitionAndThreadsDoNotMatter) {
  for (PoolShape s :
       {PoolShape{3, 32, 8, 8, 4, 4, 2, 2, 2, 2, 0, 0, 1, 1}, PoolShape{2, 70, 9, 7, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1},
        PoolShape{2, 5, 9, 9, 5, 5, 3, 3, 1, 1, 0, 0, 2, 2}, PoolShape{1, 19, 12, 12, 4, 4, 9, 9, 1, 1, 0, 0, 1, 1}}) {
    auto x = uniform_values(s.n * s.ih * s.iw * s.c, 1), gy = uniform_values(s.n * s.oh * s.ow * s.c, 2);
    std::vector<double> want(gy.size(), -1e30), gx(x.size());
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t oy = 0; oy < s.oh; ++oy)
        for (int64_t ox = 0; ox < s.ow; ++ox)
          for (int64_t c = 0; c < s.c; ++c) {
            auto out = static_cast<size_t>(((n * s.oh + oy) * s.ow + ox) * s.c + c);
            size_t won = 0;
            for (int64_t ky = 0; ky < s.kh; ++ky)
              for (int64_t kx = 0; kx < s.kw; ++kx) {
                int64_t iy = oy * s.sh - s.ph + ky * s.dh, ix = ox * s.sw - s.pw + kx * s.dw;
                if (iy < 0 || iy >= s.ih || ix < 0 || ix >= s.iw) continue;
                auto in = static_cast<size_t>(((n * s.ih + iy) * s.iw + ix) * s.c + c);
                if (double(x[in]) > want[out]) want[out] = x[in], won = in;
              }
            gx[won] += gy[out];
          }
    std::vector<int32_t> wide_index(gy.size());
    std::vector<uint8_t> index(gy.size());
    std::vector<float> y(gy.size()), g(x.size()), back(gy.size());
    max_pool2d_forward<float, int32_t>(s, x.data(), y.data(), wide_index.data());
    max_pool2d_forward<float, uint8_t>(s, x.data(), y.data(), index.data());
    expect_near(y, want, 0, "forward");
    max_pool2d_backward<float, uint8_t>(s, gy.data(), index.data(), g.data());
    expect_near(g, gx, 1e-6, "backward");
    max_pool2d_gather<float, uint8_t>(s, x.data(), index.data(), back.data());
    expect_near(back, want, 0, "gather");
    EXPECT_EQ(std::vector<int32_t>(index.begin(), index.end()), wide_index);
    expect_thread_invariant([&] {
      std::vector<float> all(gy.size() + x.size());
      max_pool2d_forward<float, uint8_t>(s, x.data(), all.data(), index.data());
      max_pool2d_backward<float, uint8_t>(s, gy.data(), index.data(), all.data() + gy.size());
      return all;
    });
  }
}

TEST(BatchNorm, FollowsTheDefinitionFarFromZero) {
  const int64_t rows = 5000, c = 6;
  auto x = uniform_values(rows * c, 1), gamma = uniform_values(c, 2), beta = uniform_values(c, 3);
  for (float& v : x) v = 1000 + v;  // a one-pass variance loses all its digits here
  std::vector<float> mean(c), var(c), y(x.size()), invstd(c);
  std::vector<char> room(batch_norm_workspace<float>(rows, c));
  column_moments<float>(rows, c, x.data(), mean.data(), var.data(), room.data());
  batch_norm_apply<float>(rows, c, x.data(), mean.data(), var.data(), 1e-5f, gamma.data(), beta.data(), y.data(),
                          invstd.data(), room.data());
  for (int64_t j = 0; j < c; ++j) {
    double m = 0, v = 0;
    for (int64_t i = 0; i < rows; ++i) m += x[static_cast<size_t>(i * c + j)];
    m /= rows;
    for (int64_t i = 0; i < rows; ++i) v += std::pow(x[static_cast<size_t>(i * c + j)] - m, 2);
    v /= rows;
    auto k = static_cast<size_t>(j);
    EXPECT_NEAR(mean[k], m, 1e-4);
    EXPECT_NEAR(var[k], v, 1e-4);
    EXPECT_NEAR(y[k], (x[k] - m) / std::sqrt(v + 1e-5) * gamma[k] + beta[k], 1e-3);
  }
}

TEST(BatchNorm, ThreadsDoNotMatter) {
  const int64_t rows = 20000, c = 33;
  auto x = uniform_values(rows * c, 1), gy = uniform_values(rows * c, 2);
  expect_thread_invariant([&] {
    std::vector<float> mean(c), var(c), invstd(c), all(x.size() * 2 + 2 * c);
    std::vector<char> room(batch_norm_workspace<float>(rows, c));
    column_moments<float>(rows, c, x.data(), mean.data(), var.data(), room.data());
    batch_norm_apply<float>(rows, c, x.data(), mean.data(), var.data(), 1e-5f, nullptr, nullptr, all.data(),
                            invstd.data(), room.data());
    batch_norm_backward<float>(rows, c, true, x.data(), gy.data(), mean.data(), invstd.data(), nullptr,
                               all.data() + x.size(), all.data() + 2 * x.size(), all.data() + 2 * x.size() + c,
                               room.data());
    return all;
  });
}

TEST(Losses, FollowTheirDefinitions) {
  const int64_t rows = 300, c = 37;
  auto x = uniform_values(rows * c, 1);
  for (float& v : x) v *= 30;
  std::vector<int64_t> target(rows);
  for (int64_t i = 0; i < rows; ++i) target[static_cast<size_t>(i)] = i * 7 % c;
  std::vector<float> lse(rows), soft(x.size()), gx(x.size());
  double loss = cross_entropy_forward<float>(rows, c, x.data(), target.data(), lse.data());
  softmax_forward<float>(rows, c, false, x.data(), soft.data());
  cross_entropy_backward<float>(rows, c, x.data(), target.data(), lse.data(), 0.5f, gx.data());
  double want = 0;
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < c; ++j) sum += std::exp(double(x[static_cast<size_t>(i * c + j)]));
    for (int64_t j = 0; j < c; ++j) {
      auto at = static_cast<size_t>(i * c + j);
      double p = std::exp(double(x[at])) / sum;
      ASSERT_NEAR(soft[at], p, 1e-5);
      ASSERT_NEAR(gx[at], 0.5 * (p - (j == target[static_cast<size_t>(i)])), 1e-5);
    }
    want += std::log(sum) - x[static_cast<size_t>(i * c + target[static_cast<size_t>(i)])];
  }
  EXPECT_NEAR(loss, want / rows, 1e-5);
  auto y = uniform_values(100000, 5), z = uniform_values(100000, 6);
  std::vector<double> partial(static_cast<size_t>(mse_pieces(100000)));
  double mse = 0;
  for (size_t i = 0; i < y.size(); ++i) mse += std::pow(double(y[i]) - z[i], 2);
  EXPECT_NEAR(mse_forward<float>(100000, y.data(), z.data(), partial.data()), mse / 100000, 1e-7);
  expect_thread_invariant([&] {
    return std::vector<double>{mse_forward<float>(100000, y.data(), z.data(), partial.data()),
                               cross_entropy_forward<float>(rows, c, x.data(), target.data(), lse.data())};
  });
}

TEST(SumOfSquares, SeesEveryNonFiniteValueAndOverflowsNowhereElse) {
  auto x = uniform_values(100001, 1);
  std::vector<double> partial(static_cast<size_t>(pieces_of_squares(100001)));
  double want = 0;
  for (float v : x) want += double(v) * v;
  EXPECT_NEAR(sum_of_squares<float>(100001, x.data(), partial.data()), want, 1e-6 * want);
  x[77777] = 1e30f;  // its square is no float
  EXPECT_NEAR(sum_of_squares<float>(100001, x.data(), partial.data()) / 1e60, 1, 1e-6);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (size_t at : {size_t{0}, size_t{50000}, size_t{100000}}) {
      float saved = x[at];
      x[at] = bad;
      EXPECT_FALSE(std::isfinite(sum_of_squares<float>(100001, x.data(), partial.data())));
      x[at] = saved;
    }
  expect_thread_invariant([&] { return std::vector<double>{sum_of_squares<float>(100001, x.data(), partial.data())}; });
}

// Whatever vectors the processor has, units have the bits of their formula. The states' product adds 0 here, so that
// the formula is all there is; 53 units leave some that fill no vector.
TEST(Rnn, UnitsHaveTheBitsOfTheirFormulas) {
  constexpr int64_t steps = 3, n = 2, h = 53;
  for (Cell cell : {Cell::lstm, Cell::gru, Cell::tanh, Cell::relu})
    for (bool ends : {false, true}) {
      SCOPED_TRACE(testing::Message() << "cell " << static_cast<int>(cell) << (ends ? ", ends" : ""));
      const int64_t width = gates_of(cell) * h, lengths[n] = {steps, 1};
      const auto gx = uniform_values(steps * n * width, 1), h0 = uniform_values(n * h, 2),
                 c0 = uniform_values(n * h, 3);
      const std::vector<float> wh(static_cast<size_t>(width * h));
      const RnnShape s{cell, false, steps, n, h, ends ? lengths : nullptr};
      std::vector<float> y(static_cast<size_t>(steps * n * h), 9), c = y;
      std::vector<char> room(rnn_forward_workspace<float>(s));
      rnn_forward<float>(s, gx.data(), h0.data(), c0.data(), wh.data(), nullptr, y.data(), c.data(), nullptr,
                         room.data());
      auto hidden = h0, cells = c0;
      for (int64_t t = 0; t < steps; ++t)
        for (int64_t r = 0; r < n; ++r)
          for (int64_t j = 0; j < h; ++j) {
            const float* x = gx.data() + (t * n + r) * width + j;
            const auto at = static_cast<size_t>(r * h + j), out = static_cast<size_t>((t * n + r) * h + j);
            const bool live = !ends || t < lengths[r];
            if (live && cell == Cell::lstm) {
              cells[at] = sc::sigmoid(x[h]) * cells[at] + sc::sigmoid(x[0]) * sc::tanh(x[2 * h]);
              hidden[at] = sc::sigmoid(x[3 * h]) * sc::tanh(cells[at]);
            } else if (live && cell == Cell::gru) {
              const float z = sc::sigmoid(x[h]);
              hidden[at] = (1.0f - z) * sc::tanh(x[2 * h]) + z * hidden[at];
            } else if (live) {
              hidden[at] = cell == Cell::tanh ? sc::tanh(x[0]) : std::max(x[0], 0.0f);
            }
            ASSERT_EQ(y[out], live ? hidden[at] : 0.0f) << t << ", " << r << ", " << j;
            if (cell == Cell::lstm) {
              ASSERT_EQ(c[out], cells[at]) << t << ", " << r << ", " << j;
            }
          }
    }
}

TEST(Rnn, ThreadsDoNotMatter) {
  for (const Cell cell : {Cell::lstm, Cell::gru})
    for (const int64_t n : {int64_t{5}, int64_t{9}, int64_t{70}})
      for (const int64_t steps : {int64_t{2}, int64_t{4}}) {
        SCOPED_TRACE(testing::Message() << "cell " << static_cast<int>(cell) << ", " << n << " rows");
        constexpr int64_t h = 40;
        const int64_t width = gates_of(cell) * h, total = steps * n;
        const RnnShape s{cell, false, steps, n, h, nullptr};
        const auto gx = uniform_values(total * width, 1), start = uniform_values(n * h, 2),
                   wh = uniform_values(width * h, 3), gy = uniform_values(total * h, 4);
        expect_thread_invariant([&] {
          const auto floats = [](int64_t count) { return std::vector<float>(static_cast<size_t>(count)); };
          auto y = floats(total * h), c = floats(total * h), kept = floats(total * kept_of(cell) * h),
               ggx = floats(total * width), gh0 = floats(n * h), gc0 = floats(n * h), gwh = floats(width * h);
          std::vector<char> room(rnn_forward_workspace<float>(s)), back(rnn_backward_workspace<float>(s));
          rnn_forward<float>(s, gx.data(), start.data(), start.data(), wh.data(), nullptr, y.data(), c.data(),
                             kept.data(), room.data());
          rnn_backward<float>(s, start.data(), start.data(), wh.data(), y.data(), c.data(), kept.data(), gy.data(),
                              nullptr, ggx.data(), gh0.data(), gc0.data(), gwh.data(), nullptr, back.data());
          for (const auto* more : {&ggx, &gh0, &gc0, &gwh}) y.insert(y.end(), more->begin(), more->end());
          return y;
        });
      }
}

}  // namespace
}  // namespace tenon::kernels
