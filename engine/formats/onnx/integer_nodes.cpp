#include "engine/formats/onnx/integer_nodes.h"

#include <algorithm>
#include <limits>

#include "engine/formats/onnx/operator.h"
#include "engine/formats/onnx/windows.h"
#include "engine/kernels/int8_conv.h"
#include "engine/kernels/pool.h"
#include "engine/kernels/u8_values.h"
#include "engine/ops/dense.h"
#include "engine/ops/join.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

const Tensor& u8_input(const OnnxCall& c, size_t input = 0) {
  const Tensor& x = c.input(input);
  if (x.dtype() != DType::u8) throw Error(fmt::format("its input is {}, not u8", name(x.dtype())));
  return x;
}

DType made_type(const IntegerLayer& l) { return l.to ? DType::u8 : DType::f32; }

std::shared_ptr<const kernels::Int8Conv> int8_conv(kernels::Int8ConvShape s, const IntegerLayer& l) {
  s.zero = l.from.zero;
  s.relu = l.relu;
  s.to_u8 = l.to.has_value();
  if (l.to) s.out_zero = l.to->zero;
  std::vector<float> scale = l.scales;
  for (float& v : scale) v = v * l.from.scale / (l.to ? l.to->scale : 1);
  const Tensor w = contiguous(l.weights);
  return std::make_shared<const kernels::Int8Conv>(s, w.data<int8_t>(), l.bias, std::move(scale));
}

/// The elements in the order in which they lie, where they lie without gaps; otherwise a copy.
Tensor without_gaps(const Tensor& x) { return x.layout().is_channels_last() ? x : ops::dense(x); }
Tensor alike(const Tensor& x, DType type) {
  const bool last = x.layout().is_channels_last();
  return empty_strided(last ? Layout::channels_last(x.size()) : Layout::contiguous(x.size()), type);
}

}  // namespace

OnnxOperator integer_conv(const OnnxNode& node, const IntegerLayer& given_layer) {
  // A line is a picture of one row.
  IntegerLayer layer = given_layer;
  const bool line = layer.weights.ndim() == 3;
  const auto of_two = [&](const char* attribute) {
    std::vector<int64_t> v = node.integers(attribute, std::vector<int64_t>(line ? 1 : 2, 1));
    if (line) v.insert(v.begin(), 1);
    return v;
  };
  if (line) layer.weights = unsqueeze(layer.weights, 2);
  const Shape& w = layer.weights.size();
  const std::vector<int64_t> stride = of_two("strides"), dilation = of_two("dilations");
  const int64_t groups = node.integer("group", 1);
  const kernels::Int8ConvShape shape{w[1] * groups, w[0],           w[2],           w[3],  stride.at(0),
                                     stride.at(1),  dilation.at(0), dilation.at(1), groups};
  return [conv = int8_conv(shape, layer), type = made_type(layer), line](const OnnxCall& c) -> Items {
    const Tensor& given = u8_input(c);
    const kernels::Int8ConvShape& s = conv->shape();
    if (given.ndim() != (line ? 3 : 4) || given.size(1) != s.ic)
      throw Error(fmt::format("an input of size {} does not fit {} channels of a {}", to_string(given.size()), s.ic,
                              line ? "line" : "picture"));
    const std::vector<int64_t> kernel = line ? std::vector<int64_t>{s.kw} : std::vector<int64_t>{s.kh, s.kw};
    const kernels::ConvSizes sizes = conv_sizes(Windows(c, given.size(), kernel), given.size());
    const Tensor x = ops::dense_nhwc(line ? unsqueeze(given, 2) : given);
    Tensor y = empty_strided(Layout::channels_last({sizes.n, s.oc, sizes.oh, sizes.ow}), type);
    if (y.numel()) conv->run(sizes, x.data<uint8_t>(), y.raw());
    return {line ? squeeze(y, 2) : y};
  };
}

OnnxOperator integer_product(const IntegerLayer& layer) {
  const kernels::Int8ConvShape shape{layer.weights.size(1), layer.weights.size(0), 1, 1};
  return [product = int8_conv(shape, layer), type = made_type(layer)](const OnnxCall& c) -> Items {
    const Tensor x = ops::dense(u8_input(c));
    const kernels::Int8ConvShape& s = product->shape();
    if (x.ndim() < 1 || x.size(-1) != s.ic)
      throw Error(fmt::format("an input of size {} does not fit rows of {}", to_string(x.size()), s.ic));
    Shape to = x.size();
    to[to.n - 1] = s.oc;
    Tensor y = empty(to, type);
    if (y.numel()) product->run_rows(x.numel() / s.ic, x.data<uint8_t>(), y.raw());
    return {y};
  };
}

OnnxOperator integer_sum(const IntegerSum& sum) {
  return [sum](const OnnxCall& c) -> Items {
    Tensor a = u8_input(c), b = u8_input(c, 1);
    if (!(a.size() == b.size())) {
      const Shape size = broadcast_shape(a.size(), b.size());
      a = expand(a, size), b = expand(b, size);
    }
    // Both in one order of elements, without gaps.
    const bool last = a.layout().is_channels_last();
    a = last ? a : ops::dense(a), b = last ? ops::dense_nhwc(b) : ops::dense(b);
    Tensor y = alike(a, DType::u8);
    if (y.numel())
      kernels::add_u8({a.data<uint8_t>(), sum.a.scale, sum.a.zero}, {b.data<uint8_t>(), sum.b.scale, sum.b.zero},
                      y.numel(), sum.relu, sum.to.scale, sum.to.zero, y.data<uint8_t>());
    return {y};
  };
}

