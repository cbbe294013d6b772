// What curves stand over.
#include "views/training/curve_axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon::views {
namespace {

constexpr projects::EpochLength kTen{10, 95, 10};  // 9 batches of 10 samples and one of 5

Series counted(int n) {
  Series s;
  for (int i = 1; i <= n; ++i) s.append(i, i, 0.5 * i);
  return s;
}

TEST(CurveScale, of_every_kind) {
  const Series s = counted(30);
  EXPECT_EQ((CurveScale{Over::step, kTen}.of(s, 14)), 15);
  EXPECT_EQ((CurveScale{Over::epoch, kTen}.of(s, 14)), 1.5);
  EXPECT_EQ((CurveScale{Over::time, kTen}.of(s, 14)), 7.5);
  EXPECT_EQ((CurveScale{Over::samples, kTen}.of(s, 14)), 95 + 50);
  EXPECT_EQ((CurveScale{Over::samples, kTen}.of(s, 19)), 190);
  EXPECT_TRUE((CurveScale{Over::time, {}}.knows(30)));
  EXPECT_FALSE((CurveScale{Over::epoch, {}}.knows(30)));
  EXPECT_TRUE((CurveScale{Over::samples, {10, 0, 10}}.knows(9)));
  EXPECT_FALSE((CurveScale{Over::samples, {10, 0, 10}}.knows(10)));
}

TEST(CurveScale, names_are_read_as_they_are_written) {
  for (Over o : kOvers) EXPECT_EQ(parse_over(over_name(o)), o);
  EXPECT_EQ(parse_over("steps"), std::nullopt);
}

TEST(CurveTicks, have_the_unit_that_suits) {
  Axis a;
  a.set_full(0, 90);
  EXPECT_EQ(curve_ticks(Over::time, a, 6).caption, "Time, s");
  a.set_full(0, 1800);
  const CurveTicks minutes = curve_ticks(Over::time, a, 6);
  EXPECT_EQ(minutes.caption, "Time, min");
  EXPECT_EQ(minutes.unit, 60);
  EXPECT_EQ(minutes.label(minutes.ticks.at(1)), "5");
  a.set_full(0, 36'000);
  EXPECT_EQ(curve_ticks(Over::time, a, 6).caption, "Time, h");
  a.set_full(0, 1);
  const CurveTicks halves = curve_ticks(Over::epoch, a, 4);
  EXPECT_EQ(halves.caption, "Epoch");
  EXPECT_EQ(halves.label(0.5), "0.5");
  EXPECT_EQ(curve_ticks(Over::step, a, 4).ticks.step, 1) << "there is no half of a step";
  EXPECT_EQ(place_text(Over::epoch, 2.5, 25), "epoch 2.5 (step 25)");
  EXPECT_EQ(place_text(Over::samples, 12'000, 25), "12,000 samples (step 25)");
  EXPECT_EQ(place_text(Over::step, 25, 25), "step 25");
}

/// Columns over any axis are what a pass over all points says, one by one.
TEST(Series, ColumnsOverAnyAxisLoseNothing) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    Series s;
    const int n = 1 + static_cast<int>(random() % 4000);
    double seconds = 0;
    for (int i = 1; i <= n; ++i) {
      seconds += random() % 40 == 0 ? 100.0 : 0.001 * static_cast<double>(random() % 100);  // a pause in the data
      s.append(i, random() % 60 == 0 ? std::nan("") : static_cast<double>(random() % 1000), seconds);
    }
    for (Over over : kOvers) {
      const CurveScale at{over, kTen};
      const double lo = at.of(s, random() % n), hi = at.of(s, n - 1) + 1;
      const int count = 1 + static_cast<int>(random() % 300);
      const auto columns = s.columns(lo, hi, count, at.at(s));
      ASSERT_EQ(columns.size(), static_cast<size_t>(count));
      std::vector<int64_t> bad(columns.size()), finite(columns.size());
      std::vector<double> top(columns.size(), -1e300);
      size_t c = 0;
      for (int i = 0; i < n; ++i) {
        if (at.of(s, i) < lo) continue;
        while (static_cast<size_t>(i) >= columns[c].end) ++c;
        const double from = lo + (hi - lo) / count * static_cast<double>(c), to = from + (hi - lo) / count;
        ASSERT_GE(at.of(s, i), from - 1e-6 * hi);
        ASSERT_LE(at.of(s, i), to + 1e-6 * hi);
        std::isfinite(s.value(i)) ? ++finite[c] : ++bad[c];
        if (std::isfinite(s.value(i))) top[c] = std::max(top[c], s.value(i));
      }
      for (size_t k = 0; k < columns.size(); ++k) {
        ASSERT_EQ(columns[k].bad, bad[k]);
        ASSERT_EQ(columns[k].finite, finite[k]);
        if (finite[k]) {
          ASSERT_EQ(columns[k].max, top[k]);
        }
      }
    }
  }
}

TEST(Series, SecondsNeverGoBack) {
  Series s;
  s.append(1, 1, 5);
  s.append(2, 1, 3);
  s.append(3, 1, std::nan(""));
  s.append(4, 1, 6);
  EXPECT_EQ(s.seconds(1), 5);
  EXPECT_EQ(s.seconds(2), 5);
  EXPECT_EQ(s.seconds(3), 6);
}

TEST(Series, LeastIsTheSmallestAboveZero) {
  Series s;
  for (int i = 1; i <= 500; ++i) s.append(i, i % 2 ? -i : i == 300 ? 0.25 : i % 50 ? i : 0);
  EXPECT_EQ(s.summary(0, 500).least, 0.25);
  EXPECT_EQ(s.summary(0, 1).least, 0) << "none is";
}

TEST(SmoothedSeries, IsTheSameHoweverItGrewAndHasTheGapsOfTheRawLine) {
  Series raw;
  SmoothedSeries grown;
  double sum = 0, norm = 0;
  for (int i = 1; i <= 700; ++i) {
    const double v = i % 100 == 0 ? std::nan("") : std::sin(i);
    raw.append(i, v);
    if (std::isfinite(v)) sum = 0.9 * sum + 0.1 * v, norm = 0.9 * norm + 0.1;
    if (i % 37 != 0) continue;
    const Series& line = grown.of(raw, 0.9);
    ASSERT_EQ(line.size(), raw.size());
    if (std::isfinite(v)) {
      ASSERT_NEAR(line.value(line.size() - 1), sum / norm, 1e-12);
    }
  }
  const Series& line = grown.of(raw, 0.9);
  EXPECT_EQ(line.summary(0, line.size()).bad, 7);
  EXPECT_EQ(grown.of(raw, 0).value(42), raw.value(42)) << "no weight of the past: the raw line";
}

}  // namespace
}  // namespace tenon::views
