#include "views/tensor/tensor_stats.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace tenon::views {

namespace {
/// Calls fn(value) for every element in logical order; false where it was cancelled.
template <class Fn>
bool each(const Tensor& t, const std::atomic<bool>* cancel, Fn fn) {
  int64_t n = t.numel();
  Layout l = t.layout();
  Dims at = Dims::filled(l.ndim(), 0);
  int64_t position = l.offset;
  for (int64_t i = 0; i < n; ++i) {
    if (cancel && (i & 0xFFFF) == 0 && cancel->load(std::memory_order_relaxed)) return false;
    fn(storage_value(t, position));
    for (int axis = l.ndim() - 1; axis >= 0; --axis) {
      position += l.stride[axis];
      if (++at[axis] < l.size[axis]) break;
      position -= l.stride[axis] * l.size[axis];
      at[axis] = 0;
    }
  }
  return true;
}
}  // namespace

TensorStats tensor_stats(const Tensor& t, int bins, const std::atomic<bool>* cancel) {
  TensorStats s;
  if (!t.defined() || t.is_meta()) return s;
  double sum = 0, squares = 0, shift = 0;
  bool first = true;
  bool whole = each(t, cancel, [&](double v) {
    ++s.count;
    if (std::isnan(v)) {
      ++s.nan;
      return;
    }
    if (std::isinf(v)) {
      ++s.inf;
      return;
    }
    if (first) {
      s.min = s.max = shift = v;
      first = false;
    }
    s.min = std::min(s.min, v);
    s.max = std::max(s.max, v);
    s.zeros += v == 0;
    s.negative += v < 0;
    s.denormal += v != 0 && std::fabs(v) < static_cast<double>(FLT_MIN) && t.dtype() != DType::f64;
    sum += v - shift;  // shifted sums keep the variance of values far from zero
    squares += (v - shift) * (v - shift);
    s.l2 += v * v;
  });
  if (!whole) return {};
  double n = static_cast<double>(s.finite());
  if (n > 0) {
    s.mean = shift + sum / n;
    s.std = n > 1 ? std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) : 0;
    s.l2 = std::sqrt(s.l2);
  }
  s.bins.assign(static_cast<size_t>(std::max(bins, 1)), 0);
  double width = (s.max - s.min) / static_cast<double>(s.bins.size());
  whole = n == 0 || each(t, cancel, [&](double v) {
            if (!std::isfinite(v)) return;
            size_t k = width > 0 ? static_cast<size_t>((v - s.min) / width) : 0;
            ++s.bins[std::min(k, s.bins.size() - 1)];
          });
  return whole ? s : TensorStats{};
}

}  // namespace tenon::views
