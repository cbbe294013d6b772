#pragma once
#include <cstdint>

#include "core/backend.h"
#include "core/tensor.h"

namespace tenon::tracing {

/// What a tensor's values are like. Read without running an op: counters and random streams of the run stay as they
/// are.
struct Statistics {
  int64_t count = 0, finite = 0, nan = 0, positive_infinity = 0, negative_infinity = 0, zeros = 0;
  double min = 0, max = 0, mean = 0, deviation = 0, norm = 0;  ///< over the finite values; 0 where there are none
  int64_t bad() const { return count - finite; }
};
Statistics statistics(const Tensor& t);

/// Calls f(logical index number, value) for every element in logical (row-major) order until it returns false.
template <class F>
void each_value(const Tensor& t, F&& f);

/// The first element in logical order that is NaN or infinite; false where all are finite.
bool first_bad(const Tensor& t, Dims& index, double& value);
/// The element of largest absolute value (a bad one wins) among those whose index along `axis` is `at`; axis -1: among
/// all.
bool largest(const Tensor& t, int axis, int64_t at, Dims& index, double& value);

/// Logical number to index and back.
Dims index_of(const Shape& size, int64_t number);

template <class F>
void each_value(const Tensor& given, F&& f) {
  if (!given.defined() || !given.storage()) return;
  const Tensor t = to_host(given);
  const Shape& size = t.size();
  int64_t n = t.numel(), at = t.offset();
  Dims i = Dims::filled(size.n, 0);
  for (int64_t k = 0; k < n; ++k) {
    if (!f(k, storage_value(t, at))) return;
    for (int d = size.n - 1; d >= 0; --d) {
      at += t.stride()[d];
      if (++i[d] < size[d]) break;
      at -= t.stride()[d] * size[d];
      i[d] = 0;
    }
  }
}

}  // namespace tenon::tracing
