#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::views {

/// A scalar over steps that only grows, with a pyramid of summaries: any stretch is summed up in O(log n), and neither
/// a spike nor a NaN of it can get lost. Points also know when they were made.
class Series {
 public:
  struct Summary {
    double min = 0, max = 0, first = 0, last = 0;  ///< of the finite values; meaningless where finite == 0
    double least = 0;                              ///< the smallest above zero; 0: none is
    int64_t finite = 0, bad = 0;                   ///< values that are numbers, and NaN or infinite ones
    int64_t first_step = 0, last_step = 0;         ///< of all values
  };

  /// Points [begin, end) that share a stretch of an axis.
  struct Column : Summary {
    size_t begin = 0, end = 0;
  };

  /// Steps must not go down; a resumed run drops its later points first, see truncate(). Seconds that go down count as
  /// those of the point before.
  void append(int64_t step, double value, double seconds = 0);
  /// Drops the points after `step`.
  void truncate(int64_t step);
  void clear();

  size_t size() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }
  int64_t step(size_t i) const { return steps_[i]; }
  double value(size_t i) const { return values_[i]; }
  double seconds(size_t i) const { return seconds_[i]; }
  /// Index of the first point at or after `step`.
  size_t lower(int64_t step) const;
  /// Index of the point nearest to `step`; the series must not be empty.
  size_t nearest(int64_t step) const;
  /// Points [a, b).
  Summary summary(size_t a, size_t b) const;
  /// Index of the first point from `from` on that lies at or after x, where at(i) says where point i lies: never before
  /// the one before it. Quick where that is near.
  template <class At>
  size_t lower_by(double x, const At& at, size_t from = 0) const {
    size_t step = 1, low = from, high = from;
    while (high < size() && at(high) < x) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    high = std::min(high, size());
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (at(middle) < x)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  /// Index of the point that lies nearest to x; the series must not be empty.
  template <class At>
  size_t nearest_by(double x, const At& at) const {
    const size_t i = lower_by(x, at);
    if (i == size()) return i - 1;
    return i > 0 && x - at(i - 1) < at(i) - x ? i - 1 : i;
  }
  /// `count` columns over [from, to): each sums up its equal share of it.
  template <class At>
  std::vector<Column> columns(double from, double to, int count, const At& at) const {
    std::vector<Column> out(static_cast<size_t>(std::max(count, 0)));
    const double width = (to - from) / std::max(count, 1);
    size_t a = lower_by(from, at), wide = 0;
    for (int c = 0; c < count; ++c) {
      const double end = c + 1 == count ? to : from + width * (c + 1);
      // Points mostly stand at equal distances: a column ends about where it would if it had as many as the last one.
      size_t b = a + wide;
      for (int back = 0; back < 3 && b > a && b < size() && !(at(b - 1) < end); ++back) --b;
      if (b > size() || (b > a && !(at(b - 1) < end))) b = a;
      b = lower_by(end, at, b);
      wide = b - a;
      out[c] = {summary(a, b), a, b};
      a = b;
    }
    return out;
  }
  /// The same over steps.
  std::vector<Column> columns(double from, double to, int count) const {
    return columns(from, to, count, [this](size_t i) { return static_cast<double>(steps_[i]); });
  }

 private:
  static void add(Summary& to, const Summary& s);
  static Summary one(int64_t step, double value);
  void add_points(Summary& to, size_t a, size_t b) const;
  static constexpr size_t kFan = 8;
  std::vector<int64_t> steps_;
  std::vector<double> values_, seconds_;
  std::vector<std::vector<Summary>> levels_;  // levels_[k][i] sums up points [i * kFan^(k+1), ...)
};

/// A series as a smoother line: the exponential mean of its finite values, weight in [0, 1) as TensorBoard's (0: the
/// raw line), bias-corrected. Where a value is not finite the line has a gap, as the raw one has.
class SmoothedSeries {
 public:
  /// The line of `raw`, always the same series: what was appended to it since the last call is added. One that was
  /// truncated wants a new line.
  const Series& of(const Series& raw, double weight);

 private:
  Series line_;
  double weight_ = -1, sum_ = 0, norm_ = 0;
};

}  // namespace tenon::views
