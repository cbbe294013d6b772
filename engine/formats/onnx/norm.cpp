// ONNX's normalisations, dropout and losses.
#include <cmath>

#include "core/random.h"
#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/gather.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

DType norm_working(DType t) { return t == DType::f64 ? t : DType::f32; }

/// [c] against [n, c, ..].
Tensor channels(const Tensor& t, int ndim) {
  Shape s = Shape::filled(ndim, 1);
  if (ndim > 1) s[1] = t.numel();
  return reshape(t, s);
}
Dims axes_from(int first, int ndim) {
  Dims d;
  for (int i = first; i < ndim; ++i) d.push_back(i);
  return d;
}

TENON_ONNX(BatchNormalization) {
  const Tensor& x = c.input(0);
  const DType t = norm_working(x.dtype());
  const int n = x.ndim();
  const double eps = c.node.number("epsilon", 1e-5), momentum = c.node.number("momentum", 0.9);
  const Tensor wide = cast(x, t);
  Tensor m = cast(c.input(3), t), v = cast(c.input(4), t);
  const Tensor old_mean = m, old_var = v;
  const bool training =
      c.opset >= 14 ? c.node.integer("training_mode", 0) : c.opset < 7 && !c.node.integer("is_test", 0);
  if (c.opset < 14 && c.wants(1)) throw OnnxUnsupported("outputs beyond the first before opset 14 are not supported");
  if (training) {
    Dims over{0};
    for (int i = 2; i < n; ++i) over.push_back(i);
    m = mean(wide, over);
    v = mean(square(sub(wide, channels(m, n))), over);
  }
  Tensor y = mul(sub(wide, channels(m, n)), channels(rsqrt(add(v, eps)), n));
  y = add(mul(y, channels(cast(c.input(1), t), n)), channels(cast(c.input(2), t), n));
  Out out{cast(y, x.dtype())};
  if (training) {
    out.push_back(cast(add(mul(old_mean, momentum), mul(m, 1 - momentum)), c.input(3).dtype()));
    out.push_back(cast(add(mul(old_var, momentum), mul(v, 1 - momentum)), c.input(4).dtype()));
  }
  return out;
}

/// (x - mean) / sqrt(var + eps) over axes.
Tensor normalised(const Tensor& x, const Dims& axes, double eps) {
  const Tensor d = sub(x, mean(x, axes, true));
  return mul(d, rsqrt(add(mean(square(d), axes, true), eps)));
}

TENON_ONNX(InstanceNormalization) {
  const Tensor& x = c.input(0);
  const DType t = norm_working(x.dtype());
  const Tensor y = normalised(cast(x, t), axes_from(2, x.ndim()), c.node.number("epsilon", 1e-5));
  return {
      cast(add(mul(y, channels(cast(c.input(1), t), x.ndim())), channels(cast(c.input(2), t), x.ndim())), x.dtype())};
}

TENON_ONNX(GroupNormalization) {
  const Tensor& x = c.input(0);
  const DType t = norm_working(x.dtype());
  const int64_t groups = c.node.integer("num_groups", 1);
  if (x.ndim() < 2 || groups < 1 || x.size(1) % groups)
    throw Error(fmt::format("{} groups do not fit size {}", groups, to_string(x.size())));
  const int64_t rows = x.size(0) * groups;
  Tensor y =
      reshape(normalised(reshape(cast(x, t), {rows, rows ? x.numel() / rows : 0}), {1}, c.node.number("epsilon", 1e-5)),
              x.size());
  // Scale and bias were given a group before opset 21, a channel since.
  auto spread = [&](const Tensor& p) {
    const Tensor w = cast(p, t);
    return channels(c.opset < 21 ? reshape(expand(unsqueeze(w, 1), {groups, x.size(1) / groups}), {x.size(1)}) : w,
                    x.ndim());
  };
  return {cast(add(mul(y, spread(c.input(1))), spread(c.input(2))), x.dtype())};
}

