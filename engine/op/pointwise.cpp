#include "engine/op/pointwise.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tenon {

DType result_type(const Meta& a, const Meta& b) { return result_type(a.dtype, a.shape.n > 0, b.dtype, b.shape.n > 0); }

namespace pointwise {
namespace {

InnerLoop pick(const Call& c, const Loops& l, DType t) {
  InnerLoop loop = t == DType::f32   ? l.f32
                   : t == DType::f64 ? l.f64
                   : t == DType::i32 ? l.i32
                   : t == DType::i64 ? l.i64
                                     : nullptr;
  if (!loop) throw Error(fmt::format("{} has no form for {}", c.op->info.name, name(t)));
  return loop;
}

}  // namespace

void run_loops(const Call& c, const Loops& loops, Types types) {
  DType result = c.inputs == 1 ? c.in[0].dtype() : result_type(c.in[0].meta(), c.in[1].meta());
  if (types == Types::floating && !is_floating(result)) result = DType::f32;
  DType t = compute_type(result);
  strided_loop(c.out[0], c.in, c.inputs, t, types == Types::compare ? DType::boolean : t, pick(c, loops, t));
}

void run_gradient(const Call& c, const Loops& loops) {
  DType t = compute_type(c.out[0].dtype());
  // Operands that the formula does not read are absent: the loop gets the gradient itself in their place.
  op_detail::Borrowed<4> in(c.in[0], c.in[1] ? c.in[1] : c.in[0], c.in[2] ? c.in[2] : c.in[0],
                            c.inputs > 3 && c.in[3] ? c.in[3] : c.in[0]);
  strided_loop(c.out[0], in.get(), c.inputs, t, t, pick(c, loops, t));
}

Meta infer_unary(const Meta& x, Types types) {
  Meta m = x;
  if (types == Types::floating && !is_floating(x.dtype)) m.dtype = DType::f32;
  return m;
}

Meta infer_binary(const Meta& a, const Meta& b, Types types) {
  Meta m;
  m.dtype = types == Types::compare ? DType::boolean : result_type(a, b);
  if (types == Types::floating && !is_floating(m.dtype)) m.dtype = DType::f32;
  m.shape = a.shape == b.shape ? a.shape : broadcast_shape(a.shape, b.shape);
  return m;
}

Meta infer_bits(const Meta& a, const Meta& b) {
  for (const Meta* m : {&a, &b})
    if (is_floating(m->dtype))
      throw Error(fmt::format("it works on whole numbers and bool, not on {}", name(m->dtype)));
  return infer_binary(a, b, Types::any);
}

Tensor fused(OpDef& def, const Tensor& g, const Tensor* operands, int count, const Meta& like) {
  Tensor in[4] = {g, operands[0], operands[1], count > 2 ? operands[2] : Tensor()};
  Tensor out;
  static constexpr NoAttrs none;
  dispatch(def, &none, in, count + 1, &out);
  return out.dtype() == like.dtype || !is_floating(like.dtype) ? out : cast(out, like.dtype);
}

void sample_unary(Samples& s, const Domain& d, Types types) {
  s.add("matrix", NoAttrs{}, {s.values({3, 5}, d)});
  s.add("one", NoAttrs{}, {s.values({}, d)});
  s.add("empty", NoAttrs{}, {s.values({0, 3}, d)});
  if (types == Types::any) s.add("integers", NoAttrs{}, {s.values({7}, {-5, 5}, DType::i64)});
}

void sample_binary(Samples& s, const Domain& d, Types types) {
  s.add("same size", NoAttrs{}, {s.values({3, 5}, d), s.values({3, 5}, d)});
  s.add("rows", NoAttrs{}, {s.values({3, 5}, d), s.values({5}, d)});
  s.add("columns", NoAttrs{}, {s.values({3, 1}, d), s.values({2, 3, 5}, d)});
  s.add("scalar", NoAttrs{}, {s.values({4}, d), s.values({}, d)});
  s.add("empty", NoAttrs{}, {s.values({0, 3}, d), s.values({3}, d)});
  if (types != Types::floating)
    s.add("integers", NoAttrs{}, {s.values({7}, {1, 5}, DType::i64), s.values({7}, {1, 5}, DType::i64)});
}

}  // namespace pointwise
}  // namespace tenon
