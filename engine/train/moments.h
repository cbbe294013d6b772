#pragma once
#include <cstdint>
#include <limits>

#include "core/tensor.h"

namespace tenon {

/// What the numbers of a tensor come to, added up in one pass.
struct Moments {
  static constexpr double kSaturated = 0.99;

  int64_t count = 0, nans = 0, infinite = 0, zeros = 0;
  int64_t saturated = 0;                                 ///< of a magnitude of kSaturated or more
  double sum = 0, squares = 0;                           ///< of the finite ones
  double low = std::numeric_limits<double>::infinity();  ///< infinite ones included
  double high = -std::numeric_limits<double>::infinity();

  int64_t finite() const { return count - nans - infinite; }
  bool any() const { return count > 0; }
  void add(const Moments& o);
  /// As if every number had been divided by it; zeros and saturated ones stay as they were counted.
  void divide(double by);
};

/// Of a tensor of any dtype, layout and device; undefined: nothing. Runs no op that anyone sees. The bits do not hang
/// on the number of threads.
Moments moments_of(const Tensor& t);
/// Of `after` less `before`, number by number; both of one size and dtype.
Moments moments_of_difference(const Tensor& after, const Tensor& before);

}  // namespace tenon
