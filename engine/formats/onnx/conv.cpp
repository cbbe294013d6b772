// ONNX's convolutions and pools, of one to three spatial axes.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/operator.h"
#include "engine/formats/onnx/windows.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/gather.h"
#include "engine/ops/index.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/pool.h"
#include "engine/ops/reduce.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// What stands for a channel: [c, 1, 1..] in front of the spatial axes.
Tensor per_channel(const Tensor& t, int spatial) {
  Shape s = Shape::filled(spatial + 1, 1);
  s[0] = t.numel();
  return reshape(t, s);
}
Dims last_axes(int ndim, int count) {
  Dims d;
  for (int i = ndim - count; i < ndim; ++i) d.push_back(i);
  return d;
}
std::vector<int64_t> kernel_of(const Tensor& w) {
  return w.ndim() < 3 ? std::vector<int64_t>() : std::vector<int64_t>(w.size().begin() + 2, w.size().end());
}
DType working(DType t) { return t == DType::f64 ? t : DType::f32; }

TENON_ONNX(Conv) {
  const Tensor &x = c.input(0), &w = c.input(1);
  const Windows at(c, x.size(), kernel_of(w));
  const int64_t groups = c.node.integer("group", 1);
  const Tensor bias = c.has(2) ? c.in[2] : Tensor();
  if (x.ndim() == 4 && at.before == at.after && at.before[0] >= 0 && at.before[1] >= 0)
    return {contiguous(conv2d(x, w, bias, {Dims(at.stride), Dims(at.before), Dims(at.dilation), groups}))};
  const DType t = working(x.dtype());
  Tensor y = correlate(at.padded(cast(x, t), 0), at, cast(w, t), groups);
  if (bias) y = add(y, per_channel(cast(bias, t), at.axes()));
  return {cast(y, x.dtype())};
}

// A transposed convolution is a correlation of the input, spread out by the stride, with the mirrored kernel.
TENON_ONNX(ConvTranspose) {
  const DType t = working(c.input(0).dtype());
  Tensor x = cast(c.input(0), t), w = cast(c.input(1), t);
  Windows at(c, x.size(), kernel_of(w));
  const int s = at.axes();
  const int64_t groups = c.node.integer("group", 1);
  if (groups < 1 || x.size(1) != w.size(0) || x.size(1) % groups)
    throw Error(fmt::format("weights of size {} in {} groups do not fit an input of size {}", to_string(w.size()),
                            groups, to_string(x.size())));
  const std::vector<int64_t> wanted = c.node.integers("output_shape"),
                             more = c.node.integers("output_padding", std::vector<int64_t>(static_cast<size_t>(s), 0));
  if (static_cast<int>(more.size()) != s || (!wanted.empty() && static_cast<int>(wanted.size()) < s))
    throw Error("output_padding or output_shape has too few numbers");
  const std::string automatic = c.node.text("auto_pad", "NOTSET");
  for (int i = 0; i < s; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t reach = at.dilation[k] * (at.kernel[k] - 1) + 1,
                  full = at.stride[k] * (x.size(i + 2) - 1) + reach + more[k];
    const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!wanted.empty() || same) {
      const int64_t size =
          wanted.empty() ? x.size(i + 2) * at.stride[k] : wanted[wanted.size() - static_cast<size_t>(s) + k];
      const int64_t total = std::max<int64_t>(0, full - size), half = total / 2;
      at.before[k] = automatic == "SAME_UPPER" ? half : total - half;
      at.after[k] = total - at.before[k];
      if (full < size) at.after[k] = full - size;
    }
  }
  if (s == 2 && at.before == at.after && at.before[0] >= 0 && at.before[1] >= 0) {
    auto size = [&](size_t k) {
      return at.stride[k] * (x.size(static_cast<int>(k) + 2) - 1) + at.dilation[k] * (at.kernel[k] - 1) + 1 + more[k] -
             2 * at.before[k];
    };
    // The op takes what a convolution could have come from, and no more.
    if (size(0) > 0 && size(1) > 0 && more[0] >= 0 && more[1] >= 0 && more[0] < at.stride[0] &&
        more[1] < at.stride[1]) {
      Tensor y =
          conv2d_transposed(x, w, size(0), size(1), {Dims(at.stride), Dims(at.before), Dims(at.dilation), groups});
      if (c.has(2)) y = add(y, per_channel(cast(c.in[2], t), s));
      return {contiguous(cast(y, c.input(0).dtype()))};
    }
  }
  for (int i = 0; i < s; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t reach = at.dilation[k] * (at.kernel[k] - 1) + 1;
    // Zeros between the elements: [.., d, 1] beside [.., d, stride - 1].
    const int64_t d = x.size(i + 2), step = at.stride[k];
    if (step > 1 && d > 0) {
      Shape wide = x.size(), spread = x.size();
      wide.insert(i + 3, step);
      Tensor room = zeros(wide, t);
      copy_(select(room, i + 3, 0), x);
      spread[i + 2] = d * step;
      x = narrow(reshape(room, spread), i + 2, 0, (d - 1) * step + 1);
    }
    at.before[k] = reach - 1 - at.before[k];
    at.after[k] = reach - 1 - at.after[k] + more[k];
    at.stride[k] = 1;
    w = flip(w, i + 2);
  }
  // [ic, oc / groups, k..] -> [oc, ic / groups, k..]
  const int64_t ic = x.size(1) / groups, oc = w.size(1);
  Shape split = w.size(), joined = w.size();
  split[0] = ic;
  split.insert(0, groups);
  joined[0] = groups * oc;
  joined[1] = ic;
  w = reshape(transpose(reshape(w, split), 1, 2), joined);
  Tensor y = correlate(at.padded(x, 0, false), at, w, groups);
  if (c.has(2)) y = add(y, per_channel(cast(c.in[2], t), s));
  return {cast(y, c.input(0).dtype())};
}

