// ONNX operators that make, lay out and cut tensors.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/index.h"
#include "engine/ops/join.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// Axes as an input since `input_since`, an attribute before.
std::vector<int64_t> axes_of(const OnnxCall& c, int64_t input_since, size_t input = 1) {
  return c.opset >= input_since ? c.list(input, "axes") : c.node.integers("axes");
}

TENON_ONNX(Shape) {
  const Shape& s = c.input(0).size();
  auto at = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + s.n : i, 0, s.n); };
  const int64_t first = at(c.node.integer("start", 0)), last = at(c.node.integer("end", s.n));
  return {integers(first < last ? std::vector<int64_t>(s.begin() + first, s.begin() + last) : std::vector<int64_t>())};
}
TENON_ONNX(Size) { return {scalar(static_cast<double>(c.input(0).numel()), DType::i64)}; }

TENON_ONNX(Constant) {
  for (const OnnxAttribute& a : c.node.attributes) {
    if (a.name == "value")
      if (const auto* t = std::get_if<Tensor>(&a.value)) return {*t};
    if (a.name == "value_int") return {scalar(static_cast<double>(c.node.integer(a.name, 0)), DType::i64)};
    if (a.name == "value_float") return {scalar(c.node.number(a.name, 0))};
    if (a.name == "value_ints") return {integers(c.node.integers(a.name))};
    if (const auto* v = std::get_if<std::vector<double>>(&a.value); v && a.name == "value_floats") {
      Tensor t = empty({static_cast<int64_t>(v->size())});
      std::transform(v->begin(), v->end(), t.data<float>(), [](double x) { return static_cast<float>(x); });
      return {t};
    }
    if (a.name == "value_string" || a.name == "value_strings") throw OnnxUnsupported("strings are not supported");
  }
  throw Error("it has no value");
}

TENON_ONNX(ConstantOfShape) {
  const auto* v = c.node.find("value");
  const Tensor* t = v ? std::get_if<Tensor>(v) : nullptr;
  if (t && t->numel() != 1) throw Error(fmt::format("its value has size {}; it is one number", to_string(t->size())));
  const std::vector<int64_t> to = c.list(0, "");
  if (std::any_of(to.begin(), to.end(), [](int64_t n) { return n < 0; })) throw Error("a size below 0");
  return {contiguous(expand(t ? reshape(*t, {}) : scalar(0), Shape(to)))};
}

TENON_ONNX(EyeLike) {
  const Tensor& x = c.input(0);
  if (x.ndim() != 2) throw Error(fmt::format("an input of size {}; it is a matrix", to_string(x.size())));
  DType t = x.dtype();
  if (c.node.find("dtype")) {
    const int64_t number = c.node.integer("dtype", 0);
    int k = 0;
    while (k < kDTypes && onnx_data_type(static_cast<DType>(k)) != number) ++k;
    if (k == kDTypes) throw OnnxUnsupported(fmt::format("data type {} is not supported", number));
    t = static_cast<DType>(k);
  }
  const int64_t shift = c.node.integer("k", 0);
  return {cast(eq(add(unsqueeze(arange(x.size(0)), 1), static_cast<double>(shift)), arange(x.size(1))), t)};
}

TENON_ONNX(Range) {
  const Tensor &start = c.input(0), &limit = c.input(1), &step = c.input(2);
  const double a = item(start), b = item(limit), d = item(step);
  const double count = d == 0 ? NAN : std::max(0.0, std::ceil((b - a) / d));
  if (!(count < 0x1p40)) throw Error(fmt::format("from {} to {} in steps of {}", a, b, d));
  const bool whole = !is_floating(start.dtype());
  const DType t = whole ? DType::i64 : DType::f64;
  return {cast(add(mul(arange(static_cast<int64_t>(count), t), scalar(d, t)), scalar(a, t)), start.dtype())};
}

TENON_ONNX(Reshape) {
  std::vector<int64_t> to = c.opset >= 5 ? c.list(1, "shape") : c.node.integers("shape");
  if (!c.node.integer("allowzero", 0))
    for (size_t i = 0; i < to.size(); ++i)
      if (to[i] == 0) {
        if (static_cast<int>(i) >= c.input(0).ndim()) throw Error("size 0 copies an axis that the input does not have");
        to[i] = c.input(0).size(static_cast<int>(i));
      }
  return {reshape(c.input(0), Shape(to))};
}

TENON_ONNX(Flatten) {
  const Shape& s = c.input(0).size();
  int64_t axis = c.node.integer("axis", 1), rows = 1, cols = 1;
  if (axis < -s.n || axis > s.n) throw Error(fmt::format("axis {} is out of range for {} axes", axis, s.n));
  for (int i = 0; i < s.n; ++i) (i < (axis < 0 ? axis + s.n : axis) ? rows : cols) *= s[i];
  return {reshape(c.input(0), {rows, cols})};
}

