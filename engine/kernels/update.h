#pragma once
#include <cstdint>

namespace tenon::kernels {

/// Sum of squares, the same bits at any thread count; not finite exactly where an element is not (or the sum exceeds a
/// double).
template <class T>
double sum_of_squares(int64_t n, const T* x);

}  // namespace tenon::kernels
