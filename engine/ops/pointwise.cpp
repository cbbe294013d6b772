#include "engine/op/pointwise.h"

#include <fmt/format.h>

#include "core/error.h"
#include "engine/ops/pointwise_formulas.h"
#include "engine/ops/view.h"

namespace tenon {

OP_BY_FORMULA(square)
OP_BY_FORMULA(rsqrt)
OP_BY_FORMULA(silu)
OP_BY_FORMULA(gelu)
OP_BY_FORMULA(gelu_tanh)

namespace {

struct Where {
  static constexpr OpInfo info{"where", "Where", OpKind::pointwise};
  static constexpr Saves saves{0b001, 0};
  static Meta infer(const NoAttrs&, const Meta& c, const Meta& a, const Meta& b) {
    if (c.dtype != DType::boolean)
      throw Error(fmt::format("the condition must be bool, not {}", name(c.dtype)), "compare it: ne(c, 0)");
    Meta m;
    m.dtype = result_type(a, b);
    m.shape = broadcast_shape(c.shape, broadcast_shape(a.shape, b.shape));
    return m;
  }
  template <class T>
  static void loop(char* const* d, const int64_t* s, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      bool c = *reinterpret_cast<const T*>(d[1] + i * s[1]) != T(0);
      T a = *reinterpret_cast<const T*>(d[2] + i * s[2]), b = *reinterpret_cast<const T*>(d[3] + i * s[3]);
      *reinterpret_cast<T*>(d[0] + i * s[0]) = c ? a : b;
    }
  }
  static void cpu(const Call& c) {
    DType t = compute_type(c.out[0].dtype());
    InnerLoop l = t == DType::f32   ? loop<float>
                  : t == DType::f64 ? loop<double>
                  : t == DType::i32 ? loop<int32_t>
                                    : loop<int64_t>;
    strided_loop(c.out[0], c.in, 3, t, t, l);
  }
  static void backward(Grad& d) {
    Tensor zero = scalar_like(0, d.out());
    if (d.needs(1)) d.in(1) = where(d.x(0), d.out(), zero);
    if (d.needs(2)) d.in(2) = where(d.x(0), zero, d.out());
  }
  static void samples(Samples& s) {
    s.add("matrix", NoAttrs{}, {s.values({3, 4}, {}, DType::boolean), s.values({3, 4}), s.values({3, 4})});
    s.add("broadcast", NoAttrs{}, {s.values({3, 1}, {}, DType::boolean), s.values({4}), s.values({})});
  }
};
const Register<Where> where_op;

}  // namespace

Tensor where(const Tensor& c, const Tensor& a, const Tensor& b) { return apply<Where>({}, c, a, b); }

}  // namespace tenon
