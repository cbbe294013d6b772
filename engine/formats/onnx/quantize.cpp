// ONNX's quantised operators. Products of 8-bit integers are added in f32 where no sum can leave what it holds exactly,
// in f64 otherwise.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/linear.h"
#include "engine/formats/onnx/operator.h"
#include "engine/formats/onnx/windows.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

void range_of(DType t, double& lo, double& hi) {
  switch (t) {
    case DType::u8:
      lo = 0, hi = 255;
      break;
    case DType::i8:
      lo = -128, hi = 127;
      break;
    case DType::i16:
      lo = -32768, hi = 32767;
      break;
    case DType::i32:
      lo = -2147483648.0, hi = 2147483647.0;
      break;
    default:
      throw OnnxUnsupported(fmt::format("quantised numbers of {} are not supported", name(t)));
  }
}

/// A scale or zero point as it stands against x: one number, one a slice of an axis, or one a block of `block` along
/// it.
Tensor against(const Tensor& p, const Tensor& x, int axis, int64_t block) {
  if (p.numel() == 1 && p.ndim() <= 1) return reshape(p, {});
  if (p.ndim() == 1) {
    Shape s = Shape::filled(x.ndim(), 1);
    s[axis] = p.numel();
    return reshape(p, s);
  }
  if (block < 1) throw Error(fmt::format("scales of size {} without a block size", to_string(p.size())));
  return narrow(repeat_interleave(p, block, axis), axis, 0, x.size(axis));
}

Tensor quantized(const Tensor& x, const Tensor& scale, const Tensor& zero, DType to) {
  double lo, hi;
  range_of(to, lo, hi);
  const Tensor y = add(round(div(cast(x, DType::f32), cast(scale, DType::f32))), cast(zero, DType::f32));
  return cast(cast(minimum(maximum(y, lo), hi), DType::i32), to);
}

int quantized_axis(const OnnxCall& c, const Tensor& x) {
  return x.ndim() ? wrap_axis(c.node.integer("axis", 1) >= x.ndim() && x.ndim() == 1 ? 0 : c.node.integer("axis", 1),
                              x.ndim())
                  : 0;
}

TENON_ONNX(QuantizeLinear) {
  const Tensor& x = c.input(0);
  DType to = DType::u8;
  if (c.has(2))
    to = c.in[2].dtype();
  else if (const int64_t type = c.node.integer("output_dtype", 0); type != 0 && type != 2) {
    if (type != 3 && type != 5) throw OnnxUnsupported(fmt::format("data type {} is not supported", type));
    to = type == 3 ? DType::i8 : DType::i16;
  }
  const int64_t block = c.node.integer("block_size", 0);
  const int axis = c.input(1).numel() == 1 ? 0 : quantized_axis(c, x);
  const Tensor scale = against(c.input(1), x, axis, block),
               zero = c.has(2) ? against(c.in[2], x, axis, block) : scalar(0, DType::i32);
  return {quantized(x, scale, zero, to)};
}
TENON_ONNX(DequantizeLinear) {
  const Tensor& x = c.input(0);
  const int64_t block = c.node.integer("block_size", 0);
  const int axis = c.input(1).numel() == 1 ? 0 : quantized_axis(c, x);
  Tensor y = cast(x, DType::f32);
  if (c.has(2)) y = sub(y, cast(against(c.in[2], x, axis, block), DType::f32));
  return {cast(mul(y, cast(against(c.input(1), x, axis, block), DType::f32)), c.input(1).dtype())};
}
TENON_ONNX(DynamicQuantizeLinear) {
  const Tensor& x = c.input(0);
  const double lo = std::min(0.0, item(amin(x))), hi = std::max(0.0, item(amax(x)));
  const float scale = static_cast<float>(hi - lo) / 255.0f;
  const double zero = std::nearbyint(std::clamp(scale == 0 ? 0.0f : -static_cast<float>(lo) / scale, 0.0f, 255.0f));
  const Tensor s = scalar(scale), z = scalar(zero, DType::u8);
  return {scale == 0 ? full(x.size(), zero, DType::u8) : quantized(x, s, z, DType::u8), s, z};
}

