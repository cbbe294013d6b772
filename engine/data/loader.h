#pragma once
#include <memory>

#include "engine/data/dataset.h"
#include "engine/data/sampler.h"

namespace tenon::data {

// Note [Samples that are left out]
// A run may do without some samples of its training set (the recipe's data.without). The order of an epoch and its
// batches are drawn as if they were there, and each batch then goes without its own of them: all others stand in the
// batch in which they stood, in the same order, and a step keeps its place in the schedule. Only what is counted along
// a batch (the values of a mask of dropout) moves up behind a gap. A batch of which nothing is left is a step that
// changes nothing. So a run with and one without a sample differ from the first step on that had it, and by nothing
// else. What is counted over the whole set (balanced classes) counts them, and a sample into which another one is mixed
// (mixup, cutmix) keeps its partner.

struct LoaderOptions {
  int64_t batch = 64;
  int workers = 1;       ///< threads that fetch ahead; 0: next() fetches
  int64_t prefetch = 4;  ///< batches ahead at most
  bool shuffle = true;
  bool drop_last = false;                       ///< leave out a last batch that is not full
  uint64_t seed = 0;                            ///< of the order
  std::shared_ptr<const Sampler> sampler = {};  ///< instead of shuffle
  std::vector<int64_t> without = {};            ///< rows that are left out, sorted
  /// Of `world` loaders that share every batch this one gives the rows of number `rank`: together, and in that order,
  /// they are the batch. None of them is left without a row.
  int rank = 0, world = 1;
};

/// The rows 0..n-1 in the order of an epoch: a pure function of its arguments.
std::vector<int64_t> epoch_order(int64_t n, uint64_t seed, int64_t epoch);

/// Batches of a data set, epoch after epoch without end, fetched ahead by worker threads. What comes out depends on the
/// options and the position alone, never on the workers. The position (epoch, index) is the whole state. Used from one
/// thread.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> set, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;

  int64_t batches_per_epoch() const;
  int64_t samples_per_epoch() const;  ///< of the whole batches, whoever shares them, with those that are left out
  /// Of the batch that next() gives.
  int64_t epoch() const;
  int64_t index() const;
  void seek(int64_t epoch, int64_t index);
  /// From the batch on that next() gives; sorted.
  void leave_out(std::vector<int64_t> rows);
  /// Throws Error naming the sample, the batch and the epoch where one cannot be fetched; the position then stays. A
  /// batch of which every sample is left out has no tensors.
  Batch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::data
