#include "engine/train/moments.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/backend.h"
#include "core/parallel.h"
#include "core/quiet.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/dense.h"

namespace tenon {
namespace {

constexpr int64_t kPiece = 1 << 14;
constexpr int kLanes = 8;

/// A piece that may have numbers that are none.
template <class F>
Moments careful(int64_t begin, int64_t end, const F& at) {
  Moments m;
  for (int64_t i = begin; i < end; ++i) {
    const auto v = static_cast<double>(at(i));
    m.nans += std::isnan(v);
    m.infinite += std::isinf(v);
    m.zeros += v == 0;
    m.saturated += std::fabs(v) >= Moments::kSaturated;
    if (v < m.low) m.low = v;
    if (v > m.high) m.high = v;
    if (!std::isfinite(v)) continue;
    m.sum += v;
    m.squares += v * v;
  }
  m.count = end - begin;
  return m;
}

/// In lanes without a branch, which a compiler turns into vectors; a piece whose sum is not finite is read again.
template <class T, class F>
Moments quick(int64_t begin, int64_t end, const F& at) {
  constexpr auto kMost = static_cast<T>(Moments::kSaturated);
  double sum[kLanes] = {}, squares[kLanes] = {};
  T low[kLanes], high[kLanes];
  std::fill(low, low + kLanes, std::numeric_limits<T>::infinity());
  std::fill(high, high + kLanes, -std::numeric_limits<T>::infinity());
  int32_t zeros[kLanes] = {}, saturated[kLanes] = {};
  const int64_t whole = begin + (end - begin) / kLanes * kLanes;
  for (int64_t i = begin; i < whole; i += kLanes)
    for (int k = 0; k < kLanes; ++k) {
      const T v = at(i + k);
      sum[k] += static_cast<double>(v);
      squares[k] += static_cast<double>(v) * static_cast<double>(v);
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
      zeros[k] += v == 0;
      saturated[k] += (v >= kMost) | (v <= -kMost);
    }
  Moments m = careful(whole, end, at);
  for (int k = 0; k < kLanes; ++k) {
    m.sum += sum[k];
    m.squares += squares[k];
    m.low = std::min(m.low, static_cast<double>(low[k]));
    m.high = std::max(m.high, static_cast<double>(high[k]));
    m.zeros += zeros[k];
    m.saturated += saturated[k];
  }
  m.count = end - begin;
  return std::isfinite(m.squares) && m.nans + m.infinite == 0 ? m : careful(begin, end, at);
}

template <class T, class F>
Moments in_pieces(int64_t n, const F& at) {
  std::vector<Moments> pieces(static_cast<size_t>((n + kPiece - 1) / kPiece));
  parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
    pieces[static_cast<size_t>(begin / kPiece)] = quick<T>(begin, end, at);
  });
  Moments all;
  for (const Moments& m : pieces) all.add(m);
  return all;
}

template <class T>
Tensor on_host(const Tensor& t) {
  return ops::dense_as(to_host(detach(t)), std::is_same_v<T, float> ? DType::f32 : DType::f64);
}

}  // namespace

void Moments::add(const Moments& o) {
  count += o.count;
  nans += o.nans;
  infinite += o.infinite;
  zeros += o.zeros;
  saturated += o.saturated;
  sum += o.sum;
  squares += o.squares;
  low = std::min(low, o.low);
  high = std::max(high, o.high);
}

void Moments::divide(double by) { sum /= by, squares /= by * by, low /= by, high /= by; }

Moments moments_of(const Tensor& t) {
  Moments m;
  if (!t || t.numel() == 0) return m;
  const Quiet quiet;
  ops::float_or_double(t.dtype() == DType::f64 ? DType::f64 : DType::f32, [&](auto type) {
    using T = decltype(type);
    const Tensor h = on_host<T>(t);
    const T* x = h.template data<T>();
    m = in_pieces<T>(h.numel(), [x](int64_t i) { return x[i]; });
  });
  return m;
}

Moments moments_of_difference(const Tensor& after, const Tensor& before) {
  Moments m;
  if (!after || !before || after.numel() == 0) return m;
  const Quiet quiet;
  ops::float_or_double(after.dtype() == DType::f64 ? DType::f64 : DType::f32, [&](auto type) {
    using T = decltype(type);
    const Tensor a = on_host<T>(after), b = on_host<T>(before);
    const T *x = a.template data<T>(), *y = b.template data<T>();
    m = in_pieces<T>(a.numel(), [x, y](int64_t i) { return x[i] - y[i]; });
  });
  return m;
}

}  // namespace tenon
