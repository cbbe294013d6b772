#pragma once
#include "core/tensor.h"

namespace tenon {

/// y = (x - mean) / sqrt(var + eps) * gamma + beta for every channel (axis 1) of x [n, c] or [n, c, h, w], over all
/// other axes. Ioffe and Szegedy: Batch normalization (2015). gamma and beta [c] may be undefined (1 and 0). f32 or
/// f64.
struct BatchNormResult {
  Tensor y;
  Tensor mean, var;  ///< of the batch, var biased
};
BatchNormResult batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5);
/// With given statistics instead of the batch's.
Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                            const Tensor& var, double eps = 1e-5);
/// running += momentum * (batch * factor - running), in place.
void update_running(Tensor& running, const Tensor& batch, double momentum, double factor = 1);

}  // namespace tenon
