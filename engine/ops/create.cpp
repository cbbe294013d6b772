#include "engine/ops/create.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/backend.h"
#include "core/error.h"
#include "engine/op/strided_loop.h"
#include "engine/op/value_watch.h"
#include "engine/ops/view.h"

namespace tenon {

namespace {

/// A number as an element of a dtype, on the host.
struct Element {
  alignas(8) char bytes[8] = {};
  Element(double value, DType dtype) {
    if (dtype == DType::f32) {
      const auto narrow = static_cast<float>(value);
      std::memcpy(bytes, &narrow, sizeof narrow);
    } else {
      convert(bytes, dtype, 0, &value, DType::f64, 0, 1);
    }
  }
};

void fill_on_device(const Tensor& t, double value) {
  if (t.numel() == 0) return;
  if (t.layout().is_dense()) {
    const Element one(value, t.dtype());
    backend_of(t.device()).fill(t.raw(), one.bytes, itemsize(t.dtype()), t.numel(), current_stream(t.device()));
    t.storage()->changed();
  } else {
    copy_(t, full({}, value, t.dtype(), t.device()));
  }
}

}  // namespace

void fill(const Tensor& t, double value) {
  if (t.is_meta()) return;
  if (t.device().type != DeviceType::cpu) return fill_on_device(t, value);
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
      for (int64_t i = 0; i < m; ++i)
        *reinterpret_cast<double*>(d[0] + i * s[0]) = *reinterpret_cast<const double*>(d[1] + i * s[1]);
    });
  }
  if (t.storage()) t.storage()->changed();
}

Tensor full(const Shape& size, double value, DType dtype, Device device) {
  Tensor t = empty(size, dtype, device);
  if (t.numel()) fill(t, value);
  return t;
}
Tensor zeros(const Shape& size, DType dtype, Device device) { return full(size, 0, dtype, device); }
Tensor ones(const Shape& size, DType dtype, Device device) { return full(size, 1, dtype, device); }

Tensor integers(const std::vector<int64_t>& values, Device device) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, DType::i64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return to_device(t, device);
}

Tensor arange(int64_t n, DType dtype, Device device) {
  Tensor t = empty({n}, DType::i64);
  for (int64_t i = 0; i < n; ++i) t.data<int64_t>()[i] = i;
  if (dtype == DType::i64) return to_device(t, device);
  Tensor c = empty({n}, dtype);
  convert(c.raw(), dtype, static_cast<int64_t>(itemsize(dtype)), t.raw(), DType::i64, 8, n);
  return to_device(c, device);
}

namespace {
/// Values computed in double, stored as dtype.
template <class F>
Tensor computed(int64_t n, DType dtype, Device device, const F& value) {
  Tensor t = empty({n}, DType::f64);
  for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = value(i);
  if (dtype == DType::f64) return to_device(t, device);
  Tensor c = empty({n}, dtype);
  convert(c.raw(), dtype, static_cast<int64_t>(itemsize(dtype)), t.raw(), DType::f64, 8, n);
  return to_device(c, device);
}
}  // namespace

Tensor arange(double start, double end, double step, DType dtype, Device device) {
  if (!(step != 0) || !std::isfinite(start) || !std::isfinite(end) || !std::isfinite(step))
    throw Error(fmt::format("arange: from {} to {} by {} has no last element", start, end, step));
  double n = std::ceil((end - start) / step);
  if (n < 0)
    throw Error(fmt::format("arange: from {} by {} never comes to {}", start, step, end),
                "the sign of the step must lead from start to end");
  if (n > 0x1p50) throw Error(fmt::format("arange: from {} to {} by {} are too many elements", start, end, step));
  return computed(static_cast<int64_t>(n), dtype, device,
                  [&](int64_t i) { return start + static_cast<double>(i) * step; });
}

Tensor linspace(double start, double end, int64_t steps, DType dtype, Device device) {
  if (steps < 0) throw Error(fmt::format("linspace: {} steps", steps));
  double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  // From both ends, as PyTorch: the last element is `end` itself.
  return computed(steps, dtype, device, [&](int64_t i) {
    return i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                       : end - step * static_cast<double>(steps - 1 - i);
  });
}

Tensor logspace(double start, double end, int64_t steps, double base, DType dtype, Device device) {
  Tensor at = linspace(start, end, steps, DType::f64);
  return computed(steps, dtype, device, [&](int64_t i) { return std::pow(base, at.data<double>()[i]); });
}

Tensor eye(int64_t n, int64_t m, DType dtype, Device device) {
  if (m < 0) m = n;
  Tensor t = zeros({n, m}, dtype, device);
  if (n > 0 && m > 0) fill(view_of(t, t.layout().diagonal(0, 0, 1)), 1);
  return t;
}

Tensor full_like(const Tensor& like, double value) { return full(like.size(), value, like.dtype(), like.device()); }
Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes) {
  Shape size;
  for (const Tensor& a : axes) {
    if (a.ndim() > 1)
      throw Error(
          fmt::format("meshgrid: an axis has size {}; it must have one dimension at most", to_string(a.size())));
    size.push_back(a.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < axes.size(); ++i) {
    Shape one = Dims::filled(size.n, 1);
    one[static_cast<int>(i)] = axes[i].numel();
    grids.push_back(expand(reshape(axes[i], one), size));
  }
  return grids;
}

Tensor scalar(double value, DType dtype, Device device) {
  if (device.type != DeviceType::cpu) return full({}, value, dtype, device);
  Tensor t = empty({}, dtype);
  if (dtype == DType::f32)
    *t.data<float>() = static_cast<float>(value);
  else
    convert(t.raw(), dtype, 0, &value, DType::f64, 0, 1);
  return t;
}

Tensor scalar_like(double value, const Tensor& like) {
  DType t = like.dtype();
  if (!is_floating(t) && (t == DType::boolean || value != std::floor(value)))
    t = value == std::floor(value) ? DType::i64 : DType::f32;
  return scalar(value, t, like.device());
}

double item(const Tensor& t) {
  if (t.numel() != 1) throw Error(fmt::format("item: a tensor of size {} is not one number", to_string(t.size())));
  ValueWatch::tell(t);
  return storage_value(t, t.offset());
}

}  // namespace tenon
