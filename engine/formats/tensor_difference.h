#pragma once
#include <cstdint>
#include <functional>

#include "core/tensor.h"

namespace tenon::formats {

/// How the values of a tensor B differ from those of a tensor A of the same shape, element by element.
struct TensorDifference {
  int64_t count = 0;
  /// Elements whose bits differ; of two types those whose values do. A 0 that became -0 differs, and changes by 0.
  int64_t changed = 0;
  int64_t not_finite = 0;  ///< elements that are NaN or infinite in A or in B: no sum below has them
  bool apart = false;      ///< one of these is something else in the other: NaN beside a number, another infinity
  bool same_bits = true;   ///< of one type, and every element the same
  double square_a = 0, square_b = 0, square = 0, dot = 0;  ///< of the norms of A, B and B - A; the inner product
  double largest_a = 0;                                    ///< |A|
  double largest = 0;                                      ///< |change|
  int64_t largest_at = -1;  ///< of the first such element, counted row by row; -1: nothing changed
  double a_there = 0, b_there = 0;
  int64_t first_not_finite = -1;  ///< the first of those that changed; -1: none

  double norm() const;  ///< of B - A
  double norm_a() const;
  double norm_b() const;
  double relative() const;  ///< norm() of norm_a(): 0 where both are 0, infinite where A is 0 alone
  /// The largest change, infinite where they are apart; and that over the largest number of A.
  double worst() const;
  double worst_relative() const;
  double cosine() const;  ///< of the angle between A and B; 1 where both are 0, NaN where one is
};

/// Reads both piece by piece, on all threads; the same bits at any number of them. `go_on` is told how many elements
/// were read; throws Error "cancelled" once it returned false. Both are on the host and of one size.
TensorDifference tensor_difference(const Tensor& a, const Tensor& b,
                                   const std::function<bool(int64_t done)>& go_on = {});

}  // namespace tenon::formats
