#include "engine/ops/elementary.h"

#include <cmath>
#include <fmt/format.h>

#include "core/error.h"
#include "engine/op/pointwise.h"

namespace tenon {

namespace {
template <class T> T whole(T x, float (*f)(float), double (*d)(double)) {
  if constexpr (std::is_same_v<T, float>) return f(x);
  else if constexpr (std::is_same_v<T, double>) return d(x);
  else return x;
}
template <class T> T fmod_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
  else return b == 0 || b == -1 ? T(0) : a % b;
}
template <class T> T remainder_of(T a, T b) {
  const T r = fmod_of(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T> T quotient_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
  else return b == 0 ? T(0) : b == -1 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a / b;
}
}  // namespace

//        name     ONNX     forward                                  gradient                                         values for tests
OP_UNARY(tan,      "Tan",   T(std::tan(x)),                          g * (T(1) + y * y),                              in(-1, 1))
OP_UNARY(asin,     "Asin",  T(std::asin(x)),                         g / sc::sqrt(T(1) - x * x),                      in(-0.8, 0.8))
OP_UNARY(acos,     "Acos",  T(std::acos(x)),                         -g / sc::sqrt(T(1) - x * x),                     in(-0.8, 0.8))
OP_UNARY(atan,     "Atan",  T(std::atan(x)),                         g / (T(1) + x * x),                              in(-3, 3))
OP_UNARY(sinh,     "Sinh",  T(std::sinh(x)),                         g * T(0.5) * (sc::exp(x) + sc::exp(-x)),         in(-2, 2))
OP_UNARY(cosh,     "Cosh",  T(std::cosh(x)),                         g * T(0.5) * (sc::exp(x) - sc::exp(-x)),         in(-2, 2))
OP_UNARY(asinh,    "Asinh", T(std::asinh(x)),                        g / sc::sqrt(T(1) + x * x),                      in(-3, 3))
OP_UNARY(acosh,    "Acosh", T(std::acosh(x)),                        g / sc::sqrt(x * x - T(1)),                      in(1.2, 4))
OP_UNARY(atanh,    "Atanh", T(std::atanh(x)),                        g / (T(1) - x * x),                              in(-0.8, 0.8))
OP_UNARY_ANY(ceil,  "Ceil",  whole(x, std::ceil, std::ceil),           T(0),                                            in(0.1, 0.9))
OP_UNARY_ANY(floor, "Floor", whole(x, std::floor, std::floor),         T(0),                                            in(0.1, 0.9))
OP_UNARY_ANY(trunc, "",      whole(x, std::trunc, std::trunc),         T(0),                                            in(0.1, 0.9))
OP_UNARY_ANY(round, "Round", whole(x, std::nearbyint, std::nearbyint), T(0),                                            in(0.1, 0.4))
OP_UNARY_ANY(sign,  "Sign",  sc::select(x > T(0), T(1), sc::select(x < T(0), T(-1), x)), T(0),                           apart_from_zero(-2, 2, 0.1))

//        name        ONNX  forward             gradient of a   gradient of b      values for tests
OP_BINARY(fmod,       "",   fmod_of(a, b),      g,              -g * (a - y) / b,  in(0.6, 0.9))
OP_BINARY(remainder,  "",   remainder_of(a, b), g,              -g * (a - y) / b,  in(0.6, 0.9))
OP_BINARY(div_trunc,  "",   quotient_of(a, b),  T(0),           T(0),        in(0.6, 0.9))

OP_COMPARE(logical_and, "And", (a != T(0)) & (b != T(0)))
OP_COMPARE(logical_or,  "Or",  (a != T(0)) | (b != T(0)))
OP_COMPARE(logical_xor, "Xor", (a != T(0)) != (b != T(0)))

namespace {

enum class Bits : int64_t { land, lor, lxor, left, right };

struct Bitwise {
  static constexpr OpInfo info{"bitwise", "", Kind::pointwise};
  struct Attrs {
    int64_t what;
    template <class F> void fields(F&& f) const { f("what", what); }
  };
  static Meta infer(const Attrs&, const Meta& a, const Meta& b) {
    Meta m;
    m.dtype = result_type(a, b);
    if (is_floating(m.dtype)) throw Error(fmt::format("bits of {} are not worked on; integers and bool are", name(m.dtype)));
    m.shape = broadcast_shape(a.shape, b.shape);
    return m;
  }
  template <class T, Bits What> static void loop(char* const* d, const int64_t* s, int64_t n) {
    constexpr T width = sizeof(T) * 8;
    for (int64_t i = 0; i < n; ++i) {
      const T a = *reinterpret_cast<const T*>(d[1] + i * s[1]), b = *reinterpret_cast<const T*>(d[2] + i * s[2]);
      const bool far = b < 0 || b >= width;
      T y;
      if constexpr (What == Bits::land) y = a & b;
      else if constexpr (What == Bits::lor) y = a | b;
      else if constexpr (What == Bits::lxor) y = a ^ b;
      else if constexpr (What == Bits::left) y = far ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
      else y = far ? (a < 0 ? T(-1) : T(0)) : a >> b;
      *reinterpret_cast<T*>(d[0] + i * s[0]) = y;
    }
  }
  template <class T> static InnerLoop pick(Bits what) {
    switch (what) {
      case Bits::land: return loop<T, Bits::land>;
      case Bits::lor: return loop<T, Bits::lor>;
      case Bits::lxor: return loop<T, Bits::lxor>;
      case Bits::left: return loop<T, Bits::left>;
      default: return loop<T, Bits::right>;
    }
  }
  static void cpu(const Call& c) {
    const auto what = static_cast<Bits>(c.as<Attrs>().what);
    const DType t = c.out[0].dtype() == DType::i64 ? DType::i64 : DType::i32;
    strided_loop(c.out[0], c.in, 2, t, t, t == DType::i64 ? pick<int64_t>(what) : pick<int32_t>(what));
  }
  static void samples(Samples& s) {
    for (int64_t what = 0; what < 5; ++what) s.add(std::to_string(what), Attrs{what}, {s.indices({3, 4}, 7), s.indices({4}, 5)});
  }
};
const Register<Bitwise> bitwise_op;

Tensor bitwise(Bits what, const Tensor& a, const Tensor& b) { return apply<Bitwise>({static_cast<int64_t>(what)}, a, b); }

}  // namespace

Tensor logical_not(const Tensor& x) { return eq(x, 0); }
Tensor isnan(const Tensor& x) { return ne(x, x); }
Tensor isinf(const Tensor& x) { return is_floating(x.dtype()) ? eq(abs(x), INFINITY) : ne(x, x); }
Tensor isfinite(const Tensor& x) { return is_floating(x.dtype()) ? lt(abs(x), INFINITY) : eq(x, x); }

Tensor bitwise_and(const Tensor& a, const Tensor& b) { return bitwise(Bits::land, a, b); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) { return bitwise(Bits::lor, a, b); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) { return bitwise(Bits::lxor, a, b); }
Tensor bitwise_not(const Tensor& x) { return x.dtype() == DType::boolean ? logical_not(x) : bitwise_xor(x, scalar(x.dtype() == DType::u8 ? 255 : -1, x.dtype())); }
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b) { return bitwise(Bits::left, a, b); }
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b) { return bitwise(Bits::right, a, b); }

}  // namespace tenon
