#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Batch normalisation of a [rows, c] matrix along its rows: NHWC activations with rows = n * h * w, or [n, c] as they
// are. Sums run over blocks of rows fixed by the sizes, in double between blocks.

/// Bytes that batch_norm_backward(), and column_moments() followed by batch_norm_apply(), work in: their `room`.
template <class T>
size_t batch_norm_workspace(int64_t rows, int64_t c);

/// Mean and biased variance of every column, in two passes.
template <class T>
void column_moments(int64_t rows, int64_t c, const T* x, T* mean, T* var, void* room);
/// y = (x - mean) / sqrt(var + eps) * gamma + beta; gamma and beta may be null (1 and 0). `invstd` gets 1 / sqrt(var +
/// eps).
template <class T>
void batch_norm_apply(int64_t rows, int64_t c, const T* x, const T* mean, const T* var, T eps, const T* gamma,
                      const T* beta, T* y, T* invstd, void* room);
/// Gradients where mean and var were taken from x itself (batch = true) or are constants. ggamma and gbeta may be null,
/// gx too.
template <class T>
void batch_norm_backward(int64_t rows, int64_t c, bool batch, const T* x, const T* gy, const T* mean, const T* invstd,
                         const T* gamma, T* gx, T* ggamma, T* gbeta, void* room);

}  // namespace tenon::kernels
