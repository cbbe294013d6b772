#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tenon::snapshot {

/// A column of whole numbers that lie near each other, as times, sizes and addresses of one device do: a Near a row
/// instead of eight bytes, counted in units from the first row of its run. What lies too far, or between two units,
/// stands beside, in full. Grows at its end only.
template <class Value, class Near = int32_t, int64_t unit = 1>
class NarrowColumn {
 public:
  void push_back(Value value) {
    const size_t row = near_.size();
    if (row % kRun == 0) bases_.push_back(value);
    const int64_t off = distance(value, bases_.back()), units = off / unit;
    const bool fits = off % unit == 0 && units > kFar && units <= std::numeric_limits<Near>::max();
    near_.push_back(fits ? static_cast<Near>(units) : kFar);
    if (!fits) far_.emplace_back(row, value);
  }
  Value operator[](size_t row) const {
    if (near_[row] == kFar) return far(row);
    const auto off = static_cast<uint64_t>(static_cast<int64_t>(near_[row]) * unit);
    return static_cast<Value>(static_cast<uint64_t>(bases_[row / kRun]) + off);
  }
  Value back() const { return (*this)[near_.size() - 1]; }
  size_t size() const { return near_.size(); }
  bool empty() const { return near_.empty(); }
  void reserve(size_t rows) {
    near_.reserve(rows);
    bases_.reserve(rows / kRun + 1);
  }

 private:
  static constexpr size_t kRun = 4096;
  static constexpr Near kFar = std::numeric_limits<Near>::min();
  /// Two's complement: what wraps here wraps back when it is read.
  static int64_t distance(Value to, Value from) {
    return static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
  }
  Value far(size_t row) const {
    return std::lower_bound(far_.begin(), far_.end(), row, [](const auto& f, size_t at) { return f.first < at; })
        ->second;
  }
  std::vector<Near> near_;
  std::vector<Value> bases_;                   ///< of every run
  std::vector<std::pair<size_t, Value>> far_;  ///< by row
};

}  // namespace tenon::snapshot
