// ONNX operators element by element that are more than a pointwise op of the registry.
#include <cmath>
#include <cstring>

#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

DType dtype_of_number(int64_t number) {
  for (int k = 0; k < kDTypes; ++k)
    if (onnx_data_type(static_cast<DType>(k)) == number) return static_cast<DType>(k);
  throw OnnxUnsupported(fmt::format("data type {} is not supported", number));
}

// Integers divide with truncation; ours would become floating point.
TENON_ONNX(Div) {
  if (is_floating(c.input(0).dtype())) return {div(c.input(0), c.input(1))};
  const Tensor &a = c.input(0), &b = c.input(1);
  return {floor_divide(sub(a, fmod(a, b)), b)};
}
// Base and exponent may be of different types; the result is the base's.
TENON_ONNX(Pow) {
  const Tensor &a = c.input(0), &b = c.input(1);
  if (a.dtype() == b.dtype() && is_floating(a.dtype())) return {pow(a, b)};
  return {cast(pow(cast(a, DType::f64), cast(b, DType::f64)), a.dtype())};
}
TENON_ONNX(Mod) {
  if (c.node.integer("fmod", 0)) return {fmod(c.input(0), c.input(1))};
  if (is_floating(c.input(0).dtype())) throw Error("floating point without fmod=1");
  return {remainder(c.input(0), c.input(1))};
}
TENON_ONNX(Not) { return {logical_not(c.input(0))}; }
TENON_ONNX(IsInf) {
  const Tensor& x = c.input(0);
  const bool up = c.node.integer("detect_positive", 1), down = c.node.integer("detect_negative", 1);
  if (up && down) return {isinf(x)};
  if (!up && !down) return {zeros(x.size(), DType::boolean)};
  return {eq(x, up ? INFINITY : -INFINITY)};
}
TENON_ONNX(BitShift) {
  const std::string way = c.node.text("direction", "");
  if (way != "LEFT" && way != "RIGHT") throw Error(fmt::format("the direction \"{}\" is neither LEFT nor RIGHT", way));
  return {way == "LEFT" ? bitwise_left_shift(c.input(0), c.input(1)) : bitwise_right_shift(c.input(0), c.input(1))};
}
TENON_ONNX(BitwiseNot) { return {bitwise_not(c.input(0))}; }

Tensor total(const OnnxCall& c) {
  Tensor y = c.input(0);
  for (size_t i = 1; i < c.in.size(); ++i) y = add(y, c.input(i));
  return y;
}
TENON_ONNX(Sum) { return {total(c)}; }
TENON_ONNX(Mean) { return {div(total(c), static_cast<double>(c.in.size()))}; }

TENON_ONNX(Gelu) { return {c.node.text("approximate", "none") == "tanh" ? gelu_tanh(c.input(0)) : gelu(c.input(0))}; }
TENON_ONNX(Mish) { return {mul(c.input(0), tanh(softplus(c.input(0))))}; }
TENON_ONNX(Swish) { return {mul(c.input(0), sigmoid(mul(c.input(0), c.node.number("alpha", 1))))}; }

Tensor converted(const OnnxCall& c, DType to) {
  const Tensor& x = c.input(0);
  // A float to an integer that does not hold it is undefined in ONNX and in C++: it goes through i64, which holds most.
  if (is_floating(x.dtype()) && is_integral(to)) return cast(cast(x, DType::i64), to);
  return cast(x, to);
}
TENON_ONNX(Cast) { return {converted(c, dtype_of_number(c.node.integer("to", 0)))}; }
TENON_ONNX(CastLike) { return {converted(c, c.input(1).dtype())}; }

// The same bits seen as another type of the same width.
TENON_ONNX(BitCast) {
  const DType to = dtype_of_number(c.node.integer("to", 0));
  const Tensor x = contiguous(c.input(0));
  if (itemsize(to) != itemsize(x.dtype()))
    throw Error(fmt::format("{} and {} are of different widths", name(x.dtype()), name(to)));
  const Tensor y = empty(x.size(), to);
  if (x.nbytes()) std::memcpy(y.raw(), x.raw(), x.nbytes());
  return {y};
}

}  // namespace
}  // namespace tenon::formats
