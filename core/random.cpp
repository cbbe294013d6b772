#include "core/random.h"

#include <cmath>

namespace tenon {

double Philox::normal(uint64_t i) const {
  uint64_t pair = i / 2 * 2;
  double u = 1.0 - uniform_double(pair), v = uniform_double(pair + 1);  // u in (0, 1]
  double r = std::sqrt(-2.0 * std::log(u)), angle = 2.0 * M_PI * v;
  return i % 2 == 0 ? r * std::cos(angle) : r * std::sin(angle);
}

uint64_t Philox::below(uint64_t i, uint64_t n) const {
  Words w = at(i / 2);
  int k = static_cast<int>(i % 2) * 2;
  uint64_t x = static_cast<uint64_t>(w.v[k]) << 32 | w.v[k + 1];
  return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * n) >> 64);
}

}  // namespace tenon
