#pragma once
#include <cstdint>

#include "engine/cuda/kernel.h"

namespace tenon::cuda {

struct PhiloxWords {
  uint32_t v[4];
};
/// core/random.h's Philox::at(), word for word.
__device__ inline PhiloxWords philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  auto c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  auto c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  auto k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace tenon::cuda