TENON_ONNX(LayerNormalization) {
  const Tensor& x = c.input(0);
  const DType t = norm_working(x.dtype());
  const int axis = wrap_axis(c.node.integer("axis", -1), x.ndim());
  const Dims over = axes_from(axis, x.ndim());
  const Tensor wide = cast(x, t), m = mean(wide, over, true), d = sub(wide, m),
               inverse = rsqrt(add(mean(square(d), over, true), c.node.number("epsilon", 1e-5)));
  Tensor y = mul(mul(d, inverse), cast(c.input(1), t));
  if (c.has(2)) y = add(y, cast(c.in[2], t));
  return {cast(y, x.dtype()), m, inverse};
}

TENON_ONNX(RMSNormalization) {
  const Tensor& x = c.input(0);
  const DType t = norm_working(x.dtype());
  const Tensor wide = cast(x, t);
  const Dims over = axes_from(wrap_axis(c.node.integer("axis", -1), x.ndim()), x.ndim());
  return {cast(
      mul(mul(wide, rsqrt(add(mean(square(wide), over, true), c.node.number("epsilon", 1e-5)))), cast(c.input(1), t)),
      x.dtype())};
}

TENON_ONNX(Dropout) {
  const Tensor& x = c.input(0);
  const double ratio = c.opset >= 12 ? (c.has(1) ? item(c.in[1]) : 0.5) : c.node.number("ratio", 0.5);
  const bool training = c.opset >= 12 ? c.has(2) && item(c.in[2]) != 0 : c.opset < 7 && !c.node.integer("is_test", 0);
  if (!training || ratio == 0) return {x, ones(x.size(), DType::boolean)};
  if (!(ratio > 0 && ratio < 1)) throw Error(fmt::format("a ratio of {}", ratio));
  c.draws_random();
  const Philox random{static_cast<uint64_t>(c.node.integer("seed", 0)), 0};
  Tensor kept = empty(x.size(), DType::boolean);
  for (int64_t i = 0; i < kept.numel(); ++i)
    kept.data<bool>()[i] = random.uniform_double(static_cast<uint64_t>(i)) >= ratio;
  return {where(kept, div(x, 1 - ratio), scalar_like(0, x)), kept};
}

/// -log_probability[n, target[n, ..], ..] times the class' weight, reduced.
Tensor negative_log_likelihood(const OnnxCall& c, const Tensor& log_probability, const Tensor& labels,
                               const Tensor& weight) {
  const Tensor target = cast(labels, DType::i64);
  const bool ignores = c.node.find("ignore_index") != nullptr;
  const double ignored = static_cast<double>(c.node.integer("ignore_index", 0));
  const Tensor counted = ignores ? ne(target, ignored) : eq(target, target),
               safe = where(counted, target, scalar(0, DType::i64));
  if (log_probability.ndim() < 2 || target.ndim() != log_probability.ndim() - 1)
    throw Error(fmt::format("labels of size {} do not fit scores of size {}", to_string(target.size()),
                            to_string(log_probability.size())));
  const Tensor none = scalar(0, log_probability.dtype());
  Tensor w = weight ? gather(weight, 0, reshape(safe, {safe.numel()})) : ones({safe.numel()}, log_probability.dtype());
  w = where(counted, reshape(w, target.size()), none);
  const Tensor loss = mul(neg(squeeze(gather(log_probability, 1, unsqueeze(safe, 1)), 1)), w);
  const std::string how = c.node.text("reduction", "mean");
  if (how == "none") return loss;
  if (how == "sum") return sum(loss);
  if (how != "mean") throw Error(fmt::format("there is no reduction \"{}\"", how));
  return div(sum(loss), sum(w));
}
TENON_ONNX(NegativeLogLikelihoodLoss) {
  return {negative_log_likelihood(c, c.input(0), c.input(1), c.has(2) ? c.in[2] : Tensor())};
}
TENON_ONNX(SoftmaxCrossEntropyLoss) {
  const Tensor y = log_softmax(c.input(0), 1);
  return {negative_log_likelihood(c, y, c.input(1), c.has(2) ? c.in[2] : Tensor()), y};
}

}  // namespace
}  // namespace tenon::formats