TENON_ONNX(Transpose) {
  std::vector<int64_t> perm = c.node.integers("perm");
  if (!c.node.find("perm"))
    for (int i = c.input(0).ndim() - 1; i >= 0; --i) perm.push_back(i);
  return {permute(c.input(0), Dims(perm))};
}

TENON_ONNX(Squeeze) {
  const std::vector<int64_t> axes = axes_of(c, 13);
  Tensor y = c.input(0);
  const int n = y.ndim();
  std::vector<bool> drop(static_cast<size_t>(n));
  if (axes.empty())
    for (int i = 0; i < n; ++i) drop[static_cast<size_t>(i)] = y.size(i) == 1;
  for (int64_t a : axes) {
    const int axis = wrap_axis(a, n);
    if (axis >= n || y.size(axis) != 1)
      throw Error(fmt::format("axis {} of {} has not size 1", axis, to_string(y.size())));
    drop[static_cast<size_t>(axis)] = true;
  }
  for (int i = n - 1; i >= 0; --i)
    if (drop[static_cast<size_t>(i)]) y = squeeze(y, i);
  return {y};
}
TENON_ONNX(Unsqueeze) {
  std::vector<int64_t> axes = axes_of(c, 13);
  const int n = c.input(0).ndim() + static_cast<int>(axes.size());
  for (int64_t& a : axes) a = wrap_axis(a, n);
  std::sort(axes.begin(), axes.end());
  Tensor y = c.input(0);
  for (int64_t a : axes) y = unsqueeze(y, static_cast<int>(a));
  return {y};
}
TENON_ONNX(Expand) { return {expand(c.input(0), broadcast_shape(c.input(0).size(), Shape(c.list(1, ""))))}; }

TENON_ONNX(Slice) {
  const bool inputs = c.opset >= 10;
  const std::vector<int64_t> starts = inputs ? c.list(1, "") : c.node.integers("starts"),
                             ends = inputs ? c.list(2, "") : c.node.integers("ends"), axes = axes_of(c, 10, 3),
                             steps = inputs ? c.list(4, "") : std::vector<int64_t>();
  Tensor y = c.input(0);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (i >= ends.size() || (!axes.empty() && i >= axes.size()) || (!steps.empty() && i >= steps.size()))
      throw Error("fewer ends, axes or steps than starts");
    const int axis = wrap_axis(axes.empty() ? static_cast<int64_t>(i) : axes[i], y.ndim());
    const int64_t n = y.size(axis), step = steps.empty() ? 1 : steps[i];
    if (step == 0) throw Error("a step of 0");
    // NumPy's clamping; an end before the beginning is only reachable backwards, where -1 stands for it.
    auto at = [&](int64_t v) { return v < 0 ? (v < -n ? -1 : v + n) : v; };
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const int64_t first = std::clamp(at(starts[i]), low, high), last = std::clamp(at(ends[i]), low, high);
    const int64_t count = step > 0 ? (last > first ? (last - first - 1) / step + 1 : 0)
                                   : (first > last ? (first - last - 1) / -step + 1 : 0);
    if (count == 0)
      y = narrow(y, axis, 0, 0);
    else if (step > 0)
      y = slice(y, axis, first, last, step);
    else
      y = slice(y, axis, first, last < 0 ? -n - 1 : last, step);
  }
  return {y};
}

/// Sizes of the parts of an axis of n elements.
std::vector<int64_t> parts_of(int64_t n, int64_t count) {
  need_work(static_cast<double>(count));
  const int64_t size = (n + count - 1) / count;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(std::clamp<int64_t>(n - i * size, 0, size));
  return out;
}
TENON_ONNX(Split) {
  const Tensor& x = c.input(0);
  const int axis = wrap_axis(c.node.integer("axis", 0), x.ndim());
  std::vector<int64_t> sizes = c.opset >= 13              ? c.list(1, "")
                               : c.opset == 1 && c.has(1) ? c.list(1, "split")
                                                          : c.node.integers("split");
  if (sizes.empty() && !(c.opset >= 13 && c.has(1)))
    sizes = parts_of(x.size(axis),
                     std::max<int64_t>(1, c.node.integer("num_outputs", static_cast<int64_t>(c.node.outputs.size()))));
  return split(x, sizes, axis);
}

