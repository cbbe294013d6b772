// ONNX operators that multiply and transform.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/linear.h"
#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/fft.h"
#include "engine/ops/linalg.h"
#include "engine/ops/matmul.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {

Tensor numpy_matmul(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 0 || b.ndim() == 0) throw Error("a product with a tensor without axes");
  if (!is_floating(a.dtype()))
    return cast(numpy_matmul(cast(a, DType::f64), cast(b, DType::f64)), a.dtype());  // exact up to 2^53
  Tensor x = a.ndim() == 1 ? unsqueeze(a, 0) : a, y = b.ndim() == 1 ? unsqueeze(b, 1) : b;
  if (x.ndim() > 2 && y.ndim() > 2) {
    Shape sx = x.size(), sy = y.size(), bx, by;
    for (int i = 0; i < sx.n - 2; ++i) bx.push_back(sx[i]);
    for (int i = 0; i < sy.n - 2; ++i) by.push_back(sy[i]);
    Shape batch = broadcast_shape(bx, by), wx = batch, wy = batch;
    for (int k = 2; k > 0; --k) {
      wx.push_back(sx[sx.n - k]);
      wy.push_back(sy[sy.n - k]);
    }
    if (!(sx == wx)) x = expand(x, wx);
    if (!(sy == wy)) y = expand(y, wy);
  }
  Tensor z = matmul(x, y);
  if (b.ndim() == 1) z = squeeze(z, -1);
  if (a.ndim() == 1) z = squeeze(z, b.ndim() == 1 ? -1 : -2);
  return z;
}

