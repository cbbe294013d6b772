#pragma once
#include <memory>

#include "engine/data/dataset.h"
#include "engine/data/sampler.h"

namespace tenon::data {

struct LoaderOptions {
  int64_t batch = 64;
  int workers = 1;       ///< threads that fetch ahead; 0: next() fetches
  int64_t prefetch = 4;  ///< batches ahead at most
  bool shuffle = true;
  bool drop_last = false;                       ///< leave out a last batch that is not full
  uint64_t seed = 0;                            ///< of the order
  std::shared_ptr<const Sampler> sampler = {};  ///< instead of shuffle
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
  int64_t samples_per_epoch() const;  ///< of the whole batches, whoever shares them
  /// Of the batch that next() gives.
  int64_t epoch() const;
  int64_t index() const;
  void seek(int64_t epoch, int64_t index);
  /// Throws Error naming the sample, the batch and the epoch where one cannot be fetched; the position then stays.
  Batch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::data