/// What max_pool2d() does: two axes, padding on both sides alike, and no window in it alone.
bool pools_as_op(const OnnxCall& c, const Tensor& x, const Windows& at) {
  if (c.wants(1) || x.ndim() != 4 || !(x.dtype() == DType::f32 || x.dtype() == DType::f64)) return false;
  for (size_t i = 0; i < 2; ++i)
    if (at.before[i] != at.after[i] || at.before[i] < 0 || 2 * at.before[i] > at.kernel[i] || at.extra[i] != 0 ||
        at.dilation[i] != 1)
      return false;
  return true;
}

TENON_ONNX(MaxPool) {
  const Tensor& x = c.input(0);
  const Windows at(c, x.size());
  const int s = at.axes();
  if (pools_as_op(c, x, at))
    return {contiguous(max_pool2d(x, {Dims(at.kernel), Dims(at.stride), Dims(at.before), {1, 1}}))};
  const DType t = working(x.dtype());
  Tensor windows = at.of(at.padded(cast(x, t), -INFINITY));
  const Dims kernel = last_axes(windows.ndim(), s);
  if (!c.wants(1)) return {cast(amax(windows, kernel), x.dtype())};
  // The place of every element in the whole input, moved through the same windows.
  const bool columns = c.node.integer("storage_order", 0);
  int64_t plane = 1;
  for (int i = 2; i < x.ndim(); ++i) plane *= x.size(i);
  Tensor place = scalar(0, DType::i64);
  int64_t step = 1;
  for (int k = 0; k < s; ++k) {
    const int axis = columns ? 2 + k : x.ndim() - 1 - k;
    Shape row = Shape::filled(x.ndim(), 1);
    row[axis] = x.size(axis);
    place = add(place, mul(reshape(arange(x.size(axis)), row), static_cast<double>(step)));
    step *= x.size(axis);
  }
  place = add(place, mul(reshape(arange(x.size(0) * x.size(1)),
                                 [&] {
                                   Shape lead = Shape::filled(x.ndim(), 1);
                                   lead[0] = x.size(0);
                                   lead[1] = x.size(1);
                                   return lead;
                                 }()),
                         static_cast<double>(plane)));
  const Tensor places = at.of(at.padded(place, -1));
  Shape flat = windows.size();
  for (int k = 1; k < s; ++k) flat.erase(flat.n - 1);
  flat[flat.n - 1] = -1;
  const Ordered best = max_dim(reshape(windows, flat), -1, true);
  return {cast(squeeze(best.values, -1), x.dtype()), squeeze(gather(reshape(places, flat), -1, best.indices), -1)};
}