namespace {

TENON_ONNX(Einsum) { return {einsum(c.node.text("equation", ""), c.inputs())}; }
TENON_ONNX(Det) { return {det(c.input(0))}; }
TENON_ONNX(MatMul) { return {numpy_matmul(c.input(0), c.input(1))}; }

TENON_ONNX(Gemm) {
  bool ta = c.node.integer("transA", 0), tb = c.node.integer("transB", 0);
  double alpha = c.node.number("alpha", 1), beta = c.node.number("beta", 1);
  const Tensor &a = c.input(0), &b = c.input(1);
  if (a.ndim() != 2 || b.ndim() != 2)
    throw Error(fmt::format("sizes {} and {}; both are matrices", to_string(a.size()), to_string(b.size())));
  if (is_floating(a.dtype()) && !ta && tb && alpha == 1 && beta == 1 &&
      (!c.has(2) || c.in[2].size() == Shape{b.size(0)}))
    return {linear(a, b, c.has(2) ? c.in[2] : Tensor())};
  Tensor y = is_floating(a.dtype()) ? matmul(a, b, ta, tb)
                                    : numpy_matmul(ta ? transpose(a, 0, 1) : a, tb ? transpose(b, 0, 1) : b);
  if (alpha != 1) y = mul(y, alpha);
  if (c.has(2)) y = add(y, beta == 1 ? c.in[2] : mul(c.in[2], beta));
  return {cast(y, a.dtype())};
}

// Complex numbers are a last axis of two, as ours; a last axis of one is real.
TENON_ONNX(DFT) {
  Tensor x = c.input(0);
  const bool inverse = c.node.integer("inverse", 0), onesided = c.node.integer("onesided", 0);
  // The axis was an attribute (default 1) before opset 20 and counts the last axis in.
  int64_t at = c.opset >= 20 ? (c.has(2) ? c.whole(2) : -2) : c.node.integer("axis", 1);
  const int axis = wrap_axis(at, x.ndim());
  if (axis == x.ndim() - 1) throw Error("the last axis holds real and imaginary part");
  const int64_t n = c.has(1) ? c.whole(1) : onesided && inverse ? 2 * (x.size(axis) - 1) : x.size(axis);
  if (onesided && inverse) return {unsqueeze(irfft(x, n, axis), -1)};
  if (x.size(-1) == 1) {
    x = squeeze(x, -1);
    if (onesided) return {rfft(x, n, axis)};
    Shape s = x.size();
    s.push_back(1);
    const Tensor real = reshape(x, s);
    Tensor pair = mul(real, cast(sub(scalar(1, DType::f64), arange(2, DType::f64)), x.dtype()));  // [x, 0]
    return {inverse ? ifft(pair, n, axis) : fft(pair, n, axis)};
  }
  Tensor y = inverse ? ifft(x, n, axis) : fft(x, n, axis);
  return {onesided ? narrow(y, axis, 0, y.size(axis) / 2 + 1) : y};
}

TENON_ONNX(STFT) {
  Tensor x = c.input(0);
  if (x.ndim() == 3) {
    if (x.size(-1) != 1) throw OnnxUnsupported("a complex signal is not supported");
    x = squeeze(x, -1);
  }
  StftOptions o;
  o.hop = c.whole(1);
  o.window = c.has(2) ? c.in[2] : Tensor();
  o.n_fft = c.has(3) ? c.whole(3) : o.window ? o.window.numel() : 0;
  o.center = false;
  o.onesided = c.node.integer("onesided", 1);
  return {transpose(stft(x, o), -2, -3)};
}

Out window_function(const OnnxCall& c, Tensor (*f)(int64_t, bool, DType)) {
  const int64_t type = c.node.integer("output_datatype", 1), n = c.whole(0);
  DType t = DType::f32;
  for (int k = 0; k < kDTypes; ++k)
    if (onnx_data_type(static_cast<DType>(k)) == type) t = static_cast<DType>(k);
  if (onnx_data_type(t) != type) throw OnnxUnsupported(fmt::format("data type {} is not supported", type));
  return {f(n, c.node.integer("periodic", 1) != 0, t)};
}
TENON_ONNX(HannWindow) { return window_function(c, hann_window); }
TENON_ONNX(BlackmanWindow) { return window_function(c, blackman_window); }
// ONNX's Hamming window has the coefficients 25/46 and 21/46.
TENON_ONNX(HammingWindow) {
  return window_function(c, [](int64_t n, bool periodic, DType t) {
    return cast(add(mul(sub(hann_window(n, periodic, DType::f64), 0.5), 42.0 / 46), 25.0 / 46), t);
  });
}

TENON_ONNX(MelWeightMatrix) {
  const int64_t bins = c.whole(0), length = c.whole(1), rate = c.whole(2);
  const double low = item(c.input(3)), high = item(c.input(4));
  const int64_t type = c.node.integer("output_datatype", 1);
  if (type != 1 && type != 11 && type != 10 && type != 16)
    throw OnnxUnsupported(fmt::format("data type {} is not supported", type));
  if (bins < 0 || bins > 1 << 20 || length < 0 || length > 1 << 24 || rate <= 0)
    throw Error(fmt::format("{} mel bins of {} elements at a rate of {}", bins, length, rate));
  const int64_t rows = length / 2 + 1;
  auto mel = [](double hz) { return 2595 * std::log10(1 + hz / 700); };
  const double from = mel(low), step = (mel(high) - from) / static_cast<double>(bins + 2);
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + from) / 2595) - 1);
    const double at = std::floor(static_cast<double>(length + 1) * hz / static_cast<double>(rate));
    if (!(std::abs(at) < 0x1p40)) throw Error(fmt::format("a mel bin at {} Hz", hz));
    edge.push_back(static_cast<int64_t>(at));
  }
  Tensor y = zeros({rows, bins}, DType::f64);
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t lo = edge[static_cast<size_t>(i)], mid = edge[static_cast<size_t>(i + 1)],
                  hi = edge[static_cast<size_t>(i + 2)];
    auto put = [&](int64_t r, double v) { y.data<double>()[r * bins + i] = v; };
    if (mid == lo && mid >= 0 && mid < rows) put(mid, 1);
    for (int64_t j = std::max<int64_t>(lo, 0); mid > lo && j <= std::min(mid, rows - 1); ++j)
      put(j, static_cast<double>(j - lo) / static_cast<double>(mid - lo));
    for (int64_t j = std::max<int64_t>(mid, 0); j < std::min(hi, rows); ++j)
      put(j, static_cast<double>(hi - j) / static_cast<double>(hi - mid));
  }
  return {cast(y, type == 11 ? DType::f64 : type == 10 ? DType::f16 : type == 16 ? DType::bf16 : DType::f32)};
}

}  // namespace
}  // namespace tenon::formats