/// Which element of an axis of n each place of a padded axis takes.
int64_t mirrored(int64_t i, int64_t n, const std::string& mode) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "wrap") return ((i % n) + n) % n;
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1), k = ((i % period) + period) % period;
  return k < n ? k : period - k;
}
TENON_ONNX(Pad) {
  const std::string mode = c.node.text("mode", "constant");
  const std::vector<int64_t> pads = c.opset >= 11 ? c.list(1, "") : c.node.integers(c.opset >= 2 ? "pads" : "paddings");
  Tensor y = c.input(0);
  std::vector<int64_t> axes = c.opset >= 18 ? c.list(3, "") : std::vector<int64_t>();
  if (!(c.opset >= 18 && c.has(3)))
    for (int i = 0; i < y.ndim(); ++i) axes.push_back(i);
  if (pads.size() != 2 * axes.size()) throw Error(fmt::format("{} paddings for {} axes", pads.size(), axes.size()));
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    throw Error(fmt::format("there is no mode \"{}\"", mode));
  const Tensor value = c.opset < 11 ? scalar(c.node.number("value", 0), y.dtype())
                       : c.has(2)   ? reshape(c.in[2], {})
                                    : scalar(0, y.dtype());
  for (size_t k = 0; k < axes.size(); ++k) {
    const int axis = wrap_axis(axes[k], y.ndim());
    const int64_t before = pads[k], after = pads[k + axes.size()], n = y.size(axis);
    if (before > (int64_t{1} << 40) || after > (int64_t{1} << 40) || before + after + n < 0)
      throw Error(fmt::format("paddings of {} and {} on an axis of {}", before, after, n));
    if (mode != "constant" && (before > 0 || after > 0)) {
      if (n == 0) throw Error("an axis without elements cannot be continued");
      std::vector<int64_t> from;
      need_work(static_cast<double>(before) + static_cast<double>(n) + static_cast<double>(after));
      for (int64_t i = -before; i < n + after; ++i) from.push_back(mirrored(i, n, mode));
      y = index_select(y, axis, integers(from));
      continue;
    }
    const int64_t cut_front = std::min(n, std::max<int64_t>(0, -before)),
                  cut_back = std::min(n - cut_front, std::max<int64_t>(0, -after));
    y = narrow(y, axis, cut_front, n - cut_front - cut_back);
    std::vector<Tensor> parts;
    auto extra = [&](int64_t count) {
      Shape s = y.size();
      s[axis] = count;
      if (count > 0) parts.push_back(expand(value, s));
    };
    extra(before);
    parts.push_back(y);
    extra(after);
    if (parts.size() > 1) y = cat(parts, axis);
  }
  return {y};
}

TENON_ONNX(DepthToSpace) {
  const Tensor& x = c.input(0);
  const int64_t b = c.node.integer("blocksize", 0);
  if (x.ndim() != 4 || b < 1 || b > 1 << 30 || x.size(1) % (b * b))
    throw Error(fmt::format("blocks of {} do not fit size {}", b, to_string(x.size())));
  const int64_t n = x.size(0), d = x.size(1) / (b * b), h = x.size(2), w = x.size(3);
  const Tensor y = c.node.text("mode", "DCR") == "DCR" ? permute(reshape(x, {n, b, b, d, h, w}), {0, 3, 4, 1, 5, 2})
                                                       : permute(reshape(x, {n, d, b, b, h, w}), {0, 1, 4, 2, 5, 3});
  return {reshape(y, {n, d, h * b, w * b})};
}
TENON_ONNX(SpaceToDepth) {
  const Tensor& x = c.input(0);
  const int64_t b = c.node.integer("blocksize", 0);
  if (x.ndim() != 4 || b < 1 || x.size(2) % b || x.size(3) % b)
    throw Error(fmt::format("blocks of {} do not fit size {}", b, to_string(x.size())));
  const int64_t n = x.size(0), d = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
  return {reshape(permute(reshape(x, {n, d, h, b, w, b}), {0, 3, 5, 1, 2, 4}), {n, d * b * b, h, w})};
}

TENON_ONNX(CenterCropPad) {
  Tensor y = c.input(0);
  const std::vector<int64_t> target = c.list(1, "");
  std::vector<int64_t> axes = c.node.integers("axes");
  if (!c.node.find("axes"))
    for (int i = 0; i < y.ndim(); ++i) axes.push_back(i);
  if (axes.size() != target.size()) throw Error(fmt::format("{} sizes for {} axes", target.size(), axes.size()));
  for (size_t k = 0; k < axes.size(); ++k) {
    const int axis = wrap_axis(axes[k], y.ndim());
    const int64_t n = y.size(axis), want = target[k];
    if (want < 0) throw Error(fmt::format("a size of {}", want));
    if (want <= n) {
      y = narrow(y, axis, (n - want) / 2, want);
    } else {
      Shape front = y.size(), back = y.size();
      front[axis] = (want - n) / 2;
      back[axis] = want - n - front[axis];
      y = cat({zeros(front, y.dtype()), y, zeros(back, y.dtype())}, axis);
    }
  }
  return {y};
}

}  // namespace
}  // namespace tenon::formats