TENON_ONNX(AveragePool) {
  const Tensor& x = c.input(0);
  const Windows at(c, x.size());
  const DType t = working(x.dtype());
  const Tensor windows = at.of(at.padded(cast(x, t), 0));
  const Dims kernel = last_axes(windows.ndim(), at.axes());
  // How many elements of each window count: those of the input, and of its padding where asked, never what rounding up
  // added.
  Shape plane = x.size();
  plane[0] = plane[1] = 1;
  Tensor counted = ones(plane, t);
  if (c.node.integer("count_include_pad", 0))
    counted = pad_spatial(at.padded(counted, 1, false), std::vector<int64_t>(at.extra.size(), 0), at.extra, 0);
  else
    counted = at.padded(counted, 0);
  return {cast(div(sum(windows, kernel), sum(at.of(counted), kernel)), x.dtype())};
}

TENON_ONNX(LpPool) {
  const Tensor& x = c.input(0);
  const Windows at(c, x.size());
  const double p = static_cast<double>(c.node.integer("p", 2));
  const Tensor windows = at.of(at.padded(abs(x), 0));
  const Tensor total = sum(p == 2 ? square(windows) : pow(windows, p), last_axes(windows.ndim(), at.axes()));
  return {p == 2 ? sqrt(total) : pow(total, 1 / p)};
}

Dims spatial_axes(const Tensor& x) {
  if (x.ndim() < 3) throw Error(fmt::format("an input of size {} has no spatial axes", to_string(x.size())));
  return last_axes(x.ndim(), x.ndim() - 2);
}
TENON_ONNX(GlobalAveragePool) { return {mean(c.input(0), spatial_axes(c.input(0)), true)}; }
TENON_ONNX(GlobalMaxPool) { return {amax(c.input(0), spatial_axes(c.input(0)), true)}; }
TENON_ONNX(GlobalLpPool) {
  const double p = static_cast<double>(c.node.integer("p", 2));
  return {pow(sum(pow(abs(c.input(0)), p), spatial_axes(c.input(0)), true), 1 / p)};
}

TENON_ONNX(MaxUnpool) {
  const Tensor &x = c.input(0), &at = c.input(1);
  const int n = x.ndim();
  Shape natural = x.size(), size;
  const std::vector<int64_t> kernel = c.node.integers("kernel_shape");
  const auto s = static_cast<size_t>(std::max(0, n - 2));
  const std::vector<int64_t> strides = c.node.integers("strides", std::vector<int64_t>(s, 1)),
                             pads = c.node.integers("pads", std::vector<int64_t>(2 * s, 0));
  if (s < 1 || kernel.size() != s || strides.size() != s || pads.size() != 2 * s || !(at.size() == x.size()))
    throw Error("kernel, strides, pads or indices do not fit the input");
  for (size_t i = 0; i < s; ++i) {
    const int axis = static_cast<int>(i) + 2;
    if (std::max({std::abs(strides[i]), std::abs(pads[i]), std::abs(pads[i + s]), std::abs(kernel[i])}) > 1 << 30)
      throw Error("a stride, padding or kernel that is absurd");
    natural[axis] = (x.size(axis) - 1) * strides[i] - pads[i] - pads[i + s] + kernel[i];
    if (natural[axis] < 0 || natural[axis] > int64_t{1} << 31)
      throw Error(fmt::format("the output would have the size {}", natural[axis]));
  }
  size = c.has(2) ? Shape(c.list(2, "")) : natural;
  // Indices count in the natural size; they mean the same coordinates in another one.
  Tensor flat = reshape(at, {at.numel()}), to = zeros({at.numel()}, DType::i64);
  for (int64_t k = 0; k < flat.numel(); ++k) {
    int64_t rest = static_cast<int64_t>(value_at(flat, {k})), place = 0, step = 1;
    if (rest < 0 || rest >= natural.product())
      throw Error(fmt::format("index {} is outside {}", rest, to_string(natural)));
    for (int axis = n - 1; axis >= 0; --axis) {
      const int64_t i = rest % natural[axis];
      if (size.n != n || i >= size[axis]) throw Error(fmt::format("an index lies outside {}", to_string(size)));
      place += i * step;
      step *= size[axis];
      rest /= natural[axis];
    }
    to.data<int64_t>()[k] = place;
  }
  return {reshape(scatter(zeros({size.product()}, x.dtype()), 0, to, reshape(x, {x.numel()})), size)};
}

