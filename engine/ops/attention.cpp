#include "engine/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/autograd/composite.h"
#include "engine/kernels/attention.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/create.h"
#include "engine/ops/dropout.h"
#include "engine/ops/half_products.h"
#include "engine/ops/join.h"
#include "engine/ops/loss.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using ops::dense_as;
using ops::float_or_double;

// Note [Attention of halves on the CPU]
// is computed in f32 copies and rounded once. The log-sum-exp of the rows, which the backward pass has from the forward
// pass, stays in f32: it is the exponent of every share. Every device keeps to this.
DType attention_type(DType t) { return ops::is_half(t) ? DType::f32 : t; }

struct AttentionAttrs {
  double scale, p;
  bool causal;
  uint64_t stream, first;  ///< of the dropout
  template <class F>
  void fields(F&& f) const {
    f("scale", scale);
    f("causal", causal);
    f("dropout", p);
    f("stream", stream, false);
    f("first", first, false);
  }
};

Tensor attention_cast(const Tensor& x, DType t) { return x.dtype() == t ? x : cast(x, t); }
std::vector<Tensor> attention_inputs(std::vector<Tensor> in) {
  for (Tensor& t : in)
    if (t) t = attention_cast(t, attention_type(t.dtype()));
  return in;
}

Shape score_size(const Shape& q, const Shape& k) {
  Shape s = q;
  s[s.n - 1] = k[k.n - 2];
  return s;
}

/// bool [lq, lk]: the keys each query sees.
Tensor causal_keep(int64_t lq, int64_t lk, Device device) {
  Tensor t = empty({lq, lk}, DType::boolean);
  for (int64_t i = 0; i < lq; ++i)
    for (int64_t j = 0; j < lk; ++j) t.data<bool>()[i * lk + j] = j <= i;
  return to_device(t, device);
}

Tensor masked_scores(const AttentionAttrs& a, const Tensor& q, const Tensor& k, const Tensor& mask) {
  Tensor s = mul(matmul(q, k, false, true), a.scale), out = scalar_like(-std::numeric_limits<double>::infinity(), s);
  if (mask) s = mask.dtype() == DType::boolean ? where(mask, s, out) : add(s, mask);
  if (a.causal) s = where(causal_keep(s.size(-2), s.size(-1), s.device()), s, out);
  return s;
}
Tensor shares_of(const AttentionAttrs& a, const Tensor& scores, const Tensor& key) {
  Tensor p = softmax(scores, -1);
  return a.p > 0 ? dropout(p, a.p, {key, a.stream, a.first}) : p;
}

template <class T>
kernels::AttentionShape<T> sizes_of(const AttentionAttrs& a, const Tensor* in) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  int64_t batch = 1;
  for (int i = 0; i < q.ndim() - 2; ++i) batch *= q.size(i);
  kernels::AttentionShape<T> s{batch,   q.size(-2), k.size(-2), q.size(-1), v.size(-1), static_cast<T>(a.scale),
                               a.causal};
  s.p = a.p;
  return s;
}
size_t attention_room(const AttentionAttrs& a, const Tensor* in) {
  return in[0].dtype() == DType::f64 ? kernels::attention_workspace(sizes_of<double>(a, in))
                                     : kernels::attention_workspace(sizes_of<float>(a, in));
}

Tensor attention_operand(const Tensor& x, kernels::Room& room) { return dense_as(x, attention_type(x.dtype()), room); }
Tensor attention_mask_operand(const Tensor& mask, kernels::Room& room) {
  return mask && ops::is_half(mask.dtype()) ? attention_operand(mask, room) : mask;
}

template <class T>
struct Problem {
  Tensor q, k, v, mask;
  std::vector<int64_t> mask_at;
  kernels::AttentionShape<T> shape;

