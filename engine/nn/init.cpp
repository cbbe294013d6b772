#include "engine/nn/init.h"

#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace tenon::nn {
namespace {

template <class F>
void each(const Tensor& t, const F& value) {
  if (t.is_meta()) return;
  if (!t.is_contiguous()) throw Error("a parameter is initialised in contiguous memory");
  int64_t n = t.numel();
  if (t.dtype() == DType::f32) {
    for (int64_t i = 0; i < n; ++i) t.data<float>()[i] = static_cast<float>(value(i));
  } else if (t.dtype() == DType::f64) {
    for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = value(i);
  } else {
    throw Error(std::string("parameters are f32 or f64, not ") + tenon::name(t.dtype()));
  }
}

}  // namespace

void fill(const Tensor& t, double value) {
  each(t, [&](int64_t) { return value; });
}

void init_uniform(const Tensor& t, double bound, uint64_t seed, const std::string& name) {
  Philox random{seed, stream_of(name.c_str())};
  each(t, [&](int64_t i) { return (2.0 * static_cast<double>(random.uniform(static_cast<uint64_t>(i))) - 1.0) * bound; });
}

void init_default(const Tensor& t, int64_t fan_in, uint64_t seed, const std::string& name) {
  init_uniform(t, fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0, seed, name);
}

}  // namespace tenon::nn
