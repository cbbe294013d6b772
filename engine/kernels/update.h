#pragma once
#include <cstdint>

namespace tenon::kernels {

/// Sum of squares, the same bits at any thread count; not finite exactly where an element is not (or the sum exceeds a
/// double). `partial` has room for pieces_of_squares(n) numbers.
template <class T>
double sum_of_squares(int64_t n, const T* x, double* partial);
int64_t pieces_of_squares(int64_t n);

}  // namespace tenon::kernels