  /// `in`: q, k, v, mask?, of `n` inputs; `draws` is the key of the dropout.
  Problem(const AttentionAttrs& a, const Tensor* in, const Tensor& given, const Tensor& draws, kernels::Room& room)
      : q(attention_operand(in[0], room)),
        k(attention_operand(in[1], room)),
        v(attention_operand(in[2], room)),
        mask(attention_mask_operand(given, room)) {
    shape = sizes_of<T>(a, in);
    if (a.p > 0) {
      const DrawnFrom from(draws, a.stream, a.first);
      shape.seed = from.random.seed;
      shape.stream = a.stream;
      shape.offset = from.counter;
    }
    if (!mask) return;
    Layout full = mask.layout().expand(score_size(q.size(), k.size()));
    int n = full.size.n;
    mask_at.resize(static_cast<size_t>(shape.batch));
    for (int64_t b = 0; b < shape.batch; ++b) {
      int64_t rest = b, at = 0;
      for (int axis = n - 3; axis >= 0; --axis) {
        at += rest % full.size[axis] * full.stride[axis];
        rest /= full.size[axis];
      }
      mask_at[static_cast<size_t>(b)] = at;
    }
    shape.mask_at = mask_at.data();
    shape.mask_row = full.stride[n - 2];
    shape.mask_col = full.stride[n - 1];
    if (mask.dtype() == DType::boolean)
      shape.keep = mask.data<bool>();
    else
      shape.bias = mask.data<T>();
  }
};

/// Of products along the queries' width, and along the values', for every query and every key that it sees.
double attention_flops(const AttentionAttrs& a, const Call& c, int of_queries, int of_values) {
  const double lq = static_cast<double>(c.in[0].size(-2)), lk = static_cast<double>(c.in[1].size(-2));
  const double d = static_cast<double>(c.in[0].size(-1)), dv = static_cast<double>(c.in[2].size(-1));
  double seen = lq * lk;
  if (a.causal) {  // 1, 2, 3 .. keys, and all of them from query lk on
    const double growing = std::min(lq, lk);
    seen = growing * (growing + 1) / 2 + (lq - growing) * lk;
  }
  const double pairs = lq > 0 && d > 0 ? static_cast<double>(c.in[0].numel()) / (lq * d) * seen : 0;
  return 2 * pairs * (of_queries * d + of_values * dv);
}

/// Inputs q, k, v, mask?, y, lse, gy, key?; outputs gq, gk, gv. With create_graph the composite runs instead. Of halves
/// everything is such but for lse: the types are those of the forward pass, and autocast leaves them.
struct AttentionBackward {
  static constexpr OpInfo info{
      .name = "attention_backward", .kind = OpKind::matmul, .outputs = 3, .amp = Amp::leave, .own_halves = true};
  using Attrs = AttentionAttrs;
  static void infer(const Attrs&, const Tensor* in, int, Meta* out) {
    for (int i = 0; i < 3; ++i) out[i] = in[i].meta();
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    kernels::Room room;
    for (int i : {4, 5, 6, 0, 1, 2}) attention_operand(c.in[i], room);
    attention_mask_operand(c.in[3], room);
    for (int i = 0; i < 3; ++i) ops::target(c, i, attention_type(c.out[i].dtype()), room);
    return room.used() + attention_room(a, c.in);
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor y = attention_operand(c.in[4], room), lse = attention_operand(c.in[5], room),
           gy = attention_operand(c.in[6], room), out[3];
    float_or_double(y.dtype(), [&](auto one) {
      using T = decltype(one);
      Problem<T> p(c.as<Attrs>(), c.in, c.in[3], c.in[7], room);
      for (int i = 0; i < 3; ++i) out[i] = ops::target(c, i, y.dtype(), room);
      kernels::attention_backward<T>(p.shape, p.q.template data<T>(), p.k.template data<T>(), p.v.template data<T>(),
                                     y.data<T>(), lse.data<T>(), gy.data<T>(), out[0].data<T>(), out[1].data<T>(),
                                     out[2].data<T>(), room.rest());
    });
    for (int i = 0; i < 3; ++i) ops::finished(c, i, out[i]);
  }
  static Cost cost(const Attrs& a, const Call& c) { return {attention_flops(a, c, 3, 2)}; }
};