// Sums of squares over neighbouring channels.
TENON_ONNX(LRN) {
  const Tensor& x = c.input(0);
  if (x.ndim() < 2) throw Error(fmt::format("an input of size {} has no channels", to_string(x.size())));
  const int64_t size = c.node.integer("size", 1), channels = x.size(1);
  const double alpha = c.node.number("alpha", 0.0001), beta = c.node.number("beta", 0.75),
               bias = c.node.number("bias", 1);
  if (size < 1) throw Error(fmt::format("{} channels", size));
  const Tensor sq = square(x);
  Tensor total = mul(sq, 0.0);
  for (int64_t shift = -std::min((size - 1) / 2, channels); shift <= std::min(size / 2, channels); ++shift) {
    const int64_t first = std::max<int64_t>(0, -shift), last = std::min(channels, channels - shift);
    if (first < last)
      total = index_add(total, 1, add(arange(last - first), static_cast<double>(first)),
                        narrow(sq, 1, first + shift, last - first));
  }
  return {div(x, pow(add(mul(total, alpha / static_cast<double>(size)), bias), beta))};
}

// Columns back to an image: blocks that overlap add up.
TENON_ONNX(Col2Im) {
  const Tensor& x = c.input(0);
  const std::vector<int64_t> image = c.list(1, ""), block = c.list(2, "");
  const size_t s = image.size();
  const std::vector<int64_t> dil = c.node.integers("dilations", std::vector<int64_t>(s, 1)),
                             stride = c.node.integers("strides", std::vector<int64_t>(s, 1)),
                             pads = c.node.integers("pads", std::vector<int64_t>(2 * s, 0));
  int64_t taps = 1;
  for (int64_t k : block) {
    if (k < 1 || k > 1 << 20 || taps > 1 << 20) throw Error(fmt::format("a block of {}", k));
    taps *= k;
  }
  if (x.ndim() != 3 || s < 1 || block.size() != s || dil.size() != s || stride.size() != s || pads.size() != 2 * s ||
      taps < 1 || x.size(1) % taps)
    throw Error(fmt::format("blocks do not fit an input of size {}", to_string(x.size())));
  std::vector<int64_t> steps(s);
  int64_t blocks = 1, pixels = 1;
  for (size_t i = 0; i < s; ++i) {
    if (stride[i] < 1 || dil[i] < 1 || image[i] < 1) throw Error("a stride, dilation or size below 1");
    if (std::max({stride[i], dil[i], image[i], std::abs(pads[i]), std::abs(pads[i + s])}) > 1 << 30)
      throw Error("a stride, dilation, padding or size that is absurd");
    steps[i] = (image[i] + pads[i] + pads[i + s] - dil[i] * (block[i] - 1) - 1) / stride[i] + 1;
    blocks *= steps[i];
    pixels *= image[i];
  }
  if (blocks != x.size(2)) throw Error(fmt::format("{} blocks where the image has {}", x.size(2), blocks));
  // One pixel more takes what falls into the padding.
  Tensor at = empty({taps * blocks}, DType::i64);
  for (int64_t k = 0; k < taps; ++k)
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t tap = k, place = b, pixel = 0, step = 1;
      bool inside = true;
      for (size_t i = s; i-- > 0;) {
        const int64_t p = place % steps[i] * stride[i] - pads[i] + tap % block[i] * dil[i];
        inside = inside && p >= 0 && p < image[i];
        pixel += p * step;
        step *= image[i];
        place /= steps[i];
        tap /= block[i];
      }
      at.data<int64_t>()[k * blocks + b] = inside ? pixel : pixels;
    }
  const int64_t channels = x.size(1) / taps;
  const Tensor y = index_add(zeros({x.size(0), channels, pixels + 1}, x.dtype()), 2, at,
                             reshape(x, {x.size(0), channels, taps * blocks}));
  Shape result{x.size(0), channels};
  for (int64_t d : image) result.push_back(d);
  return {reshape(narrow(y, 2, 0, pixels), result)};
}

}  // namespace
}  // namespace tenon::formats
