#pragma once
#include <cstdint>

namespace tenon::kernels {

// Rows are reduced whole, and the mean over rows is taken in order, in double: no bit depends on the number of threads.

/// lse[i] = log(sum_j exp(x[i, j])); returns the mean over rows of lse[i] - x[i, target[i]]. Every target must be in
/// [0, c).
template <class T>
double cross_entropy_forward(int64_t rows, int64_t c, const T* x, const int64_t* target, T* lse);
/// gx = (exp(x - lse) - onehot(target)) * scale.
template <class T>
void cross_entropy_backward(int64_t rows, int64_t c, const T* x, const int64_t* target, const T* lse, T scale, T* gx);

/// Along the rows of a [rows, c] matrix.
template <class T>
void softmax_forward(int64_t rows, int64_t c, bool log, const T* x, T* y);
/// From the forward's result y: gx = y * (gy - sum(gy * y)), or gy - exp(y) * sum(gy) for the logarithm.
template <class T>
void softmax_backward(int64_t rows, int64_t c, bool log, const T* y, const T* gy, T* gx);

/// Mean of (x - y)^2.
template <class T>
double mse_forward(int64_t n, const T* x, const T* y, double* partial);
int64_t mse_pieces(int64_t n);  // numbers that `partial` has room for
/// gx = (x - y) * scale.
template <class T>
void mse_backward(int64_t n, const T* x, const T* y, T scale, T* gx);

}  // namespace tenon::kernels
