#include "engine/formats/quant_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

void need_finite(const Tensor& w) {
  const float* x = w.data<float>();
  if (!std::all_of(x, x + w.numel(), [](float v) { return std::isfinite(v); }))
    throw Error("a weight that is not finite cannot be quantized", "Export a state from before it became so.");
}

/// So many elements, `stride` apart.
struct Elements {
  const float* x;
  int64_t count, stride;
  float at(int64_t i) const { return x[i * stride]; }
};

double squared_error(const Elements& e, const QuantGrid& g) {
  double sum = 0;
  for (int64_t i = 0; i < e.count; ++i) {
    const double d = static_cast<double>(e.at(i)) - g.value(g.quantized(e.at(i)));
    sum += d * d;
  }
  return sum;
}

/// Outliers may be worth cutting for the sake of all others.
QuantGrid best_grid(const Elements& e, int bits) {
  constexpr int kSteps = 20;
  constexpr double kNarrowest = 0.5;
  double from = 0, to = 0, least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < e.count; ++i) from = std::min<double>(from, e.at(i)), to = std::max<double>(to, e.at(i));
  QuantGrid best;
  for (int k = 0; k <= kSteps; ++k) {
    const double share = 1 - (1 - kNarrowest) * k / kSteps;
    const QuantGrid g = asymmetric_grid(from * share, to * share, bits);
    const double error = squared_error(e, g);
    if (error < least) best = g, least = error;
  }
  return best;
}

}  // namespace

int32_t QuantGrid::quantized(float x) const {
  const float q = std::nearbyint(x / scale) + static_cast<float>(zero);
  return static_cast<int32_t>(std::clamp(q, static_cast<float>(lo), static_cast<float>(hi)));
}

QuantGrid asymmetric_grid(double from, double to, int bits) {
  QuantGrid g;
  g.lo = 0, g.hi = (1 << bits) - 1;
  from = std::min(from, 0.0), to = std::max(to, 0.0);
  const auto scale = static_cast<float>((to - from) / g.hi);
  if (scale < std::numeric_limits<float>::min()) return g;  // nothing but 0, or what no float divides by
  g.scale = scale;
  g.zero = static_cast<int32_t>(std::clamp(std::nearbyint(-from / scale), 0.0, static_cast<double>(g.hi)));
  return g;
}

QuantGrid symmetric_grid(double most, int bits) {
  QuantGrid g;
  g.hi = (1 << (bits - 1)) - 1, g.lo = -g.hi;
  const auto scale = static_cast<float>(most / g.hi);
  if (scale >= std::numeric_limits<float>::min()) g.scale = scale;
  return g;
}

QuantizedWeight quantize_channels(const Tensor& weight, int axis, int bits) {
  const Tensor w = contiguous(weight);
  need_finite(w);
  const int64_t channels = axis < 0 ? 1 : w.size(axis);
  int64_t inner = 1;  // elements that lie together in one slice
  for (int i = w.ndim() - 1; i > axis; --i) inner *= w.size(i);
  QuantizedWeight q{empty(w.size(), DType::i8), empty(axis < 0 ? Shape() : Shape{channels}), {}};
  const float* x = w.data<float>();
  auto* to = q.values.data<int8_t>();
  std::vector<double> most(static_cast<size_t>(channels));
  auto channel = [&](int64_t i) { return static_cast<size_t>(i / inner % channels); };
  for (int64_t i = 0; i < w.numel(); ++i) most[channel(i)] = std::max<double>(most[channel(i)], std::abs(x[i]));
  std::vector<QuantGrid> grids;
  for (int64_t c = 0; c < channels; ++c) {
    grids.push_back(symmetric_grid(most[static_cast<size_t>(c)], bits));
    q.scale.data<float>()[c] = grids.back().scale;
  }
  for (int64_t i = 0; i < w.numel(); ++i) to[i] = static_cast<int8_t>(grids[channel(i)].quantized(x[i]));
  return q;
}

QuantizedWeight quantize_groups(const Tensor& weight, int axis, int64_t group) {
  const Tensor w = contiguous(weight);
  need_finite(w);
  const int64_t length = w.size(axis), lines = w.size(1 - axis), groups = (length + group - 1) / group;
  const int64_t along = axis == 0 ? lines : 1, across = axis == 0 ? 1 : length;
  const Shape grid_shape = axis == 0 ? Shape{groups, lines} : Shape{lines, groups};
  QuantizedWeight q{empty(w.size(), DType::u8), empty(grid_shape), empty(grid_shape, DType::u8)};
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < groups; ++k) {
      const int64_t first = line * across + k * group * along;
      const Elements e{w.data<float>() + first, std::min(group, length - k * group), along};
      const QuantGrid g = best_grid(e, 4);
      const int64_t at = axis == 0 ? k * lines + line : line * groups + k;
      q.scale.data<float>()[at] = g.scale;
      q.zero.data<uint8_t>()[at] = static_cast<uint8_t>(g.zero);
      for (int64_t i = 0; i < e.count; ++i)
        q.values.data<uint8_t>()[first + i * along] = static_cast<uint8_t>(g.quantized(e.at(i)));
    }
  return q;
}

}  // namespace tenon::formats
