#pragma once
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace tenon::nn {

/// Runs f(inputs) and keeps nothing of what its ops would save for backward but the inputs; backward runs f again when
/// it first needs something from inside (Chen et al. 2016, "Training deep nets with sublinear memory cost"). f must do
/// the same both times; random draws (dropout) are repeated exactly. Works with grad(), create_graph and nested
/// checkpoints. What f changes beside its results, it changes twice, unless it asks recomputing(): the running
/// statistics of norms see the batch once (in PyTorch twice). Throws Error where the second run saves other tensors
/// than the first.
std::vector<Tensor> checkpoint(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f,
                               std::vector<Tensor> inputs);

/// Whether a stretch is run for the second time on this thread.
bool recomputing();

}  // namespace tenon::nn
