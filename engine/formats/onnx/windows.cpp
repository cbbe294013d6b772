#include "engine/formats/onnx/windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/matmul.h"
#include "engine/ops/view.h"

namespace tenon::formats {

Windows::Windows(const OnnxCall& c, const Shape& size, std::vector<int64_t> given) : kernel(std::move(given)) {
  if (kernel.empty()) kernel = c.node.integers("kernel_shape");
  const auto n = static_cast<size_t>(std::max(0, size.n - 2));
  if (n < 1 || n > 3)
    throw OnnxUnsupported(fmt::format("an input of size {}: one to three spatial axes are supported", to_string(size)));
  if (kernel.size() != n)
    throw Error(fmt::format("a kernel of {} axes for an input of size {}", kernel.size(), to_string(size)));
  auto numbers = [&](const char* name, size_t count, int64_t fallback) {
    std::vector<int64_t> v = c.node.integers(name, std::vector<int64_t>(count, fallback));
    if (v.size() != count) throw Error(fmt::format("{} numbers in {}; it has {}", v.size(), name, count));
    return v;
  };
  stride = numbers("strides", n, 1);
  dilation = numbers("dilations", n, 1);
  const std::vector<int64_t> pads = numbers("pads", 2 * n, 0);
  const std::string automatic = c.node.text("auto_pad", "NOTSET");
  const bool ceil_mode = c.node.integer("ceil_mode", 0);
  extra.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const int64_t d = size[static_cast<int>(i) + 2];
    if (kernel[i] < 1 || stride[i] < 1 || stride[i] > (1 << 30) || dilation[i] < 1 ||
        kernel[i] > (1 << 30) / dilation[i])
      throw Error(
          fmt::format("a kernel of {}, a stride of {} and a dilation of {}", kernel[i], stride[i], dilation[i]));
    const int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    int64_t front = pads[i], back = pads[i + n];
    if (automatic == "VALID") front = back = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const int64_t out = (d + stride[i] - 1) / stride[i],
                    total = std::max<int64_t>(0, (out - 1) * stride[i] + reach - d);
      front = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      back = total - front;
    }
    if (std::max(std::abs(front), std::abs(back)) > (int64_t{1} << 40)) throw Error("a padding that is absurd");
    before.push_back(front);
    after.push_back(back);
    const int64_t room = d + front + back - reach;
    if (ceil_mode && room > 0 && room % stride[i]) {
      // A last window must begin inside the input or its padding in front.
      if ((room / stride[i] + 1) * stride[i] < d + front) extra[i] = stride[i] - room % stride[i];
    }
  }
}

Tensor pad_spatial(const Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                   double value) {
  Tensor y = x;
  for (size_t i = 0; i < before.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t front = std::max<int64_t>(0, -before[i]), back = std::max<int64_t>(0, -after[i]);
    if (front + back > y.size(axis))
      throw Error(fmt::format("axis {} of {} has fewer than the {} elements that are cut off", axis,
                              to_string(y.size()), front + back));
    y = narrow(y, axis, front, y.size(axis) - front - back);
    std::vector<Tensor> parts;
    auto fill_with = [&](int64_t n) {
      Shape s = y.size();
      s[axis] = n;
      if (n > 0) parts.push_back(expand(scalar(value, y.dtype()), s));
    };
    fill_with(before[i]);
    parts.push_back(y);
    fill_with(after[i]);
    if (parts.size() > 1) y = cat(parts, axis);
  }
  return y;
}

Tensor Windows::padded(const Tensor& x, double value, bool with_extra) const {
  std::vector<int64_t> back = after;
  for (size_t i = 0; with_extra && i < back.size(); ++i) back[i] += extra[i];
  return pad_spatial(x, before, back, value);
}

Tensor Windows::of(const Tensor& x) const {
  Tensor y = x;
  double count = static_cast<double>(x.numel());
  for (int i = 0; i < axes(); ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t reach = dilation[k] * (kernel[k] - 1) + 1;
    if (y.size(i + 2) < reach)
      throw Error(fmt::format("a window of {} elements does not fit an axis of {}", reach, y.size(i + 2)));
    count *= static_cast<double>(kernel[k]) / static_cast<double>(stride[k]);
    need_work(count);
    y = unfold(y, i + 2, reach, stride[k]);  // the window becomes the last axis
    if (dilation[k] > 1) y = slice(y, -1, 0, reach, dilation[k]);
  }
  return y;
}

Tensor correlate(const Tensor& x, const Windows& at, const Tensor& w, int64_t groups) {
  const int s = at.axes();
  if (groups < 1 || x.size(1) % groups || w.size(0) % groups || w.ndim() != s + 2 || w.size(1) != x.size(1) / groups)
    throw Error(fmt::format("weights of size {} in {} groups do not fit an input of size {}", to_string(w.size()),
                            groups, to_string(x.size())));
  const Tensor windows = at.of(x);
  Dims order{0};  // [n, o.., c, k..]
  int64_t positions = 1, taps = w.size(1);
  Shape result{x.size(0), w.size(0)};
  for (int i = 0; i < s; ++i) {
    order.push_back(2 + i);
    positions *= windows.size(2 + i);
    result.push_back(windows.size(2 + i));
    taps *= w.size(2 + i);
  }
  order.push_back(1);
  for (int i = 0; i < s; ++i) order.push_back(2 + s + i);
  const Tensor rows = reshape(permute(windows, order), {x.size(0), positions, groups, taps});
  const int64_t each = w.size(0) / groups;
  std::vector<Tensor> parts;
  for (int64_t g = 0; g < groups; ++g) {
    const Tensor a = reshape(select(rows, 2, g), {x.size(0) * positions, taps}),
                 b = reshape(narrow(w, 0, g * each, each), {each, taps});
    parts.push_back(transpose(reshape(matmul(a, b, false, true), {x.size(0), positions, each}), 1, 2));
  }
  return reshape(parts.size() > 1 ? cat(parts, 1) : parts[0], result);
}

kernels::ConvSizes conv_sizes(const Windows& at, const Shape& x) {
  auto out = [&](size_t i) {
    const int64_t reach = at.dilation[i] * (at.kernel[i] - 1) + 1,
                  room = x[static_cast<int>(i) + 2] + at.before[i] + at.after[i] - reach;
    if (room < 0) throw Error(fmt::format("a window of {} elements does not fit an input of {}", reach, to_string(x)));
    return room / at.stride[i] + 1;
  };
  if (at.axes() == 1) return {x[0], 1, x[2], 1, out(0), 0, at.before[0], 0, at.after[0]};
  return {x[0], x[2], x[3], out(0), out(1), at.before[0], at.before[1], at.after[0], at.after[1]};
}

}  // namespace tenon::formats
