#include "engine/kernels/update.h"

#include <cmath>

#include "core/parallel.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kGrain = 32 * 1024;
constexpr int64_t kBlock = 1024;  // squares added up in T before they go into a double

template <class T, class Sum>
Sum squares(int64_t n, const T* x) {
  constexpr int W = 16;
  Sum lanes[W] = {};
  int64_t i = 0;
  for (; i + W <= n; i += W)
    for (int k = 0; k < W; ++k) lanes[k] += static_cast<Sum>(x[i + k]) * static_cast<Sum>(x[i + k]);
  for (int k = 0; i < n; ++i, ++k) lanes[k] += static_cast<Sum>(x[i]) * static_cast<Sum>(x[i]);
  for (int w = W / 2; w > 0; w /= 2)
    for (int k = 0; k < w; ++k) lanes[k] += lanes[k + w];
  return lanes[0];
}

template <class T>
double piece(int64_t n, const T* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t count = n - i < kBlock ? n - i : kBlock;
    T fast = squares<T, T>(count, x + i);
    // Squares that leave the range of T do not make a gradient infinite.
    sum += std::isfinite(fast) ? static_cast<double>(fast) : squares<T, double>(count, x + i);
  }
  return sum;
}

}  // namespace

template <class T>
double sum_of_squares(int64_t n, const T* x, double* partial) {
  if (n <= kGrain) return piece(n, x);
  const int64_t pieces = pieces_of_squares(n);
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { partial[begin / kGrain] = piece(end - begin, x + begin); });
  double sum = 0;
  for (int64_t i = 0; i < pieces; ++i) sum += partial[i];
  return sum;
}

template double sum_of_squares<float>(int64_t, const float*, double*);
template double sum_of_squares<double>(int64_t, const double*, double*);

int64_t pieces_of_squares(int64_t n) { return n <= kGrain ? 0 : (n + kGrain - 1) / kGrain; }

}  // namespace tenon::kernels
