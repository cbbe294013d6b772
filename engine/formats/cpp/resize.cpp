// The C++ kernel that makes pictures larger and smaller: where each element comes from is worked out here.
#include <algorithm>
#include <cmath>

#include "engine/formats/cpp/kernel.h"

namespace tenon::formats {
namespace {

/// Elements of an axis that make one of the resized axis, and what each counts.
struct Taps {
  std::vector<int64_t> at;
  std::vector<double> weight;
};

double resized_from(const std::string& place, double x, double scale, int64_t in, int64_t out) {
  if (place == "asymmetric") return x / scale;
  if (place == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (place == "pytorch_half_pixel") return out == 1 ? -0.5 : (x + 0.5) / scale - 0.5;
  if (place == "align_corners") return out == 1 ? 0 : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  throw OnnxUnsupported("its coordinates are " + place);
}

double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps taps_of_element(const OnnxNode& n, double from, int64_t in) {
  const std::string mode = n.text("mode", "nearest"), nearest = n.text("nearest_mode", "round_prefer_floor");
  const double low = std::floor(from);
  Taps t;
  auto take = [&](double at, double weight) {
    t.at.push_back(std::clamp<int64_t>(static_cast<int64_t>(at), 0, in - 1));
    t.weight.push_back(weight);
  };
  if (mode == "nearest") {
    const double ratio = from - low;
    const bool up = nearest == "ceil"                ? ratio > 0
                    : nearest == "round_prefer_ceil" ? ratio >= 0.5
                                                     : nearest == "round_prefer_floor" && ratio > 0.5;
    take(low + (up ? 1 : 0), 1);
  } else if (mode == "linear") {
    for (int k = 0; k < 2; ++k) take(low + k, 1 - std::abs(from - low - k));
  } else if (mode == "cubic") {
    for (int k = -1; k < 3; ++k) take(low + k, cubic_weight(from - low - k, n.number("cubic_coeff_a", -0.75)));
  } else {
    throw OnnxUnsupported("its mode is " + mode);
  }
  return t;
}

TENON_CPP(Resize) {
  c.need_f32();
  const OnnxNode& n = c.node();
  const Shape &x = c.shape(0), &y = c.out().shape;
  if (c.opset() < 11 || n.integer("antialias", 0) || n.integer("exclude_outside", 0) || n.find("axes"))
    throw OnnxUnsupported("it is one of those that pictures are rarely resized with");
  const bool scaled = c.has(2) && c.shape(2).product() > 0;
  if (scaled && !c.in(2).constant) throw OnnxUnsupported("its scale is known only at a run");
  const Layout from = Layout::contiguous(x);
  std::string tables, loops, sums, index, weights;
  for (int axis = 0; axis < x.n; ++axis) {
    loops += fmt::format("for (int i{0} = 0; i{0} < {1}; ++i{0}) ", axis, y[axis]);
    const double scale = scaled ? static_cast<double>(c.in(2).constant.data<float>()[axis])
                                : static_cast<double>(y[axis]) / static_cast<double>(x[axis]);
    index += axis ? " + " : "";
    if (x[axis] == y[axis] && scale == 1) {
      index += fmt::format("i{} * {}", axis, from.stride[axis]);
      continue;
    }
    std::string at, weight;
    size_t taps = 0;
    for (int64_t i = 0; i < y[axis]; ++i) {
      const Taps t = taps_of_element(n,
                                     resized_from(n.text("coordinate_transformation_mode", "half_pixel"),
                                                  static_cast<double>(i), scale, x[axis], y[axis]),
                                     x[axis]);
      taps = t.at.size();
      for (size_t k = 0; k < taps; ++k) {
        at += fmt::format("{}, ", t.at[k] * from.stride[axis]);
        weight += cpp_number(t.weight[k], DType::f32) + ", ";
      }
    }
    tables += fmt::format("static const int at{}[] = {{{}}};\n", axis, at);
    if (taps == 1) {
      index += fmt::format("at{0}[i{0}]", axis);
      continue;
    }
    tables += fmt::format("static const float w{}[] = {{{}}};\n", axis, weight);
    sums += fmt::format("for (int t{0} = 0; t{0} < {1}; ++t{0}) ", axis, taps);
    index += fmt::format("at{0}[i{0} * {1} + t{0}]", axis, taps);
    weights += fmt::format(" * w{0}[i{0} * {1} + t{0}]", axis, taps);
  }
  std::string to;
  const Layout out = Layout::contiguous(y);
  for (int axis = 0; axis < y.n; ++axis) to += fmt::format("{}i{} * {}", axis ? " + " : "", axis, out.stride[axis]);
  return tables + loops + "{\nfloat sum = 0.0f;\n" + sums +
         fmt::format("sum += x0[{}]{};\ny[{}] = sum;\n}}\n", index, weights, to);
}

}  // namespace
}  // namespace tenon::formats
