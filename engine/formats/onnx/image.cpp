// ONNX operators on images: resizing and sampling.
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/index.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// How one axis is resized: for every output element, weights of some input elements.
struct Axis {
  int64_t in, out;
  double scale;  ///< output per input
  double roi_start = 0, roi_end = 1;
};
struct Style {
  std::string mode, place, nearest;
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// A size that a scale makes; throws Error where it is none.
int64_t size_of(double v) {
  if (!(v >= 0 && v < 0x1p40)) throw Error(fmt::format("an axis cannot be resized to {} elements", v));
  return static_cast<int64_t>(std::floor(v));
}

/// Where output element x lies in the input.
double raw_source_of(const Style& s, const Axis& a, double x) {
  const double in = static_cast<double>(a.in), out = a.scale * in;
  if (s.place == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (s.place == "asymmetric") return x / a.scale;
  if (s.place == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (s.place == "pytorch_half_pixel") return out == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
  if (s.place == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (s.place == "half_pixel_symmetric")
    return in / 2 * (1 - static_cast<double>(a.out) / out) + (x + 0.5) / a.scale - 0.5;
  if (s.place == "tf_crop_and_resize")
    return a.roi_start * (in - 1) +
           (out == 1 ? (a.roi_end - a.roi_start) * (in - 1) / 2 : x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1));
  throw Error(fmt::format("there is no coordinate_transformation_mode \"{}\"", s.place));
}

double source_of(const Style& s, const Axis& a, double x) {
  const double from = raw_source_of(s, a, x);
  if (!(std::abs(from) < 0x1p40)) throw Error(fmt::format("element {} of a resized axis lies at {}", x, from));
  return from;
}

int64_t nearest_of(const Style& s, double x) {
  const double low = std::floor(x), ratio = x - low;
  if (ratio == 0) return static_cast<int64_t>(low);
  bool up;
  if (s.nearest == "round_prefer_floor")
    up = ratio > 0.5;
  else if (s.nearest == "round_prefer_ceil")
    up = ratio >= 0.5;
  else if (s.nearest == "floor")
    up = false;
  else if (s.nearest == "ceil")
    up = true;
  else
    throw Error(fmt::format("there is no nearest_mode \"{}\"", s.nearest));
  return static_cast<int64_t>(low) + (up ? 1 : 0);
}

/// Weights of the elements floor(x) + first + 0, 1, ...
std::vector<double> weights_of(const Style& s, double ratio, double scale, int64_t& first) {
  std::vector<double> w;
  const bool linear = s.mode == "linear";
  const double shrink = s.antialias ? std::min(scale, 1.0) : 1;
  need_work(2 / shrink);
  const int64_t half = static_cast<int64_t>(std::ceil((linear ? 1 : 2) / shrink));
  first = 1 - half;
  double total = 0;
  for (int64_t i = first; i < first + 2 * half; ++i) {
    const double d = (static_cast<double>(i) - ratio) * shrink;
    w.push_back(linear ? std::max(0.0, 1 - std::abs(d)) : cubic(d, s.cubic_a));
    total += w.back();
  }
  if (s.antialias)
    for (double& v : w) v /= total;
  return w;
}

Tensor along(const Tensor& x, int axis, const Tensor& weight) {
  Shape s = Shape::filled(x.ndim(), 1);
  s[axis] = weight.numel();
  return reshape(cast(weight, x.dtype()), s);
}

Tensor resize_axis(const Tensor& x, int axis, const Axis& a, const Style& s) {
  if (a.in == 0 && a.out > 0) throw Error("an axis without elements cannot be resized");
  if (a.out == 0) return narrow(x, axis, 0, 0);
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i, 0, a.in - 1); };
  if (s.mode == "nearest") {
    Tensor at = empty({a.out}, DType::i64);
    for (int64_t i = 0; i < a.out; ++i)
      at.data<int64_t>()[i] = clamp(nearest_of(s, source_of(s, a, static_cast<double>(i))));
    return index_select(x, axis, at);
  }
  std::vector<Tensor> at, weight;
  need_work(static_cast<double>(a.out) * (s.antialias ? 2 / std::min(a.scale, 1.0) : 1));
  for (int64_t i = 0; i < a.out; ++i) {
    const double from = source_of(s, a, static_cast<double>(i)), low = std::floor(from);
    int64_t first = 0;
    std::vector<double> w = weights_of(s, from - low, a.scale, first);
    if (w.size() > 1 << 20) throw Error(fmt::format("a scale of {}", a.scale));
    double inside = 0;
    for (size_t k = 0; k < w.size(); ++k) {
      const int64_t p = static_cast<int64_t>(low) + first + static_cast<int64_t>(k);
      if (s.exclude_outside && (p < 0 || p >= a.in)) w[k] = 0;
      inside += w[k];
      if (at.size() <= k) {
        at.push_back(zeros({a.out}, DType::i64));
        weight.push_back(zeros({a.out}, DType::f64));
      }
      at[k].data<int64_t>()[i] = clamp(p);
    }
    for (size_t k = 0; k < w.size(); ++k) weight[k].data<double>()[i] = s.exclude_outside ? w[k] / inside : w[k];
  }
  Tensor y = mul(index_select(x, axis, at[0]), along(x, axis, weight[0]));
  for (size_t k = 1; k < at.size(); ++k) y = add(y, mul(index_select(x, axis, at[k]), along(x, axis, weight[k])));
  return y;
}

Tensor resized(const Tensor& x, const std::vector<int>& axes, const std::vector<Axis>& how, const Style& s) {
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic")
    throw Error(fmt::format("there is no mode \"{}\"", s.mode));
  Tensor y = is_floating(x.dtype()) || s.mode == "nearest" ? x : cast(x, DType::f32);
  const bool crops = s.place == "tf_crop_and_resize";
  for (size_t k = 0; k < axes.size(); ++k) {
    if (how[k].out < 0 || how[k].out > (int64_t{1} << 31) || !(how[k].scale > 0))
      throw Error(fmt::format("an axis of {} resized to {}", how[k].in, how[k].out));
    if (crops || how[k].scale != 1 || how[k].in != how[k].out) y = resize_axis(y, axes[k], how[k], s);
  }
  for (size_t k = 0; crops && k < axes.size(); ++k) {
    Tensor outside = zeros({how[k].out}, DType::boolean);
    for (int64_t i = 0; i < how[k].out; ++i) {
      const double from = source_of(s, how[k], static_cast<double>(i));
      outside.data<bool>()[i] = from < 0 || from > static_cast<double>(how[k].in - 1);
    }
    Shape row = Shape::filled(y.ndim(), 1);
    row[axes[k]] = how[k].out;
    y = where(reshape(outside, row), scalar(s.extrapolation, y.dtype()), y);
  }
  return cast(y, x.dtype());
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> v;
  const Tensor d = contiguous(cast(t, DType::f64));
  for (int64_t i = 0; i < d.numel(); ++i) v.push_back(d.data<double>()[i]);
  return v;
}

Tensor scaled(const OnnxCall& c, const std::vector<double>& scales, Style s) {
  const Tensor& x = c.input(0);
  if (static_cast<int>(scales.size()) != x.ndim())
    throw Error(fmt::format("{} scales for {} axes", scales.size(), x.ndim()));
  std::vector<int> axes;
  std::vector<Axis> how;
  for (int i = 0; i < x.ndim(); ++i) {
    const double scale = scales[static_cast<size_t>(i)];
    axes.push_back(i);
    how.push_back({x.size(i), size_of(scale * static_cast<double>(x.size(i))), scale});
  }
  return resized(x, axes, how, s);
}
TENON_ONNX(Upsample) {
  std::vector<double> scales;
  if (c.opset >= 9) {
    scales = numbers(c.input(1));
  } else {
    const auto* v = c.node.find("scales");
    if (const auto* list = v ? std::get_if<std::vector<double>>(v) : nullptr)
      scales = *list;
    else
      throw Error("it has no scales");
  }
  return {scaled(c, scales, {c.node.text("mode", "nearest"), "asymmetric", "floor"})};
}

TENON_ONNX(Resize) {
  const Tensor& x = c.input(0);
  if (c.opset < 11) return {scaled(c, numbers(c.input(1)), {c.node.text("mode", "nearest"), "asymmetric", "floor"})};
  Style s;
  s.mode = c.node.text("mode", "nearest");
  s.place = c.node.text("coordinate_transformation_mode", "half_pixel");
  s.nearest = c.node.text("nearest_mode", "round_prefer_floor");
  s.cubic_a = c.node.number("cubic_coeff_a", -0.75);
  s.extrapolation = c.node.number("extrapolation_value", 0);
  s.exclude_outside = c.node.integer("exclude_outside", 0);
  s.antialias = c.node.integer("antialias", 0);
  std::vector<int> axes;
  for (int64_t a : c.node.integers("axes")) axes.push_back(wrap_axis(a, x.ndim()));
  if (!c.node.find("axes"))
    for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  const size_t n = axes.size();
  const std::vector<double> roi = c.has(1) ? numbers(c.in[1]) : std::vector<double>();
  const std::vector<double> scales = c.has(2) ? numbers(c.in[2]) : std::vector<double>();
  std::vector<int64_t> sizes = c.has(3) ? c.list(3, "") : std::vector<int64_t>();
  if (scales.empty() == sizes.empty()) throw Error("it needs either scales or sizes");
  if ((scales.empty() ? sizes.size() : scales.size()) != n)
    throw Error(fmt::format("{} scales or sizes for {} axes", scales.empty() ? sizes.size() : scales.size(), n));
  const std::string policy = c.node.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (size_t k = 0; k < n && policy != "stretch" && !sizes.empty(); ++k) {
    const double f = static_cast<double>(sizes[k]) / static_cast<double>(x.size(axes[k]));
    common = k == 0 ? f : policy == "not_larger" ? std::min(common, f) : std::max(common, f);
  }
  std::vector<Axis> how;
  for (size_t k = 0; k < n; ++k) {
    const double in = static_cast<double>(x.size(axes[k]));
    Axis a{x.size(axes[k]), 0, 1};
    if (!scales.empty()) {
      a.scale = scales[k];
      a.out = size_of(a.scale * in);
    } else if (policy != "stretch") {
      a.scale = common;
      a.out = size_of(common * in + 0.5);
    } else {
      a.out = sizes[k];
      a.scale = in > 0 ? static_cast<double>(sizes[k]) / in : 1;
    }
    if (s.place == "tf_crop_and_resize") {
      if (roi.size() != 2 * n) throw Error(fmt::format("a region of {} numbers for {} axes", roi.size(), n));
      a.roi_start = roi[k];
      a.roi_end = roi[k + n];
    }
    how.push_back(a);
  }
  return {resized(x, axes, how, s)};
}

// Sampling at given places: the rules of PyTorch's grid_sample.
struct Grid {
  int64_t size;
  bool corners;
  std::string padding;
  double place(double v) const {
    return corners ? (v + 1) / 2 * static_cast<double>(size - 1) : ((v + 1) * static_cast<double>(size) - 1) / 2;
  }
  double inside(double x) const {
    if (padding == "zeros") return x;
    if (padding == "reflection") {
      const double low = corners ? 0 : -0.5, span = corners ? static_cast<double>(size - 1) : static_cast<double>(size);
      if (span == 0) return 0;
      const double d = std::abs(x - low), extra = std::fmod(d, span);
      x = static_cast<int64_t>(std::floor(d / span)) % 2 == 0 ? extra + low : span - extra + low;
    }
    return std::clamp(x, 0.0, static_cast<double>(size - 1));
  }
};
struct Tap {
  int64_t at;
  double weight;
};

TENON_ONNX(GridSample) {
  const Tensor x = contiguous(cast(c.input(0), DType::f64)), grid = contiguous(cast(c.input(1), DType::f64));
  const int s = x.ndim() - 2;
  if (s < 1 || grid.ndim() != x.ndim() || grid.size(-1) != s || grid.size(0) != x.size(0))
    throw Error(
        fmt::format("a grid of size {} does not fit an input of size {}", to_string(grid.size()), to_string(x.size())));
  std::string mode = c.node.text("mode", c.opset < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const std::string padding = c.node.text("padding_mode", "zeros");
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    throw Error(fmt::format("there is no mode \"{}\"", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    throw Error(fmt::format("there is no padding_mode \"{}\"", padding));
  Shape size{x.size(0), x.size(1)};
  int64_t points = 1, plane = 1;
  std::vector<Grid> axis;
  for (int i = 0; i < s; ++i) {
    size.push_back(grid.size(i + 1));
    points *= grid.size(i + 1);
    plane *= x.size(i + 2);
    axis.push_back({x.size(i + 2), c.node.integer("align_corners", 0) != 0, padding});
    if (x.size(i + 2) == 0) throw Error("an input without elements cannot be sampled");
  }
  Tensor y = zeros(size, DType::f64);
  const int64_t channels = x.size(1);
  for (int64_t row = 0; row < x.size(0) * points; ++row) {
    const int64_t n = row / points, p = row % points;
    std::vector<Tap> all{{0, 1}};
    for (int i = 0; i < s; ++i) {
      const Grid& g = axis[static_cast<size_t>(i)];
      const double raw =
          g.place(grid.data<double>()[row * s + (s - 1 - i)]);  // the last number of a point belongs to the first axis
      std::vector<Tap> taps;
      if (!std::isfinite(raw) || std::abs(raw) > 0x1p40) {
        all.clear();
        break;
      }
      if (mode == "cubic") {
        const double low = std::floor(raw);
        for (int k = -1; k < 3; ++k)
          taps.push_back({static_cast<int64_t>(g.inside(low + k)), cubic(raw - low - k, -0.75)});
      } else if (mode == "linear") {
        const double v = g.inside(raw), low = std::floor(v);
        taps = {{static_cast<int64_t>(low), 1 - (v - low)}, {static_cast<int64_t>(low) + 1, v - low}};
      } else {
        taps = {{static_cast<int64_t>(std::nearbyint(g.inside(raw))), 1}};
      }
      std::vector<Tap> next;
      for (const Tap& a : all)
        for (const Tap& b : taps)
          if (b.at >= 0 && b.at < g.size) next.push_back({a.at * g.size + b.at, a.weight * b.weight});
      all = std::move(next);
    }
    for (int64_t ch = 0; ch < channels; ++ch) {
      double v = 0;
      for (const Tap& t : all) v += t.weight * x.data<double>()[(n * channels + ch) * plane + t.at];
      y.data<double>()[(n * channels + ch) * points + p] = v;
    }
  }
  return {cast(y, c.input(0).dtype())};
}

// A convolution whose every tap is moved by an offset of its own, between the pixels by bilinear weights; outside is 0.
// Dai et al. (2017).
TENON_ONNX(DeformConv) {
  const Tensor x = contiguous(cast(c.input(0), DType::f64)), w = contiguous(cast(c.input(1), DType::f64)),
               offset = contiguous(cast(c.input(2), DType::f64));
  if (x.ndim() != 4 || w.ndim() != 4) throw OnnxUnsupported("other than two spatial axes are not supported");
  const int64_t n = x.size(0), ic = x.size(1), h = x.size(2), wide = x.size(3), oc = w.size(0), kh = w.size(2),
                kw = w.size(3), taps = kh * kw;
  const int64_t groups = c.node.integer("group", 1), parts = c.node.integer("offset_group", 1);
  const std::vector<int64_t> dil = c.node.integers("dilations", {1, 1}), stride = c.node.integers("strides", {1, 1}),
                             pads = c.node.integers("pads", {0, 0, 0, 0});
  if (groups < 1 || parts < 1 || ic != w.size(1) * groups || oc % groups || ic % parts || offset.ndim() != 4 ||
      offset.size(0) != n || offset.size(1) != parts * taps * 2 || dil.size() != 2 || stride.size() != 2 ||
      pads.size() != 4)
    throw Error(fmt::format("weights of size {} and offsets of size {} do not fit an input of size {}",
                            to_string(w.size()), to_string(offset.size()), to_string(x.size())));
  const int64_t oh = offset.size(2), ow = offset.size(3), out = oh * ow;
  const Tensor mask = c.has(4) ? contiguous(cast(c.in[4], DType::f64)) : Tensor();
  if (mask && !(mask.size() == Shape{n, parts * taps, oh, ow}))
    throw Error(fmt::format("a mask of size {} does not fit offsets of size {}", to_string(mask.size()),
                            to_string(offset.size())));
  // [n, ic, taps, out]: what the taps see.
  Tensor seen = empty({n, ic, taps, out}, DType::f64);
  parallel_for(n * ic, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t b = plane / ic, part = plane % ic / (ic / parts);
      const double* image = x.data<double>() + plane * h * wide;
      auto pixel = [&](int64_t i, int64_t j) {
        return i >= 0 && i < h && j >= 0 && j < wide ? image[i * wide + j] : 0.0;
      };
      for (int64_t k = 0; k < taps; ++k)
        for (int64_t p = 0; p < out; ++p) {
          const double* moved = offset.data<double>() + ((b * parts + part) * taps + k) * 2 * out + p;
          const double y = static_cast<double>(p / ow * stride[0] - pads[0] + k / kw * dil[0]) + moved[0],
                       v = static_cast<double>(p % ow * stride[1] - pads[1] + k % kw * dil[1]) + moved[out];
          double value = 0;
          if (y > -1 && v > -1 && y < static_cast<double>(h) && v < static_cast<double>(wide)) {
            const auto i = static_cast<int64_t>(std::floor(y)), j = static_cast<int64_t>(std::floor(v));
            const double a = y - std::floor(y), e = v - std::floor(v);
            value = (1 - a) * ((1 - e) * pixel(i, j) + e * pixel(i, j + 1)) +
                    a * ((1 - e) * pixel(i + 1, j) + e * pixel(i + 1, j + 1));
          }
          if (mask) value *= mask.data<double>()[((b * parts + part) * taps + k) * out + p];
          seen.data<double>()[(plane * taps + k) * out + p] = value;
        }
    }
  });
  const int64_t depth = ic / groups * taps;
  const Tensor kernels =
      expand(unsqueeze(reshape(w, {groups, oc / groups, depth}), 0), {n, groups, oc / groups, depth});
  Tensor y = reshape(matmul(kernels, reshape(seen, {n, groups, depth, out})), {n, oc, oh, ow});
  if (c.has(3)) y = add(y, reshape(cast(c.in[3], DType::f64), {oc, 1, 1}));
  return {cast(y, c.input(0).dtype())};
}

TENON_ONNX(AffineGrid) {
  const Tensor theta = c.input(0);
  const std::vector<int64_t> size = c.list(1, "");
  const int s = static_cast<int>(size.size()) - 2;
  if (s < 2 || s > 3 || theta.ndim() != 3 || theta.size(1) != s || theta.size(2) != s + 1 || theta.size(0) != size[0])
    throw Error(fmt::format("matrices of size {} do not fit", to_string(theta.size())));
  const bool corners = c.node.integer("align_corners", 0);
  int64_t points = 1;
  Shape result{size[0]};
  for (int i = 0; i < s; ++i) {
    if (size[static_cast<size_t>(i) + 2] < 1) throw Error("a size below 1");
    points *= size[static_cast<size_t>(i) + 2];
    result.push_back(size[static_cast<size_t>(i) + 2]);
  }
  result.push_back(s);
  Tensor base = empty({points, s + 1}, DType::f64);
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    base.data<double>()[p * (s + 1) + s] = 1;
    for (int i = s - 1; i >= 0; --i) {
      const int64_t d = size[static_cast<size_t>(i) + 2], k = rest % d;
      rest /= d;
      const double n = static_cast<double>(d);
      base.data<double>()[p * (s + 1) + (s - 1 - i)] =
          corners ? (d == 1 ? 0 : 2 * static_cast<double>(k) / (n - 1) - 1) : (2 * static_cast<double>(k) + 1) / n - 1;
    }
  }
  return {cast(reshape(matmul(base, cast(theta, DType::f64), false, true), result), theta.dtype())};
}

}  // namespace
}  // namespace tenon::formats
