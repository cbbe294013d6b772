#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Normalisation of each row of a [rows, c] matrix. Sums of a row run in 16 lanes added in a fixed order; sums over rows
// in blocks fixed by the sizes. `rms` leaves the mean in: Zhang and Sennrich, "Root mean square layer normalization"
// (2019).

/// y = (x - mean) * rstd * gamma + beta with rstd = 1 / sqrt(var + eps); gamma and beta may be null. mean is not
/// written with rms.
template <class T>
void layer_norm_forward(int64_t rows, int64_t c, bool rms, T eps, const T* x, const T* gamma, const T* beta, T* y,
                        T* mean, T* rstd);
/// Bytes that layer_norm_backward() works in: its `room`. `sums`: ggamma or gbeta is wanted.
template <class T>
size_t layer_norm_workspace(int64_t rows, int64_t c, bool sums);
/// Any of gx, ggamma, gbeta may be null. mean is not read with rms.
template <class T>
void layer_norm_backward(int64_t rows, int64_t c, bool rms, const T* x, const T* gy, const T* gamma, const T* mean,
                         const T* rstd, T* gx, T* ggamma, T* gbeta, void* room);

}  // namespace tenon::kernels
