#pragma once
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// One of several sessions that train the same model together, each on its share of every batch: `world` of them,
/// numbered from 0. All make the same calls in the same order; one that returns has waited for the others. What it
/// gives back is the same bits on every rank, and a function of what the ranks gave alone. A session without one is
/// alone.
class Replica {
 public:
  virtual ~Replica() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  /// Gives the tensors the values they have on rank 0.
  virtual void broadcast(const std::vector<Tensor>& tensors) = 0;
  /// grad_of(leaf) is complete: called once a step for every leaf that has one, while the rest of the last
  /// micro-batch's backward still runs. Adding up may begin here, without waiting for others.
  virtual void gradient_ready(const Tensor& leaf) = 0;
  /// Returns when every leaf's gradient is the sum of what the ranks had. `leaves` are all of them, in the same order
  /// on every rank.
  virtual void finish(const std::vector<Tensor>& leaves) = 0;
  /// The sum of a number over the ranks.
  virtual double sum(double mine) = 0;
  /// Whether it is true on every rank.
  virtual bool all_of(bool mine) = 0;
};

}  // namespace tenon
