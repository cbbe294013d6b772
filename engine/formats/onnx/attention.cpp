// ONNX's attention and what serves it: rotary positions, caches of keys and values, linear attention.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/linear.h"
#include "engine/formats/onnx/operator.h"
#include "engine/formats/onnx/windows.h"
#include "engine/ops/create.h"
#include "engine/ops/gather.h"
#include "engine/ops/index.h"
#include "engine/ops/join.h"
#include "engine/ops/loss.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

DType attention_working(DType t) { return t == DType::f64 ? t : DType::f32; }

/// [batch, time, heads * width] -> [batch, heads, time, width]; four axes are that already.
Tensor by_head(const Tensor& x, int64_t heads) {
  if (x.ndim() == 4) return x;
  if (x.ndim() != 3 || heads < 1 || x.size(2) % heads)
    throw Error(fmt::format("size {} does not fit {} heads", to_string(x.size()), heads));
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}
Tensor joined_heads(const Tensor& x) {
  return reshape(transpose(x, 1, 2), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

/// -inf where `banned`, 0 elsewhere.
Tensor barred(const Tensor& banned, DType t) { return where(banned, scalar(-INFINITY, t), scalar(0, t)); }

TENON_ONNX(Attention) {
  const DType type = c.input(0).dtype(), t = attention_working(type);
  const bool flat = c.input(0).ndim() == 3;
  const int64_t q_heads = c.node.integer("q_num_heads", 0), kv_heads = c.node.integer("kv_num_heads", 0);
  Tensor q = by_head(c.input(0), q_heads), k = by_head(c.input(1), kv_heads), v = by_head(c.input(2), kv_heads);
  const int64_t past = c.has(4) ? c.in[4].size(2) : 0;
  if (c.has(4)) k = cat({c.in[4], k}, 2);
  if (c.has(5)) v = cat({c.in[5], v}, 2);
  const Tensor present_k = k, present_v = v;
  q = cast(q, t), k = cast(k, t), v = cast(v, t);
  const int64_t rows = q.size(2), cols = k.size(2);
  Tensor bias = zeros({rows, cols}, t);
  if (c.has(3)) {
    bias = c.in[3].dtype() == DType::boolean ? barred(logical_not(c.in[3]), t) : cast(c.in[3], t);
    if (const int64_t missing = bias.ndim() ? cols - bias.size(-1) : 0;
        missing > 0) {  // columns that the mask does not reach take no part
      Shape s = bias.size();
      s[s.n - 1] = missing;
      bias = cat({bias, full(s, -INFINITY, t)}, -1);
    }
  }
  if (c.node.integer("is_causal", 0))
    bias = add(bias, barred(gt(arange(cols), add(unsqueeze(arange(rows), 1), static_cast<double>(past))), t));
  if (c.has(6)) bias = add(bias, barred(ge(arange(cols), reshape(cast(c.in[6], DType::i64), {q.size(0), 1, 1, 1})), t));
  if (q.size(1) != k.size(1)) {
    if (k.size(1) < 1 || q.size(1) % k.size(1))
      throw Error(fmt::format("{} heads of queries for {} of keys", q.size(1), k.size(1)));
    const int64_t each = q.size(1) / k.size(1);
    k = repeat_interleave(k, each, 1);
    v = repeat_interleave(v, each, 1);
  }
  const double scale = std::sqrt(c.node.find("scale") ? c.node.number("scale", 1)
                                                      : 1 / std::sqrt(static_cast<double>(q.size(3)))),
               cap = c.node.number("softcap", 0);
  Tensor scores = numpy_matmul(mul(q, scale), transpose(mul(k, scale), 2, 3));
  const int64_t shown = c.node.integer("qk_matmul_output_mode", 0);
  Tensor out_scores = scores;
  if (cap > 0) scores = mul(tanh(div(scores, cap)), cap);
  if (shown == 1) out_scores = scores;
  scores = add(scores, bias);
  if (shown == 2) out_scores = scores;
  const Tensor weights = softmax(scores, -1);
  if (shown == 3) out_scores = weights;
  const Tensor y = cast(numpy_matmul(weights, v), type);
  return {flat ? joined_heads(y) : y, present_k, present_v, cast(out_scores, type)};
}

// Attention whose scores and weights pass through graphs of the model's own.
Out run_FlexAttention(const OnnxCall& c) {
  const DType type = c.input(0).dtype();
  DType t = attention_working(type);
  if (c.node.find("softmax_precision") && c.node.integer("softmax_precision", 1) != onnx_data_type(t))
    t = c.node.integer("softmax_precision", 1) == onnx_data_type(DType::f64) ? DType::f64 : t;
  Tensor q = cast(c.input(0), t), k = cast(c.input(1), t), v = cast(c.input(2), t);
  if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4 || k.size(1) < 1 || q.size(1) % k.size(1))
    throw Error(fmt::format("queries of size {} and keys of size {}", to_string(q.size()), to_string(k.size())));
  if (q.size(1) != k.size(1)) {
    const int64_t each = q.size(1) / k.size(1);
    k = repeat_interleave(k, each, 1);
    v = repeat_interleave(v, each, 1);
  }
  const double scale =
      std::sqrt(c.node.find("scale") ? c.node.number("scale", 1) : 1 / std::sqrt(static_cast<double>(q.size(3))));
  auto through = [&](const char* graph, const Tensor& x) {
    if (!c.node.find(graph)) return x;
    const Items out = c.run(graph, {OnnxItem(x)});
    if (out.size() != 1 || !out[0].tensor || !(out[0].tensor.size() == x.size()))
      throw Error(fmt::format("{} does not give a tensor of its input's size", graph));
    return cast(out[0].tensor, x.dtype());
  };
  const Tensor scores = through("score_mod", numpy_matmul(mul(q, scale), transpose(mul(k, scale), 2, 3)));
  return {cast(numpy_matmul(through("prob_mod", softmax(scores, -1)), v), type)};
}
const bool registered_FlexAttention =
    register_onnx("ai.onnx.preview.FlexAttention", OnnxTensorOperator(run_FlexAttention));

TENON_ONNX(RotaryEmbedding) {
  const Tensor& given = c.input(0);
  const int64_t heads = c.node.integer("num_heads", 0);
  const Tensor x = transpose(by_head(given, heads), 1, 2);  // [batch, time, heads, width]
  const int64_t width =
                    c.node.integer("rotary_embedding_dim", 0) ? c.node.integer("rotary_embedding_dim", 0) : x.size(3),
                half = width / 2;
  if (width < 2 || width % 2 || width > x.size(3))
    throw Error(fmt::format("{} of {} numbers cannot be rotated", width, x.size(3)));
  auto cache = [&](size_t i) {
    const Tensor t = c.has(3) ? index_select(c.input(i), 0, c.in[3]) : c.input(i);
    if (t.ndim() != 3 || t.size(-1) != half)
      throw Error(fmt::format("a cache of size {} for {} pairs", to_string(t.size()), half));
    return unsqueeze(t, 2);
  };
  const Tensor cosine = cache(1), sine = cache(2), turned = narrow(x, 3, 0, width);
  const bool interleaved = c.node.integer("interleaved", 0);
  const Tensor a = interleaved ? slice(turned, 3, 0, width, 2) : narrow(turned, 3, 0, half),
               b = interleaved ? slice(turned, 3, 1, width, 2) : narrow(turned, 3, half, half);
  const Tensor real = sub(mul(cosine, a), mul(sine, b)), imaginary = add(mul(sine, a), mul(cosine, b));
  Tensor y = interleaved ? reshape(stack({real, imaginary}, -1), turned.size()) : cat({real, imaginary}, 3);
  if (width < x.size(3)) y = cat({y, narrow(x, 3, width, x.size(3) - width)}, 3);
  return {given.ndim() == 3 ? reshape(y, given.size()) : transpose(y, 1, 2)};
}

TENON_ONNX(TensorScatter) {
  const Tensor &cache = c.input(0), &update = c.input(1);
  const int axis = wrap_axis(c.node.integer("axis", -2), cache.ndim());
  const bool circular = c.node.text("mode", "linear") == "circular";
  const int64_t n = cache.size(axis), length = update.size(axis);
  if (axis == 0) throw Error("the first axis is the batch");
  const std::vector<int64_t> starts =
      c.has(2) ? c.list(2, "") : std::vector<int64_t>(static_cast<size_t>(cache.size(0)), 0);
  if (static_cast<int64_t>(starts.size()) != cache.size(0))
    throw Error(fmt::format("{} places for a batch of {}", starts.size(), cache.size(0)));
  Shape size = Shape::filled(cache.ndim(), 1);
  size[0] = cache.size(0);
  size[axis] = length;
  Tensor at = empty({cache.size(0), length}, DType::i64);
  for (int64_t b = 0; b < cache.size(0); ++b)
    for (int64_t i = 0; i < length; ++i) {
      const int64_t p = starts[static_cast<size_t>(b)] + i;
      at.data<int64_t>()[b * length + i] = circular && n > 0 ? ((p % n) + n) % n : p;
    }
  return {scatter(cache, axis, expand(reshape(at, size), update.size()), update)};
}

TENON_ONNX(LinearAttention) {
  const std::string rule = c.node.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", corrected = rule == "delta" || rule == "gated_delta";
  if (!gated && !corrected && rule != "linear") throw Error(fmt::format("there is no update_rule \"{}\"", rule));
  const int64_t q_heads = c.node.integer("q_num_heads", 0), heads = c.node.integer("kv_num_heads", 0);
  const DType type = c.input(0).dtype();
  if (heads < 1 || q_heads < 1 || q_heads % heads)
    throw Error(fmt::format("{} heads of queries for {} of keys", q_heads, heads));
  const Tensor q = cast(by_head(c.input(0), q_heads), DType::f32), k = cast(by_head(c.input(1), heads), DType::f32),
               v = cast(by_head(c.input(2), heads), DType::f32);
  const int64_t batch = q.size(0), time = q.size(2), dk = k.size(3), dv = v.size(3);
  Tensor state = c.has(3) ? cast(c.in[3], DType::f32) : zeros({batch, heads, dk, dv}), decay, beta;
  if (gated) decay = exp(cast(by_head(c.input(4), heads), DType::f32));
  if (corrected) beta = cast(by_head(c.input(5), c.input(5).size(2)), DType::f32);
  const double scale =
      c.node.number("scale", 0) == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : c.node.number("scale", 0);
  std::vector<Tensor> steps;
  for (int64_t i = 0; i < time; ++i) {
    const Tensor key = select(k, 2, i);
    Tensor value = select(v, 2, i);
    if (gated) state = mul(state, unsqueeze(select(decay, 2, i), -1));
    if (corrected) value = mul(select(beta, 2, i), sub(value, sum(mul(state, unsqueeze(key, -1)), {2})));
    state = add(state, mul(unsqueeze(key, -1), unsqueeze(value, -2)));
    const Tensor read = q_heads == heads ? state : repeat_interleave(state, q_heads / heads, 1);
    steps.push_back(mul(sum(mul(read, unsqueeze(select(q, 2, i), -1)), {2}), scale));
  }
  const Tensor y = time ? stack(steps, 2) : zeros({batch, q_heads, 0, dv});
  return {cast(joined_heads(y), type), cast(state, c.has(3) ? c.in[3].dtype() : type)};
}

TENON_ONNX(CausalConvWithState) {
  const Tensor &x = c.input(0), &w = c.input(1);
  if (x.ndim() != 3 || w.ndim() != 3 || w.size(2) < 1)
    throw Error(fmt::format("an input of size {} and weights of size {}", to_string(x.size()), to_string(w.size())));
  const int64_t k = w.size(2);
  const Tensor padded = cat({c.has(3) ? c.in[3] : zeros({x.size(0), x.size(1), k - 1}, x.dtype()), x}, 2);
  const DType t = attention_working(x.dtype());
  const Windows at(c, padded.size(), {k});
  Tensor y = correlate(cast(padded, t), at, cast(w, t), x.size(1));
  if (c.has(2)) y = add(y, reshape(cast(c.in[2], t), {x.size(1), 1}));
  y = cast(y, x.dtype());
  const std::string f = c.node.text("activation", "none");
  if (f == "silu" || f == "swish")
    y = cast(silu(cast(y, t)), x.dtype());
  else if (f != "none")
    throw Error(fmt::format("there is no activation \"{}\"", f));
  return {y, narrow(padded, 2, padded.size(2) - (k - 1), k - 1)};
}

}  // namespace
}  // namespace tenon::formats
