#pragma once
#include <cstdint>

#include "core/error.h"
#include "core/random.h"
#include "engine/ops/create.h"

// Note [Random ops take a key]
// What changes from step to step is an input of a random op, its key; what stays (stream, place within the step) is an
// attribute. So a graph that was traced in one step draws the numbers of another when it is given that step's key. A
// number is a pure function of all of these and the element's place: nothing is kept for the backward pass.
namespace tenon {

/// The numbers that an op draws.
struct Draws {
  Tensor key;           ///< of random_key(), on the op's device
  uint64_t stream = 0;  ///< of the layer
  uint64_t first = 0;   ///< counters of the step that others have drawn
};

/// i64 [2]: the seed, and the counter at which a step's numbers begin.
inline Tensor random_key(uint64_t seed, uint64_t begin, Device device = {}) {
  return integers({static_cast<int64_t>(seed), static_cast<int64_t>(begin)}, device);
}
inline void check_key(const Meta& key) {
  if (key.dtype != DType::i64 || !(key.shape == Shape{2}))
    throw Error(std::string("its key is ") + name(key.dtype) + " of size " + to_string(key.shape) +
                    "; it must be i64 of size [2]",
                "random_key() makes one");
}

/// For kernels: the generator and the first counter.
struct DrawnFrom {
  Philox random;
  uint64_t counter;
  DrawnFrom(const Tensor& key, uint64_t stream, uint64_t first)
      : random{static_cast<uint64_t>(value(key, 0)), stream}, counter(static_cast<uint64_t>(value(key, 1)) + first) {}

 private:
  static int64_t value(const Tensor& key, int64_t i) { return key.data<int64_t>()[i * key.stride()[0]]; }
};

}  // namespace tenon
