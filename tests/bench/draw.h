#pragma once
#include <cstdint>

// What writers of large files share.
namespace tenon::bench {

/// Below n; the same numbers in every run of a program.
inline uint64_t draw(uint64_t n) {
  static uint64_t state = 0x9E3779B97F4A7C15ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % n;
}

}  // namespace tenon::bench
