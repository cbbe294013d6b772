#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tracing/snapshot/column.h"

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
    if (fits) return;
    far_rows_.push_back(row);
    far_.push_back(value);
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
  /// Whether none of rows [begin, end) has a value below that of the row before it.
  bool ascending(size_t begin, size_t end) const {
    for (size_t from = begin; from < end;) {
      const size_t to = std::min(end, (from / kRun + 1) * kRun);
      if (from > begin && (*this)[from] < (*this)[from - 1]) return false;
      bool up = true, any_far = near_[from] == kFar;
      for (size_t i = from + 1; i < to; ++i) {
        up &= near_[i] >= near_[i - 1];
        any_far |= near_[i] == kFar;
      }
      for (size_t i = from + 1; i < to && any_far; ++i)
        if ((*this)[i] < (*this)[i - 1]) return false;
      if (!up && !any_far) return false;
      from = to;
    }
    return true;
  }
  /// Whether every row has a value: what is mapped is to be asked before any other call.
  bool sound() const {
    if (bases_.size() != (near_.size() + kRun - 1) / kRun || far_.size() != far_rows_.size()) return false;
    for (size_t i = 0; i < far_rows_.size(); ++i) {
      const uint64_t row = far_rows_[i];
      if (row >= near_.size() || near_[row] != kFar || (i && row <= far_rows_[i - 1])) return false;
    }
    return static_cast<size_t>(std::count(near_.begin(), near_.end(), kFar)) == far_rows_.size();
  }
  template <class Self, class F>
  static void each_part(Self& self, const F& f) {
    f(self.near_);
    f(self.bases_);
    f(self.far_rows_);
    f(self.far_);
  }

 private:
  static constexpr size_t kRun = 4096;
  static constexpr Near kFar = std::numeric_limits<Near>::min();
  /// Two's complement: what wraps here wraps back when it is read. So the largest number, which stands for none, is one
  /// below 0.
  static int64_t distance(Value to, Value from) {
    using Bits = std::make_unsigned_t<Value>;
    return static_cast<std::make_signed_t<Value>>(static_cast<Bits>(static_cast<Bits>(to) - static_cast<Bits>(from)));
  }
  Value far(size_t row) const {
    return far_[static_cast<size_t>(std::lower_bound(far_rows_.begin(), far_rows_.end(), row) - far_rows_.begin())];
  }
  Column<Near> near_;
  Column<Value> bases_;        ///< of every run
  Column<uint64_t> far_rows_;  ///< ascending
  Column<Value> far_;
};

}  // namespace tenon::snapshot