/// Inputs q, k, v, mask?, key?; outputs y and the log-sum-exp of every row.
struct Attention {
  static constexpr OpInfo info{
      .name = "scaled_dot_product_attention", .kind = OpKind::matmul, .outputs = 2, .own_halves = true};
  using Attrs = AttentionAttrs;
  static void infer(const Attrs& a, const Tensor* in, int n, Meta* out) {
    const Meta &q = in[0].meta(), &k = in[1].meta(), &v = in[2].meta();
    ops::product_type({&q, &k, &v});
    const Shape &sq = q.shape, &sk = k.shape, &sv = v.shape;
    bool fits = sq.n >= 2 && sq.n == sk.n && sq.n == sv.n && sq.back() == sk.back() && sk[sk.n - 2] == sv[sv.n - 2];
    for (int i = 0; fits && i < sq.n - 2; ++i) fits = sq[i] == sk[i] && sq[i] == sv[i];
    if (!fits)
      throw Error("queries, keys and values of sizes " + to_string(sq) + ", " + to_string(sk) + " and " +
                      to_string(sv) + " do not fit: [.., lq, d], [.., lk, d] and [.., lk, dv]",
                  "expand() them to equal leading axes");
    if (a.p > 0) {
      if (n < 5 || !in[4]) throw Error("its shares are dropped out without a key", "random_key() makes one");
      check_key(in[4].meta());
    }
    if (!(a.p >= 0 && a.p <= 1)) throw Error("the probability " + std::to_string(a.p) + " is not between 0 and 1");
    if (n > 3 && in[3]) {
      if (in[3].dtype() != DType::boolean) ops::product_type({&q, &in[3].meta()});
      Shape s = score_size(sq, sk);
      if (!(broadcast_shape(in[3].size(), s) == s))
        throw Error("a mask of size " + to_string(in[3].size()) + " does not broadcast to " + to_string(s));
    }
    out[0] = out[1] = q;
    out[0].shape[sq.n - 1] = sv.back();
    out[1].shape.erase(sq.n - 1);
    out[1].dtype = attention_type(q.dtype);
  }
  static size_t workspace(const Attrs& a, const Call& c) {
    kernels::Room room;
    for (int i = 0; i < 3; ++i) attention_operand(c.in[i], room);
    if (c.inputs > 3) attention_mask_operand(c.in[3], room);
    ops::target(c, 0, attention_type(c.out[0].dtype()), room);
    return room.used() + attention_room(a, c.in);
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor y;
    float_or_double(c.out[1].dtype(), [&](auto one) {
      using T = decltype(one);
      Problem<T> p(c.as<Attrs>(), c.in, c.inputs > 3 ? c.in[3] : Tensor(), c.inputs > 4 ? c.in[4] : Tensor(), room);
      y = ops::target(c, 0, c.out[1].dtype(), room);
      kernels::attention_forward<T>(p.shape, p.q.template data<T>(), p.k.template data<T>(), p.v.template data<T>(),
                                    y.data<T>(), c.out[1].data<T>(), room.rest());
    });
    ops::finished(c, 0, y);
  }
  static constexpr Saves saves{.inputs = 0b11111, .outputs = 0b11};
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d) {
    const auto& a = d.as<Attrs>();
    const Tensor key = d.inputs() > 4 ? d.x(4) : Tensor();
    bool of_mask = d.inputs() > 3 && d.needs(3);
    if (!grad_enabled() && !d.out(1) && !of_mask) {
      const Tensor in[] = {d.x(0), d.x(1), d.x(2), d.x(3), d.y(0), d.y(1), d.out(0), key};
      Tensor out[3];
      apply_many<AttentionBackward>(a, in, 8, out);
      for (int i = 0; i < 3; ++i)
        if (d.needs(i)) d.in(i) = out[i];
      return;
    }
    composite_gradient(d, {d.x(0), d.x(1), d.x(2), d.x(3)},
                       [&](const std::vector<Tensor>& given) -> std::vector<Tensor> {
                         const std::vector<Tensor> in = attention_inputs(given);
                         Tensor s = masked_scores(a, in[0], in[1], in[3]), top = amax(s, {-1}, true);
                         Tensor lse = add(squeeze(top, -1), log(sum(exp(sub(s, top)), {-1})));
                         return {attention_cast(matmul(shares_of(a, s, key), in[2]), given[0].dtype()), lse};
                       });
  }
  static Cost cost(const Attrs& a, const Call& c) { return {attention_flops(a, c, 1, 1)}; }
  static void samples(Samples& s) {
    Attrs plain{0.5, 0, false, 0, 0}, causal = plain, drop = plain;
    causal.causal = true;
    drop.p = 0.3;
    s.add("plain", plain, {s.values({2, 3, 4}), s.values({2, 5, 4}), s.values({2, 5, 3}), Tensor()});
    s.add("causal, two leading axes", causal,
          {s.values({2, 2, 4, 3}), s.values({2, 2, 4, 3}), s.values({2, 2, 4, 3}), Tensor()});
    Tensor keep = s.values({3, 4}, {}, DType::boolean);
    for (int i = 0; i < 3; ++i) keep.data<bool>()[i * 4] = true;
    s.add("bool mask", plain, {s.values({2, 3, 4}), s.values({2, 4, 4}), s.values({2, 4, 3}), keep});
    s.add("added mask", plain, {s.values({2, 3, 4}), s.values({2, 4, 4}), s.values({2, 4, 3}), s.values({2, 1, 4})});
    s.add("dropout", drop, {s.values({2, 3, 4}), s.values({2, 5, 4}), s.values({2, 5, 3}), Tensor(), random_key(3, 0)});
  }
};

