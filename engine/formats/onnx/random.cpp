// ONNX's random operators. Numbers come from Philox with the node's seed (0 without one): the same at every run, but no
// other program's.
#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

DType asked_dtype(const OnnxCall& c, DType fallback) {
  if (!c.node.find("dtype")) return fallback;
  for (int k = 0; k < kDTypes; ++k)
    if (onnx_data_type(static_cast<DType>(k)) == c.node.integer("dtype", 0)) return static_cast<DType>(k);
  throw OnnxUnsupported(fmt::format("data type {} is not supported", c.node.integer("dtype", 0)));
}
Philox generator(const OnnxCall& c) {
  c.draws_random();
  uint64_t stream = 0;  // nodes draw different numbers
  for (char ch : c.node.name + "/" + (c.node.outputs.empty() ? "" : c.node.outputs[0]))
    stream = stream * 131 + static_cast<unsigned char>(ch);
  return Philox{static_cast<uint64_t>(std::llround(c.node.number("seed", 0) * 1024)), stream};
}
template <class F>
Tensor filled(const Shape& size, DType to, const F& f) {
  Tensor t = empty(size, DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = f(static_cast<uint64_t>(i));
  return cast(t, to);
}
Tensor normal(const OnnxCall& c, const Shape& size, DType t) {
  const Philox g = generator(c);
  const double m = c.node.number("mean", 0), s = c.node.number("scale", 1);
  return filled(size, t, [&](uint64_t i) { return m + s * g.normal(i); });
}
Tensor uniform(const OnnxCall& c, const Shape& size, DType t) {
  const Philox g = generator(c);
  const double lo = c.node.number("low", 0), hi = c.node.number("high", 1);
  return filled(size, t, [&](uint64_t i) { return lo + (hi - lo) * g.uniform_double(i); });
}
TENON_ONNX(RandomNormal) { return {normal(c, Shape(c.node.integers("shape")), asked_dtype(c, DType::f32))}; }
TENON_ONNX(RandomUniform) { return {uniform(c, Shape(c.node.integers("shape")), asked_dtype(c, DType::f32))}; }
TENON_ONNX(RandomNormalLike) { return {normal(c, c.input(0).size(), asked_dtype(c, c.input(0).dtype()))}; }
TENON_ONNX(RandomUniformLike) { return {uniform(c, c.input(0).size(), asked_dtype(c, c.input(0).dtype()))}; }
TENON_ONNX(Bernoulli) {
  const Philox g = generator(c);
  const Tensor p = contiguous(cast(c.input(0), DType::f64));
  return {filled(p.size(), asked_dtype(c, c.input(0).dtype()),
                 [&](uint64_t i) { return g.uniform_double(i) < p.data<double>()[i] ? 1.0 : 0.0; })};
}
TENON_ONNX(Multinomial) {
  const Philox g = generator(c);
  const Tensor logits = contiguous(cast(c.input(0), DType::f64));
  const int64_t n = c.node.integer("sample_size", 1);
  if (logits.ndim() != 2 || n < 0 || logits.size(1) < 1)
    throw Error(fmt::format("{} samples of scores of size {}", n, to_string(logits.size())));
  const int64_t classes = logits.size(1);
  return {filled({logits.size(0), n}, asked_dtype(c, DType::i32), [&](uint64_t i) {
    const double* row = logits.data<double>() + static_cast<int64_t>(i) / n * classes;
    double top = row[0], total = 0, seen = 0;
    for (int64_t k = 1; k < classes; ++k) top = std::max(top, row[k]);
    for (int64_t k = 0; k < classes; ++k) total += std::exp(row[k] - top);
    const double at = g.uniform_double(i) * total;
    for (int64_t k = 0; k < classes; ++k)
      if ((seen += std::exp(row[k] - top)) > at) return static_cast<double>(k);
    return static_cast<double>(classes - 1);
  })};
}

}  // namespace
}  // namespace tenon::formats
