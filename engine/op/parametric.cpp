#include "engine/op/parametric.h"

namespace tenon::pointwise {

void run_parametric(const Call& c, const ParametricAttrs& p, InnerLoop f32, InnerLoop f64) {
  DType t = compute_type(c.out[0].dtype());
  Tensor a = scalar(p.a, t), b = scalar(p.b, t);
  op_detail::Borrowed<4> in(c.in[0], c.inputs == 1 ? a : c.in[1], c.inputs == 1 ? b : a, b);
  strided_loop(c.out[0], in.get(), c.inputs + 2, t, t, t == DType::f64 ? f64 : f32);
}

}  // namespace tenon::pointwise
