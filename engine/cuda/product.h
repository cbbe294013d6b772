#pragma once
#include "engine/cuda/gemm.h"

namespace tenon::cuda {

/// Queues the product of a merged plan by cuBLASLt. False, with nothing queued, where the library is missing or cannot
/// do it: a matrix without neighbours along rows or columns, more than one batch axis, a bias of f64.
bool product_by_cublas(const Args& c, const GemmPlan& plan);

/// Whether there is cuBLASLt, which is open then: cuDNN looks for it.
bool cublas_there();

}  // namespace tenon::cuda
