#pragma once
#include <cstdint>
#include <string>

#include "engine/ops/draws.h"

namespace tenon::nn {

/// Where random layers take their numbers from on this thread: a training step sets (seed, step), and every draw within
/// the step gets the next counters. Replaying a step with the same state draws the same numbers.
struct RandomState {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t drawn = 0;  ///< counters used within the step
};
extern thread_local RandomState t_random;

/// Counters for `numbers` random words: an offset below which nothing else of this (seed, step) lies. A step has room
/// for 2^40 counters.
inline uint64_t draw(uint64_t numbers) {
  uint64_t offset = (t_random.step << 40) + t_random.drawn;
  t_random.drawn += (numbers + 3) / 4;
  return offset;
}

/// The key of this thread's step on a device (Note [Random ops take a key]): one tensor for all ops of the step.
const Tensor& step_key(Device device);
/// `numbers` random words for an op on x's device.
inline Draws draws(uint64_t numbers, const std::string& path, const Tensor& x) {
  const uint64_t first = t_random.drawn;
  t_random.drawn += (numbers + 3) / 4;
  return {step_key(x.device()), stream_of(path.c_str()), first};
}

/// Sets the state for a scope.
class RandomScope {
 public:
  explicit RandomScope(RandomState s) : saved_(t_random) { t_random = s; }
  ~RandomScope() { t_random = saved_; }
  RandomScope(const RandomScope&) = delete;

 private:
  RandomState saved_;
};

}  // namespace tenon::nn