OnnxOperator integer_join(const std::vector<U8Grid>& from, const U8Grid& to) {
  return [from, to](const OnnxCall& c) -> Items {
    std::vector<Tensor> parts;
    for (size_t i = 0; i < from.size(); ++i) {
      const Tensor x = without_gaps(u8_input(c, i));
      parts.push_back(from[i] == to ? x : alike(x, DType::u8));
      if (!(from[i] == to) && x.numel())
        kernels::requantize_u8({x.data<uint8_t>(), from[i].scale, from[i].zero}, x.numel(), to.scale, to.zero,
                               parts.back().data<uint8_t>());
    }
    const int64_t axis = c.node.integer("axis", 0);
    return {cat(parts, static_cast<int>(axis < 0 ? axis + parts[0].ndim() : axis))};
  };
}

namespace {

/// Windows over a picture as its kernel wants them; a line is a picture of one row, slices of a volume are pictures.
struct PooledPicture {
  Tensor x;  ///< NHWC
  kernels::PoolShape shape;
  int axes;
  int64_t slices = 1;  ///< of a volume
  PooledPicture(const OnnxCall& c, bool all) {
    Tensor given = u8_input(c);
    axes = given.ndim() - 2;
    if (axes < 1 || axes > 3 || (axes == 3 && all)) throw OnnxUnsupported("integers are pooled over two axes at most");
    const Shape size = given.size();
    if (axes == 1) given = unsqueeze(given, 2);
    if (axes == 3) {
      slices = size[2];
      given = reshape(permute(given, {0, 2, 1, 3, 4}), {size[0] * slices, size[1], size[3], size[4]});
    }
    x = ops::dense_nhwc(given);
    const int64_t n = x.size(0), h = x.size(2), w = x.size(3);
    if (all) {
      shape = {n, x.size(1), h, w, 1, 1, h, w, 1, 1, 0, 0, 1, 1};
      return;
    }
    const Windows at(c, size);
    const auto last = [](const std::vector<int64_t>& v) { return v.back(); };
    const auto row = [&](const std::vector<int64_t>& v, int64_t one) { return axes == 1 ? one : v[v.size() - 2]; };
    const auto out = [&](int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t around) {
      const int64_t room = in + around - (dilation * (kernel - 1) + 1);
      if (room < 0) throw Error(fmt::format("a window does not fit an input of {}", to_string(size)));
      return room / stride + 1;
    };
    shape = {
        n,
        x.size(1),
        h,
        w,
        out(h, row(at.kernel, 1), row(at.stride, 1), row(at.dilation, 1),
            row(at.before, 0) + row(at.after, 0) + row(at.extra, 0)),
        out(w, last(at.kernel), last(at.stride), last(at.dilation), last(at.before) + last(at.after) + last(at.extra)),
        row(at.kernel, 1),
        last(at.kernel),
        row(at.stride, 1),
        last(at.stride),
        row(at.before, 0),
        last(at.before),
        row(at.dilation, 1),
        last(at.dilation)};
  }
  template <class Kernel>
  Tensor pooled(const Kernel& kernel) const {
    const Tensor y = empty_strided(Layout::channels_last({shape.n, shape.c, shape.oh, shape.ow}), DType::u8);
    if (y.numel()) kernel(shape, x.data<uint8_t>(), y.data<uint8_t>());
    if (axes == 1) return squeeze(y, 2);
    if (axes == 2) return y;
    return permute(reshape(y, {shape.n / slices, slices, shape.c, shape.oh, shape.ow}), {0, 2, 1, 3, 4});
  }
};

}  // namespace

OnnxOperator integer_average(const U8Grid& from, const U8Grid& to, AveragedOver over, int axes) {
  return [from, to, over, axes](const OnnxCall& c) -> Items {
    const bool all = over != AveragedOver::windows;
    if (all && c.input(0).ndim() != axes + 2)
      throw OnnxUnsupported(
          fmt::format("an average over {} axes of an input of size {}", axes, to_string(c.input(0).size())));
    const bool padding = !all && c.node.integer("count_include_pad", 0) != 0;
    Tensor y = PooledPicture(c, all).pooled([&](const kernels::PoolShape& s, const uint8_t* x, uint8_t* q) {
      kernels::average_u8(s, {x, from.scale, from.zero}, padding, to.scale, to.zero, q);
    });
    if (over == AveragedOver::all_and_drops_them)
      for (int i = 0; i < axes; ++i) y = squeeze(y, 2);
    return {y};
  };
}

OnnxOperator integer_max_pool() {
  return [](const OnnxCall& c) -> Items { return {PooledPicture(c, false).pooled(kernels::max_pool2d_u8)}; };
}

OnnxOperator to_u8(const U8Grid& grid) {
  return [grid](const OnnxCall& c) -> Items {
    const Tensor x = without_gaps(c.input(0).dtype() == DType::f32 ? c.input(0) : cast(c.input(0), DType::f32));
    Tensor y = alike(x, DType::u8);
    if (x.numel()) kernels::quantize_u8(x.data<float>(), x.numel(), grid.scale, grid.zero, y.data<uint8_t>());
    return {y};
  };
}

OnnxOperator from_u8(const U8Grid& grid) {
  return [grid](const OnnxCall& c) -> Items {
    const Tensor x = without_gaps(u8_input(c));
    Tensor y = alike(x, DType::f32);
    if (x.numel()) kernels::dequantize_u8(x.data<uint8_t>(), x.numel(), grid.scale, grid.zero, y.data<float>());
    return {y};
  };
}

}  // namespace tenon::formats
