// The emulated tensor cores (tests/simt/simt_warp_matrix.h) that kernels of halves are tried on.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/simt/simt_warp_matrix.h"

namespace {

constexpr unsigned kLine = 24;

struct alignas(32) HalfMatrix {
  uint16_t v[16 * kLine + 16];
};
struct alignas(32) FloatMatrix {
  float v[16 * kLine + 16];
};

using LeftFactor = simt::WarpFactor<false, false, false>;
template <bool Turned>
using RightFactor = simt::WarpFactor<false, true, Turned>;

void in_a_warp(const std::function<void()>& body) { simt::launch({}, {32}, body); }

template <bool Bfloat, bool Turned>
void expect_product() {
  HalfMatrix a{}, b{};
  FloatMatrix c{}, there{};
  const auto made = [](int i) { return Bfloat ? tenon::float_to_bfloat(float(i)) : tenon::float_to_half(float(i)); };
  for (unsigned r = 0; r < 16; ++r)
    for (unsigned k = 0; k < 16; ++k) {
      a.v[r * kLine + k] = made(static_cast<int>(r * 5 + k * 3) % 17 - 8);
      b.v[r * kLine + k] = made(static_cast<int>(r * 7 + k * 2) % 13 - 6);
      c.v[r * kLine + k] = static_cast<float>(r * 16 + k);
    }
  in_a_warp([&] {
    simt::WarpFactor<Bfloat, false, false> left;
    simt::WarpFactor<Bfloat, true, Turned> right;
    simt::WarpSums sums;
    left.load(a.v, kLine);
    right.load(b.v, kLine);
    sums.load(c.v, kLine);
    simt::multiply(sums, left, right);
    sums.store(there.v, kLine);
  });
  for (int r = 0; r < 16; ++r)
    for (int n = 0; n < 16; ++n) {
      int sum = r * 16 + n;
      for (int k = 0; k < 16; ++k)
        sum += ((r * 5 + k * 3) % 17 - 8) * ((Turned ? n * 7 + k * 2 : k * 7 + n * 2) % 13 - 6);
      ASSERT_EQ(there.v[static_cast<unsigned>(r) * kLine + static_cast<unsigned>(n)], static_cast<float>(sum))
          << r << ", " << n;
    }
}

TEST(WarpMatrix, ProductsAreThoseOfALoop) {
  expect_product<false, false>();
  expect_product<false, true>();
  expect_product<true, false>();
  expect_product<true, true>();
}

TEST(WarpMatrix, WhatIsNotFilledIsNoNumber) {
  FloatMatrix there{};
  HalfMatrix zeros{};
  in_a_warp([&] {
    LeftFactor left;
    RightFactor<false> right;
    simt::WarpSums sums;
    sums.fill(0);
    right.load(zeros.v, kLine);
    simt::multiply(sums, left, right);
    sums.store(there.v, kLine);
  });
  EXPECT_TRUE(std::isnan(there.v[0]) && std::isnan(there.v[15 * kLine + 15]));
}

TEST(WarpMatrix, EveryLaneComesWithTheSame) {
  FloatMatrix there{}, elsewhere{};
  const auto last = [] { return simt::lane() == 31; };
  const std::function<void()> wrong[] = {
      [&] {  // one lane stays away
        if (!last()) simt::WarpSums().store(there.v, kLine);
      },
      [&] {  // or comes from elsewhere
        const simt::WarpSums sums;
        if (last())
          sums.store(there.v, kLine);
        else
          sums.store(there.v, kLine);
      },
      [&] {  // or is at another exchange
        if (last())
          simt::exchange(0, 0, "elsewhere");
        else
          simt::WarpSums().store(there.v, kLine);
      },
      [&] { simt::WarpSums().store(last() ? elsewhere.v : there.v, kLine); },
      [&] { simt::WarpSums().store(there.v, last() ? 16 : kLine); },
  };
  for (const auto& body : wrong) EXPECT_THROW(in_a_warp(body), simt::Fault);
  EXPECT_NO_THROW(in_a_warp([&] { simt::WarpSums().store(there.v, kLine); }));
}

/// Who reads what others stored waits for them; a lane that goes first would see what was there before.
TEST(WarpMatrix, AStoreIsNotABarrier) {
  const auto first_sees = [](bool waits) {
    FloatMatrix there{};
    float seen = -1;
    in_a_warp([&] {
      simt::WarpSums sums;
      sums.fill(1);
      sums.store(there.v, 16);
      if (waits) __syncwarp();
      if (simt::lane() != 0) return;
      seen = 0;
      for (int i = 0; i < 256; ++i) seen += there.v[i];
    });
    return seen;
  };
  EXPECT_EQ(first_sees(true), 256);
  EXPECT_EQ(first_sees(false), 8);
}

TEST(WarpMatrix, AlignmentIsChecked) {
  const HalfMatrix halves{};
  FloatMatrix floats{};
  const auto load = [&](unsigned offset, unsigned line) {
    in_a_warp([&] {
      LeftFactor left;
      left.load(halves.v + offset, line);
    });
  };
  const auto store = [&](unsigned offset, unsigned line) {
    in_a_warp([&] {
      simt::WarpSums sums;
      sums.store(floats.v + offset, line);
    });
  };
  EXPECT_NO_THROW(load(16, 24));
  EXPECT_THROW(load(8, 24), simt::Fault);
  EXPECT_THROW(load(0, 20), simt::Fault);
  EXPECT_NO_THROW(store(8, 20));
  EXPECT_THROW(store(4, 20), simt::Fault);
  EXPECT_THROW(store(0, 18), simt::Fault);
  // Shared memory is aligned as its type is, and no better.
  EXPECT_THROW(in_a_warp([] {
                 static const char place = 0;
                 LeftFactor left;
                 left.load(simt::shared<uint16_t>(&place, 256), 16);
               }),
               simt::Fault);
  EXPECT_NO_THROW(in_a_warp([] {
    static const char place = 0;
    LeftFactor left;
    left.load(simt::shared<HalfMatrix>(&place, 1)->v, 16);
  }));
}

}  // namespace
