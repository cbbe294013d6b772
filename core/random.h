#pragma once
#include <cstdint>

#include "core/host_device.h"

namespace tenon {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC11): four random words
/// that are a pure function of (seed, stream, counter). Nothing is remembered, so any value can be drawn again, in any
/// order, on any thread.
struct Philox {
  uint64_t seed = 0;
  uint64_t stream = 0;

  struct Words {
    uint32_t v[4];
  };
  TENON_HD Words at(uint64_t counter) const {
    uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
      uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }
  /// Word `i` of the stream.
  TENON_HD uint32_t word(uint64_t i) const { return at(i / 4).v[i % 4]; }
  /// Uniform in [0, 1), 24 bits.
  TENON_HD float uniform(uint64_t i) const { return static_cast<float>(word(i) >> 8) * 0x1p-24f; }
  /// Uniform in [0, 1), 53 bits; draws words 2i and 2i + 1.
  TENON_HD double uniform_double(uint64_t i) const {
    Words w = at(i / 2);
    int k = static_cast<int>(i % 2) * 2;
    return static_cast<double>((static_cast<uint64_t>(w.v[k]) << 32 | w.v[k + 1]) >> 11) * 0x1p-53;
  }
  /// Standard normal by Box and Muller from the pair of uniforms of i / 2; the same bits on one platform's libm.
  double normal(uint64_t i) const;
  /// Uniform integer in [0, n), n > 0, without bias beyond 2^-64 (multiply-shift on 64 bits).
  uint64_t below(uint64_t i, uint64_t n) const;
};

/// A stream number made from text ("features.0.weight"): FNV-1a, 64 bits.
constexpr uint64_t stream_of(const char* text) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (; *text; ++text) h = (h ^ static_cast<unsigned char>(*text)) * 0x100000001b3ull;
  return h;
}

}  // namespace tenon
