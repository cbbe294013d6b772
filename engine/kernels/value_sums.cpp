#include "engine/kernels/value_sums.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <memory>

namespace tenon::kernels {
namespace {

constexpr int kLanes = 4;
typedef double Reals __attribute__((vector_size(kLanes * sizeof(double))));
typedef int64_t Counts __attribute__((vector_size(kLanes * sizeof(int64_t))));
typedef int32_t Places __attribute__((vector_size(kLanes * sizeof(int32_t))));

template <class T>
Reals load(const char* p) {
  typedef T Few __attribute__((vector_size(kLanes * sizeof(T))));
  Few few;
  std::memcpy(&few, p, sizeof few);
  return __builtin_convertvector(few, Reals);
}

Reals all_of(double v) { return Reals{v, v, v, v}; }
Reals size_of(Reals v) { return v < all_of(0) ? -v : v; }

template <class T>
double value(const char* p, int64_t i) {
  T v;
  std::memcpy(&v, p + i * static_cast<int64_t>(sizeof(T)), sizeof v);
  return static_cast<double>(v);
}

/// Shifted sums keep the variance of values far from zero: by the first that is finite.
template <class T>
double first_finite(const char* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (const double v = value<T>(p, i); std::isfinite(v)) return v;
  return 0;
}

struct SumLanes {
  Reals sum = all_of(0), shifted = all_of(0), squares = all_of(0);
  Reals min = all_of(std::numeric_limits<double>::infinity()), max = -min;
  Counts nan{}, finite{}, zeros{}, negative{}, denormal{};

  void add(Reals v, double shift, double tiny) {
    const Reals none = all_of(0), size = size_of(v);
    const Counts is = size <= all_of(DBL_MAX);
    const Reals d = is ? v - all_of(shift) : none, x = is ? v : none;
    sum += d;
    shifted += d * d;
    squares += x * x;
    min = (is & (v < min)) ? v : min;
    max = (is & (v > max)) ? v : max;
    finite -= is;  // a condition that holds is -1
    nan -= v != v;
    zeros -= v == none;
    negative -= is & (v < none);
    denormal -= (v != none) & (size < all_of(tiny));
  }
};

double over(const Reals& v) { return (v[0] + v[1]) + (v[2] + v[3]); }
int64_t over(const Counts& v) { return v[0] + v[1] + v[2] + v[3]; }

}  // namespace

void ValueSums::add(const ValueSums& o) {
  const auto n = static_cast<double>(finite()), m = static_cast<double>(o.finite());
  if (m > 0) {
    const double step = o.mean - mean;
    mean += step * m / (n + m);
    around += o.around + step * step * n * m / (n + m);
    squares += o.squares;
    min = std::min(min, o.min);
    max = std::max(max, o.max);
  }
  count += o.count;
  nan += o.nan;
  inf += o.inf;
  zeros += o.zeros;
  negative += o.negative;
  denormal += o.denormal;
}

template <class T>
ValueSums sums_of(const void* at, int64_t n, double tiny) {
  const char* p = static_cast<const char*>(at);
  const double shift = first_finite<T>(p, n);
  SumLanes lanes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) lanes.add(load<T>(p + i * static_cast<int64_t>(sizeof(T))), shift, tiny);
  const int64_t rest = n - i;
  if (rest > 0) {  // lanes that nothing is left for hold what counts as nothing but as NaN
    Reals last = all_of(std::numeric_limits<double>::quiet_NaN());
    for (int64_t k = 0; k < rest; ++k) last[k] = value<T>(p, i + k);
    lanes.add(last, shift, tiny);
  }
  ValueSums s;
  s.count = n;
  s.nan = over(lanes.nan) - (rest > 0 ? kLanes - rest : 0);
  s.inf = n - s.nan - over(lanes.finite);
  s.zeros = over(lanes.zeros);
  s.negative = over(lanes.negative);
  s.denormal = over(lanes.denormal);
  s.squares = over(lanes.squares);
  for (int k = 0; k < kLanes; ++k) {
    s.min = std::min(s.min, static_cast<double>(lanes.min[k]));
    s.max = std::max(s.max, static_cast<double>(lanes.max[k]));
  }
  if (const auto finite = static_cast<double>(s.finite()); finite > 0) {
    const double sum = over(lanes.sum);
    s.mean = shift + sum / finite;
    s.around = std::max(0.0, over(lanes.shifted) - sum * sum / finite);
  }
  return s;
}
template ValueSums sums_of<float>(const void*, int64_t, double);
template ValueSums sums_of<double>(const void*, int64_t, double);

template <class T>
void count_bins(const void* at, int64_t n, double min, double width, int64_t* counts, int bins) {
  const char* p = static_cast<const char*>(at);
  // A table a lane: what stands beside each other often falls into one bin. The last entry is for what is not finite.
  const auto size = static_cast<size_t>(bins) + 1;
  const auto tables = std::make_unique<uint32_t[]>(kLanes * size);
  const auto count = [&](Reals v) {
    Reals k = (v - all_of(min)) / all_of(width);
    k = k < all_of(bins - 1) ? k : all_of(bins - 1);
    k = size_of(v) <= all_of(DBL_MAX) ? k : all_of(bins);
    const Places place = __builtin_convertvector(k, Places);
    for (int lane = 0; lane < kLanes; ++lane)
      ++tables[static_cast<size_t>(lane) * size + static_cast<size_t>(place[lane])];
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) count(load<T>(p + i * static_cast<int64_t>(sizeof(T))));
  if (i < n) {
    Reals last = all_of(std::numeric_limits<double>::quiet_NaN());
    for (int64_t k = 0; i + k < n; ++k) last[k] = value<T>(p, i + k);
    count(last);
  }
  for (int lane = 0; lane < kLanes; ++lane)
    for (size_t b = 0; b + 1 < size; ++b) counts[b] += tables[static_cast<size_t>(lane) * size + b];
}
template void count_bins<float>(const void*, int64_t, double, double, int64_t*, int);
template void count_bins<double>(const void*, int64_t, double, double, int64_t*, int);

void count_patterns(const void* at, int64_t n, uint32_t* counts) {
  // Two tables: where one value stands beside itself, as zeros do, each count would wait for the one before it.
  constexpr size_t kPatterns = 65536;
  const auto other = std::make_unique<uint32_t[]>(kPatterns);
  const char* p = static_cast<const char*>(at);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    uint64_t four;
    std::memcpy(&four, p + 2 * i, sizeof four);
    ++counts[four & 0xffff];
    ++other[(four >> 16) & 0xffff];
    ++counts[(four >> 32) & 0xffff];
    ++other[four >> 48];
  }
  for (; i < n; ++i) {
    uint16_t one;
    std::memcpy(&one, p + 2 * i, sizeof one);
    ++counts[one];
  }
  for (size_t k = 0; k < kPatterns; ++k) counts[k] += other[k];
}

}  // namespace tenon::kernels
