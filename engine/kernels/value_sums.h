#pragma once
#include <cstdint>
#include <limits>

// What runs of values come to. Each function goes over its run once, in an order that is the run's alone.
namespace tenon::kernels {

/// The finite values of a run, and how many are not finite. Two are put together by the formula of Chan, Golub and
/// LeVeque.
struct ValueSums {
  int64_t count = 0, nan = 0, inf = 0, zeros = 0, negative = 0, denormal = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  double mean = 0, around = 0, squares = 0;  ///< around: the sum of squares about the mean
  int64_t finite() const { return count - nan - inf; }
  void add(const ValueSums& o);
};

/// T: float or double; `p` may lie anywhere. Numbers below `tiny` count as denormal; 0: none do.
template <class T>
ValueSums sums_of(const void* p, int64_t n, double tiny);

/// Adds to counts[bins]: finite values by the share of [min, min + bins * width] that they lie in, those on its upper
/// end in the last.
template <class T>
void count_bins(const void* p, int64_t n, double min, double width, int64_t* counts, int bins);

/// Adds to counts[65536] how often each pattern of 16 bits stands in the run, n below 2^32.
void count_patterns(const void* p, int64_t n, uint32_t* counts);

}  // namespace tenon::kernels
