#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::views {

/// A scalar over steps that only grows, with a pyramid of summaries: any stretch is summed up in O(log n), and neither
/// a spike nor a NaN of it can get lost.
class Series {
 public:
  struct Summary {
    double min = 0, max = 0, first = 0, last = 0;  ///< of the finite values; meaningless where finite == 0
    int64_t finite = 0, bad = 0;                   ///< values that are numbers, and NaN or infinite ones
    int64_t first_step = 0, last_step = 0;         ///< of all values
  };

  /// Steps must not go down; a resumed run drops its later points first, see truncate().
  void append(int64_t step, double value);
  /// Drops the points after `step`.
  void truncate(int64_t step);
  void clear();

  size_t size() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }
  int64_t step(size_t i) const { return steps_[i]; }
  double value(size_t i) const { return values_[i]; }
  /// Index of the first point at or after `step`.
  size_t lower(int64_t step) const;
  /// Index of the point nearest to `step`; the series must not be empty.
  size_t nearest(int64_t step) const;
  /// Points [a, b).
  Summary summary(size_t a, size_t b) const;
  /// `columns` summaries over steps [from, to): column k covers its equal share.
  std::vector<Summary> columns(double from, double to, int columns) const;
  /// Exponential smoothing of the finite values, weight in [0, 1) as TensorBoard's (0: the raw line), bias-corrected.
  std::vector<double> smoothed(double weight) const;

 private:
  static void add(Summary& to, const Summary& s);
  static Summary one(int64_t step, double value);
  static constexpr size_t kFan = 8;
  std::vector<int64_t> steps_;
  std::vector<double> values_;
  std::vector<std::vector<Summary>> levels_;  // levels_[k][i] sums up points [i * kFan^(k+1), ...)
};

}  // namespace tenon::views