const Register<Attention> attention_op;
const Register<AttentionBackward> attention_backward_op;
Tensor Attention::decompose(const Attrs& a, const std::vector<Tensor>& given) {
  const std::vector<Tensor> in = attention_inputs(given);
  Tensor s = mul(matmul(in[0], transpose(in[1], -1, -2)), a.scale),
         out = scalar_like(-std::numeric_limits<double>::infinity(), s);
  if (in.size() > 3 && in[3]) s = in[3].dtype() == DType::boolean ? where(in[3], s, out) : add(s, in[3]);
  if (a.causal) s = where(causal_keep(s.size(-2), s.size(-1), s.device()), s, out);
  return attention_cast(matmul(shares_of(a, s, in.size() > 4 ? in[4] : Tensor()), in[2]), given[0].dtype());
}

AttentionAttrs attrs_of(const Tensor& q, const AttentionOptions& o) {
  double scale = o.scale != 0 ? o.scale : q.ndim() > 0 ? 1 / std::sqrt(static_cast<double>(q.size(-1))) : 1;
  return {scale, o.dropout, o.causal, o.draws.stream, o.draws.first};
}

/// cos and sin of the angles of rotary() and sinusoidal_positions(), [length, d / 2].
void angles(int64_t length, int64_t half, double base, int64_t first, DType t, Device device, Tensor& cosine,
            Tensor& sine) {
  cosine = empty({length, half}, t);
  sine = empty({length, half}, t);
  float_or_double(t, [&](auto one) {
    using T = decltype(one);
    for (int64_t p = 0; p < length; ++p)
      for (int64_t i = 0; i < half; ++i) {
        double angle =
            static_cast<double>(first + p) * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
        cosine.data<T>()[p * half + i] = static_cast<T>(std::cos(angle));
        sine.data<T>()[p * half + i] = static_cast<T>(std::sin(angle));
      }
  });
  cosine = to_device(cosine, device);
  sine = to_device(sine, device);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                                    const AttentionOptions& o) {
  const Tensor in[] = {q, k, v, mask, o.draws.key};
  Tensor out[2];
  apply_many<Attention>(attrs_of(q, o), in, 5, out);
  return out[0];
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionOptions& o) {
  AttentionAttrs a = attrs_of(q, o);
  return shares_of(a, masked_scores(a, q, k, mask), o.draws.key);
}

Tensor rotary(const Tensor& x, double base, int64_t first, bool interleaved) {
  if (x.ndim() < 2 || x.size(-1) % 2)
    throw Error("rotary: an input of size " + to_string(x.size()) + " is not [.., length, an even number of features]");
  int64_t length = x.size(-2), half = x.size(-1) / 2;
  if (x.is_meta()) return mul(x, 1);
  DType t = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor c, s;
  angles(length, half, base, first, t, x.device(), c, s);
  if (x.dtype() != t) c = cast(c, x.dtype()), s = cast(s, x.dtype());
  Tensor a, b;
  if (interleaved) {
    a = slice(x, -1, 0, 2 * half, 2);
    b = slice(x, -1, 1, 2 * half, 2);
  } else {
    a = narrow(x, -1, 0, half);
    b = narrow(x, -1, half, half);
  }
  Tensor left = sub(mul(a, c), mul(b, s)), right = add(mul(b, c), mul(a, s));
  return interleaved ? reshape(stack({left, right}, -1), x.size()) : cat({left, right}, -1);
}

Tensor sinusoidal_positions(int64_t length, int64_t d, DType dtype, double base, Device device) {
  if (d < 2 || d % 2) throw Error("sinusoidal_positions: " + std::to_string(d) + " features are not an even number");
  Tensor c, s;
  angles(length, d / 2, base, 0, dtype == DType::f64 ? DType::f64 : DType::f32, device, c, s);
  return cast(reshape(stack({s, c}, -1), {length, d}), dtype);
}

}  // namespace tenon
