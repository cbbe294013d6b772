#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace tenon::data {

/// Which rows an epoch visits, and in what order: a pure function of (seed, epoch), so a position in it is all there is
/// to remember.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual int64_t size() const = 0;  ///< rows of an epoch, the same for every one
  virtual std::vector<int64_t> order(uint64_t seed, int64_t epoch) const = 0;
};
using Samplers = std::shared_ptr<const Sampler>;

/// 0, 1, ..., n - 1. PyTorch: SequentialSampler.
Samplers sequential(int64_t n);
/// A permutation of 0..n-1, the Loader's own; or with replacement `draws` rows, each of any. PyTorch: RandomSampler.
Samplers random(int64_t n);
Samplers random_with_replacement(int64_t n, int64_t draws);
/// `draws` rows, each with a chance in proportion to its weight. Throws Error for weights that are negative, not
/// finite, or all 0. With replacement. PyTorch: WeightedRandomSampler.
Samplers weighted(std::vector<double> weights, int64_t draws);
/// Every world-th row of another sampler, from `rank` on. All ranks have as many: the first rows are taken again where
/// they do not come out even, or, with drop_last, the last ones are left out. PyTorch: DistributedSampler.
Samplers distributed(Samplers inner, int64_t rank, int64_t world, bool drop_last = false);
/// An order cut into batches. PyTorch: BatchSampler.
std::vector<std::vector<int64_t>> batches(const std::vector<int64_t>& order, int64_t size, bool drop_last = false);

/// Tensors that differ in the size of one axis, stacked along a new first axis: shorter ones are filled up with
/// `value`. `lengths` is what each had, i64. The others of their sizes and the dtypes must agree. PyTorch: pad_sequence
/// (batch_first).
struct Padded {
  Tensor values, lengths;
};
Padded pad(const std::vector<Tensor>& parts, double value = 0, int axis = 0);

}  // namespace tenon::data
