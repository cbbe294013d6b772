#include "tracing/record/numbers.h"

#include <cmath>

namespace tenon::tracing {

Dims index_of(const Shape& size, int64_t number) {
  Dims i = Dims::filled(size.n, 0);
  for (int d = size.n - 1; d >= 0; --d) {
    if (size[d] > 0) {
      i[d] = number % size[d];
      number /= size[d];
    }
  }
  return i;
}

Statistics statistics(const Tensor& given) {
  Statistics s;
  if (!given.defined()) return s;
  const Tensor t = given.is_meta() ? given : to_host(given);
  s.count = t.numel();
  double sum = 0, squares = 0;
  bool any = false;
  each_value(t, [&](int64_t, double v) {
    if (std::isnan(v))
      ++s.nan;
    else if (std::isinf(v))
      ++(v > 0 ? s.positive_infinity : s.negative_infinity);
    else {
      ++s.finite;
      s.zeros += v == 0;
      if (!any || v < s.min) s.min = v;
      if (!any || v > s.max) s.max = v;
      any = true;
      sum += v;
      squares += v * v;
    }
    return true;
  });
  if (s.finite > 0) {
    s.mean = sum / static_cast<double>(s.finite);
    s.norm = std::sqrt(squares);
    double about = 0;
    each_value(t, [&](int64_t, double v) {
      if (std::isfinite(v)) about += (v - s.mean) * (v - s.mean);
      return true;
    });
    s.deviation = std::sqrt(about / static_cast<double>(s.finite));
  }
  return s;
}

bool first_bad(const Tensor& given, Dims& index, double& value) {
  if (!given.defined() || !is_floating(given.dtype()) || !given.storage()) return false;
  const Tensor t = to_host(given);
  if (t.dtype() == DType::f32 && t.layout().is_dense()) {  // the common case at memory speed
    const uint32_t* p = t.data<uint32_t>();
    uint32_t bad = 0;
    for (int64_t i = 0, n = t.numel(); i < n; ++i) bad |= (p[i] & 0x7f800000u) == 0x7f800000u;
    if (!bad) return false;
  }
  bool found = false;
  each_value(t, [&](int64_t k, double v) {
    if (std::isfinite(v)) return true;
    index = index_of(t.size(), k);
    value = v;
    found = true;
    return false;
  });
  return found;
}

bool largest(const Tensor& t, int axis, int64_t at, Dims& index, double& value) {
  bool found = false;
  double top = -1;
  if (!t.defined()) return false;
  each_value(t, [&](int64_t k, double v) {
    Dims i = index_of(t.size(), k);
    if (axis >= 0 && i[axis] != at) return true;
    double size = std::isfinite(v) ? std::abs(v) : INFINITY;
    if (size > top) {
      top = size;
      index = i;
      value = v;
      found = true;
    }
    return top != INFINITY;
  });
  return found;
}

}  // namespace tenon::tracing
