#include "engine/formats/onnx/fused_nodes.h"

#include <algorithm>

#include "core/parallel.h"
#include "engine/formats/onnx/operator.h"
#include "engine/formats/onnx/windows.h"
#include "engine/kernels/channel_pool.h"
#include "engine/kernels/packed_conv.h"
#include "engine/kernels/packed_product.h"
#include "engine/kernels/scratch.h"
#include "engine/ops/dense.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

Items one_by_one(const FusedNodes& f, const OnnxCall& c) {
  std::unordered_map<std::string, Tensor> values = f.constants;
  for (size_t i = 0; i < c.in.size(); ++i) values[c.node.inputs[i]] = c.in[i];
  std::vector<Tensor> out;
  for (const OnnxNode& n : f.nodes) {
    std::vector<Tensor> in;
    for (const std::string& name : n.inputs) in.push_back(name.empty() ? Tensor() : values[name]);
    out = run_onnx_node(n, in, c.opset);
    values[n.outputs[0]] = out[0];
  }
  return {out[0]};
}

/// The arrays beside the value, in the order of `like`; empty where one does not fit.
struct Beside {
  std::vector<Tensor> tensors;
  std::vector<const float*> at;
  bool fits = true;
  Beside(const OnnxCall& c, const Shape& size, const Layout& like) {
    for (size_t i = 1; fits && i < c.in.size(); ++i) {
      const Tensor& t = c.in[i];
      fits = t && t.dtype() == DType::f32 && !t.is_meta() && t.size() == size;
      if (!fits) return;
      tensors.push_back(t.stride() == like.stride ? t : ops::copied(t, like));
      at.push_back(tensors.back().numel() ? tensors.back().data<float>() : nullptr);
    }
  }
};

kernels::AfterPiece after_piece(const FusedNodes& f, const Beside& beside) {
  if (f.chain.empty()) return {};
  return [&](float* piece, int64_t at, int64_t n) { f.chain.run(piece, piece, beside.at.data(), at, n); };
}

bool is_f32(const Tensor& t) { return t && t.dtype() == DType::f32 && !t.is_meta(); }

Layout without_offset(Layout l) {
  l.offset = 0;
  return l;
}

}  // namespace

Tensor with_channels_innermost(const Tensor& t) {
  if (t.layout().is_channels_last()) return t;
  const Tensor x = ops::dense(t);
  Tensor y = empty_strided(Layout::channels_last(x.size()), DType::f32);
  if (x.numel())
    kernels::channels_innermost(x.size(0), x.size(2) * x.size(3), x.size(1), x.data<float>(), y.data<float>());
  return y;
}

OnnxOperator fused_conv(FusedNodes fused, const Tensor& weights, const Tensor& bias) {
  struct Ready {
    FusedNodes f;
    Tensor w, b;
    kernels::PackedConv conv;
  };
  const OnnxNode& n = fused.nodes[0];
  const std::vector<int64_t> stride = n.integers("strides", {1, 1}), dilation = n.integers("dilations", {1, 1});
  const Tensor w = contiguous(weights), b = bias ? contiguous(bias) : Tensor();
  const int64_t groups = n.integer("group", 1);
  const kernels::PackedConv::Form form{w.size(1) * groups, w.size(0),      w.size(2),      w.size(3), stride.at(0),
                                       stride.at(1),       dilation.at(0), dilation.at(1), groups};
  auto ready =
      std::shared_ptr<Ready>(new Ready{std::move(fused), w, b, {form, w.data<float>(), b ? b.data<float>() : nullptr}});
  return [ready](const OnnxCall& c) -> Items {
    const Tensor& given = c.in[0];
    const kernels::PackedConv::Form& form = ready->conv.form();
    if (!is_f32(given) || given.ndim() != 4 || given.size(1) != form.ic) return one_by_one(ready->f, c);
    OnnxCall first{ready->f.nodes[0], {}, c.opset, {}};
    const Windows at(first, given.size(), {form.kh, form.kw});
    if (std::min({at.before[0], at.before[1], at.after[0], at.after[1]}) < 0) return one_by_one(ready->f, c);
    const kernels::ConvSizes s = conv_sizes(at, given.size());
    const Shape size{s.n, form.oc, s.oh, s.ow};
    const Layout order = Layout::channels_last(size);
    const Beside beside(c, size, order);
    if (!beside.fits) return one_by_one(ready->f, c);
    const Tensor x = with_channels_innermost(given);
    Tensor y = empty_strided(order, DType::f32);
    if (y.numel())
      ready->conv.run(s, x.numel() ? x.data<float>() : nullptr, y.data<float>(), after_piece(ready->f, beside));
    return {y};
  };
}

