#include "engine/ops/create.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "core/error.h"
#include "engine/op/strided_loop.h"

namespace tenon {

void fill(const Tensor& t, double value) {
  if (t.is_meta()) return;
  int64_t n = t.numel();
  if (t.layout().is_dense() && n > 0) {  // dense memory starts at the first element: strides are positive
    if (value == 0 && !std::signbit(value)) {
      std::memset(t.raw(), 0, t.nbytes());
    } else {
      convert(t.raw(), t.dtype(), static_cast<int64_t>(itemsize(t.dtype())), &value, DType::f64, 0, n);
    }
  } else {
    Tensor one = empty({}, DType::f64);
    *one.data<double>() = value;
    Tensor in[] = {one};
    strided_loop(t, in, 1, DType::f64, DType::f64, [](char* const* d, const int64_t* s, int64_t m) {
      for (int64_t i = 0; i < m; ++i) *reinterpret_cast<double*>(d[0] + i * s[0]) = *reinterpret_cast<const double*>(d[1] + i * s[1]);
    });
  }
  if (t.storage()) ++t.storage()->version;
}

Tensor full(const Shape& size, double value, DType dtype) {
  Tensor t = empty(size, dtype);
  if (t.numel()) fill(t, value);
  return t;
}
Tensor zeros(const Shape& size, DType dtype) { return full(size, 0, dtype); }
Tensor ones(const Shape& size, DType dtype) { return full(size, 1, dtype); }

Tensor arange(int64_t n, DType dtype) {
  Tensor t = empty({n}, DType::i64);
  for (int64_t i = 0; i < n; ++i) t.data<int64_t>()[i] = i;
  if (dtype == DType::i64) return t;
  Tensor c = empty({n}, dtype);
  convert(c.raw(), dtype, static_cast<int64_t>(itemsize(dtype)), t.raw(), DType::i64, 8, n);
  return c;
}

Tensor scalar(double value, DType dtype) {
  Tensor t = empty({}, dtype);
  if (dtype == DType::f32) *t.data<float>() = static_cast<float>(value);
  else convert(t.raw(), dtype, 0, &value, DType::f64, 0, 1);
  return t;
}

Tensor scalar_like(double value, const Tensor& like) {
  DType t = like.dtype();
  if (!is_floating(t) && (t == DType::boolean || value != std::floor(value))) t = value == std::floor(value) ? DType::i64 : DType::f32;
  if (like.is_meta()) return empty({}, t, like.device());
  return scalar(value, t);
}

double item(const Tensor& t) {
  if (t.numel() != 1) throw Error(fmt::format("item: a tensor of size {} is not one number", to_string(t.size())));
  return storage_value(t, t.offset());
}

}  // namespace tenon
