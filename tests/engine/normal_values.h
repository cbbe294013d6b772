#pragma once
#include "core/random.h"
#include "core/tensor.h"
#include "engine/ops/create.h"

namespace tenon::testing_values {

/// f32 numbers from a normal distribution: a function of seed and stream.
inline Tensor normal_values(const Shape& size, uint64_t seed, uint64_t stream = 0) {
  Tensor t = empty(size);
  const Philox random{seed, stream};
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = static_cast<float>(random.normal(static_cast<uint64_t>(i)));
  return t;
}

}  // namespace tenon::testing_values