OnnxOperator fused_upsampling(FusedNodes fused, const Tensor& weights, const Tensor& bias) {
  struct Ready {
    FusedNodes f;
    int64_t oc, kh, kw;
    Tensor m, b;
    kernels::PackedProduct product;
  };
  // A pixel becomes kh x kw pixels of oc channels: one product of [ic, kh * kw * oc].
  const int64_t ic = weights.size(0), oc = weights.size(1), kh = weights.size(2), kw = weights.size(3);
  const Tensor m = contiguous(reshape(permute(weights, {0, 2, 3, 1}), {ic, kh * kw * oc}));
  const Tensor b = bias ? contiguous(reshape(expand(reshape(bias, {1, oc}), {kh * kw, oc}), {kh * kw * oc})) : Tensor();
  auto ready = std::shared_ptr<Ready>(new Ready{
      std::move(fused), oc, kh, kw, m, b, {ic, kh * kw * oc, false, m.data<float>(), b ? b.data<float>() : nullptr}});
  return [ready](const OnnxCall& c) -> Items {
    const Tensor& given = c.in[0];
    if (!is_f32(given) || given.ndim() != 4 || given.size(1) != ready->product.k() || given.numel() == 0)
      return one_by_one(ready->f, c);
    const int64_t oc = ready->oc, kh = ready->kh, kw = ready->kw, h = given.size(2), w = given.size(3);
    const Shape size{given.size(0), oc, h * kh, w * kw};
    const Layout order = Layout::channels_last(size);
    const Beside beside(c, size, order);
    if (!beside.fits) return one_by_one(ready->f, c);
    const Tensor x = with_channels_innermost(given);
    Tensor y = empty_strided(order, DType::f32);
    const int64_t wide = kw * oc, rows = given.size(0) * h;
    const kernels::Scratch<float> blocks(rows * w * kh * wide);
    ready->product.run(rows * w, x.data<float>(), blocks.data());
    const kernels::AfterPiece after = after_piece(ready->f, beside);
    parallel_for(rows * kh, std::max<int64_t>(1, 16384 / (w * wide)), [&](int64_t i, int64_t last) {
      for (; i < last; ++i) {
        const float* from = blocks.data() + (i / kh * w * kh + i % kh) * wide;
        float* to = y.data<float>() + i * w * wide;
        for (int64_t k = 0; k < w; ++k) std::copy_n(from + k * kh * wide, wide, to + k * wide);
        if (after) after(to, i * w * wide, w * wide);
      }
    });
    return {y};
  };
}

OnnxOperator fused_product(FusedNodes fused, const Tensor& matrix, bool turned, const Tensor& bias) {
  struct Ready {
    FusedNodes f;
    Tensor m, b;
    kernels::PackedProduct product;
  };
  const Tensor m = contiguous(matrix), b = bias ? contiguous(bias) : Tensor();
  const int64_t k = m.size(turned ? 1 : 0), n = m.size(turned ? 0 : 1);
  auto ready = std::shared_ptr<Ready>(
      new Ready{std::move(fused), m, b, {k, n, turned, m.data<float>(), b ? b.data<float>() : nullptr}});
  return [ready](const OnnxCall& c) -> Items {
    const Tensor& given = c.in[0];
    if (!is_f32(given) || given.ndim() < 2 || given.size(-1) != ready->product.k() ||
        (ready->f.nodes[0].op_type == "Gemm" && given.ndim() != 2))
      return one_by_one(ready->f, c);
    Shape size = given.size();
    size[size.n - 1] = ready->product.n();
    const Beside beside(c, size, Layout::contiguous(size));
    if (!beside.fits) return one_by_one(ready->f, c);
    const Tensor x = ops::dense(given);
    Tensor y = empty(size);
    if (y.numel())
      ready->product.run(x.numel() / ready->product.k(), x.data<float>(), y.data<float>(),
                         after_piece(ready->f, beside));
    return {y};
  };
}

OnnxOperator fused_pointwise(FusedNodes fused) {
  const auto f = std::make_shared<const FusedNodes>(std::move(fused));
  return [f](const OnnxCall& c) -> Items {
    constexpr int kChannels = 2;  // [n, c, h, w], from the last
    const Tensor& given = c.in[0];
    if (!is_f32(given) || (f->channel == kChannels && given.ndim() != 4)) return one_by_one(*f, c);
    Tensor x = f->channel == kChannels ? with_channels_innermost(given) : f->channel == 0 ? ops::dense(given) : given;
    if (!x.layout().is_dense()) x = ops::dense(x);
    const Layout order = without_offset(x.layout());
    const Beside beside(c, x.size(), order);
    if (!beside.fits) return one_by_one(*f, c);
    Tensor y = empty_strided(order, DType::f32);
    if (!y.numel()) return {y};
    constexpr int64_t kGrain = 16 * 1024;
    parallel_for(y.numel(), kGrain, [&](int64_t i, int64_t e) {
      f->chain.run(x.data<float>() + i, y.data<float>() + i, beside.at.data(), i, e - i);
    });
    return {y};
  };
}

}  // namespace tenon::formats