/// The type in which sums of so many products of whole numbers are exact.
DType exact_type(const Tensor& a, const Tensor& b, int64_t products) {
  if (a.is_meta() || b.is_meta() || !a.numel() || !b.numel()) return DType::f64;
  auto most = [](const Tensor& t) { return std::max(std::abs(item(amin(t))), std::abs(item(amax(t)))); };
  return most(a) * most(b) * static_cast<double>(products) < 0x1p24 ? DType::f32 : DType::f64;
}

/// x - zero in f64; a zero point of one axis stands for rows (of a) or columns (of b).
Tensor centred(const OnnxCall& c, size_t x, size_t zero, bool rows) {
  Tensor y = cast(c.input(x), DType::f64);
  if (!c.has(zero)) return y;
  Tensor z = cast(c.in[zero], DType::f64);
  if (z.numel() == 1)
    z = reshape(z, {});
  else if (z.ndim() == 1 && rows)
    z = unsqueeze(z, 1);
  return sub(y, z);
}
TENON_ONNX(MatMulInteger) {
  const Tensor a = centred(c, 0, 2, true), b = centred(c, 1, 3, false);
  const DType t = exact_type(a, b, a.ndim() ? a.size(-1) : 1);
  return {cast(numpy_matmul(cast(a, t), cast(b, t)), DType::i32)};
}

Tensor requantized(const Tensor& y, const Tensor& scale, const Tensor& zero) {
  double lo, hi;
  range_of(zero.dtype(), lo, hi);
  const Tensor q = add(round(mul(y, cast(scale, DType::f64))), cast(zero, DType::f64));
  return cast(cast(minimum(maximum(q, lo), hi), DType::i32), zero.dtype());
}
/// One number, or one a row of a matrix product.
Tensor factor(const Tensor& t, bool rows) {
  const Tensor y = cast(t, DType::f64);
  return y.numel() == 1 ? reshape(y, {}) : rows && y.ndim() == 1 ? unsqueeze(y, 1) : y;
}
TENON_ONNX(QLinearMatMul) {
  const Tensor y = numpy_matmul(centred(c, 0, 2, true), centred(c, 3, 5, false));
  return {requantized(y, div(mul(factor(c.input(1), true), factor(c.input(4), false)), factor(c.input(6), true)),
                      c.input(7))};
}

/// The weights' zero point or scale is one number or one an output channel.
Tensor an_output(const Tensor& t, int ndim, int axis) {
  if (t.numel() == 1) return reshape(t, {});
  Shape s = Shape::filled(ndim, 1);
  s[axis] = t.numel();
  return reshape(t, s);
}
/// Whole numbers, as f32 or f64.
Tensor conv_of_integers(const OnnxCall& c, size_t x, size_t w, size_t x_zero, size_t w_zero) {
  const Tensor& kernel = c.input(w);
  const Windows at(c, c.input(x).size(), {kernel.size().begin() + std::min(2, kernel.ndim()), kernel.size().end()});
  Tensor k = cast(kernel, DType::f64), y = cast(c.input(x), DType::f64);
  if (c.has(w_zero)) k = sub(k, an_output(cast(c.in[w_zero], DType::f64), k.ndim(), 0));
  if (c.has(x_zero)) y = sub(y, reshape(cast(c.in[x_zero], DType::f64), {}));
  const int64_t groups = c.node.integer("group", 1);
  const DType t = exact_type(y, k, k.size(0) ? k.numel() / k.size(0) : 1);
  if (t == DType::f32 && y.ndim() == 4 && at.before == at.after && at.before[0] >= 0 && at.before[1] >= 0)
    return contiguous(
        conv2d(cast(y, t), cast(k, t), Tensor(), {Dims(at.stride), Dims(at.before), Dims(at.dilation), groups}));
  return correlate(at.padded(cast(y, t), 0), at, cast(k, t), groups);
}
TENON_ONNX(ConvInteger) { return {cast(conv_of_integers(c, 0, 1, 2, 3), DType::i32)}; }
TENON_ONNX(QLinearConv) {
  Tensor y = cast(conv_of_integers(c, 0, 3, 2, 5), DType::f64);
  if (c.has(8)) y = add(y, an_output(cast(c.in[8], DType::f64), y.ndim(), 1));
  const Tensor scale =
      mul(reshape(cast(c.input(1), DType::f64), {}), an_output(cast(c.input(4), DType::f64), y.ndim(), 1));
  return {requantized(y, div(scale, reshape(cast(c.input(6), DType::f64), {})), reshape(c.input(7), {}))};
}

}  // namespace
}  // namespace tenon::formats
