#pragma once
#include <cstdint>
#include <string>

#include "engine/nn/module.h"

// Parameters computed from others, with PyTorch's names (torch.nn.utils.weight_norm, spectral_norm, prune). Use them on
// initialised modules; Module::bake(name) ends any of them.
namespace tenon::nn {

/// name = name_g * name_v / |name_v|, norms over all axes but `dim` (-1: over all). Salimans and Kingma (2016).
void weight_norm(Module& m, const std::string& name = "weight", int dim = 0);
/// name = name_orig / its largest singular value, which power iterations in training follow (buffers name_u, name_v).
/// The matrix has axis `dim` as its rows. Miyato et al. (2018). The first vectors are a function of (seed, the module's
/// path).
void spectral_norm(Module& m, const std::string& name = "weight", int64_t n_power_iterations = 1, double eps = 1e-12,
                   int dim = 0, uint64_t seed = 0);

/// How much is pruned: a share of what is left, or (above 1) a number of elements or slices.
struct Amount {
  double value;
  /// Of `left`; throws where that is more than there is.
  int64_t of(int64_t left) const;
};
// Masks that keep elements out of a parameter for good: it becomes name_orig times the buffer name_mask. Pruning again
// takes from what is left.
void prune_l1(Module& m, const std::string& name, Amount amount);  ///< the smallest magnitudes
void prune_random(Module& m, const std::string& name, Amount amount, uint64_t seed);
void prune_ln_structured(Module& m, const std::string& name, Amount amount, double n,
                         int dim);  ///< slices of an axis with the smallest n-norms
void prune_random_structured(Module& m, const std::string& name, Amount amount, int dim, uint64_t seed);
void prune_mask(Module& m, const std::string& name, const Tensor& mask);  ///< where mask is 0

}  // namespace tenon::nn
