#include <limits>
#include <numeric>

#include "engine/op/parametric.h"
#include "engine/op/pointwise.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/pointwise.h"

// Elementary and special functions beyond those of pointwise.cpp. Their forward forms are the C library's.
namespace tenon {

namespace sc {
namespace {

template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Whole = std::is_integral_v<T>;

#define TENON_FROM_C(NAME) \
  template <Real T>        \
  T NAME(T x) {            \
    return std::NAME(x);   \
  }
TENON_FROM_C(expm1)
TENON_FROM_C(exp2)
TENON_FROM_C(log2)
TENON_FROM_C(log10)
TENON_FROM_C(log1p)
TENON_FROM_C(tan)
TENON_FROM_C(asin)
TENON_FROM_C(acos)
TENON_FROM_C(atan)
TENON_FROM_C(sinh)
TENON_FROM_C(cosh)
TENON_FROM_C(asinh)
TENON_FROM_C(acosh)
TENON_FROM_C(atanh)
TENON_FROM_C(erfc)
TENON_FROM_C(floor)
TENON_FROM_C(ceil)
TENON_FROM_C(trunc)
#undef TENON_FROM_C
template <Whole T>
T floor(T x) {
  return x;
}
template <Whole T>
T ceil(T x) {
  return x;
}
template <Whole T>
T trunc(T x) {
  return x;
}
template <Real T>
T round(T x) {
  return std::nearbyint(x);
}
template <Whole T>
T round(T x) {
  return x;
}
template <class T>
T sign(T x) {
  return T((x > T(0)) - (x < T(0))) + (x == x ? T(0) : x);
}

template <Real T>
T sinc(T x) {
  T p = x * T(3.14159265358979323846);
  return x == T(0) ? T(1) : std::sin(p) / p;
}

// lgamma() of the C library writes a global; this form does not.
inline double lgamma(double x) {
  int ignored;
  return ::lgamma_r(x, &ignored);
}
inline float lgamma(float x) { return static_cast<float>(lgamma(static_cast<double>(x))); }

/// Giles 2010, "Approximating the erfinv function", refined by two Newton steps on erf.
inline double erfinv(double y) {
  if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  double w = -std::log((1 - y) * (1 + y)), x;
  if (w < 5) {
    w -= 2.5;
    x = 2.81022636e-08;
    for (double c : {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
                     0.246640727, 1.50140941})
      x = c + x * w;
  } else {
    w = std::sqrt(w) - 3;
    x = -0.000200214257;
    for (double c : {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
                     1.00167406, 2.83297682})
      x = c + x * w;
  }
  x *= y;
  for (int i = 0; i < 2; ++i) {
    // Where erf has no digits left, its complement does.
    double off = std::abs(y) < 0.5 ? std::erf(x) - y : y > 0 ? (1 - y) - std::erfc(x) : std::erfc(-x) - (1 + y);
    x -= off / (1.1283791670955126 * std::exp(-x * x));
  }
  return x;
}
inline float erfinv(float y) { return static_cast<float>(erfinv(static_cast<double>(y))); }

template <Real T>
T remainder(T a, T b) {
  T r = std::fmod(a, b);
  return r != T(0) && ((r < T(0)) != (b < T(0))) ? r + b : r;
}
template <Whole T>
T remainder(T a, T b) {
  if (b == 0 || b == T(-1)) return 0;
  T r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
template <Real T>
T fmod(T a, T b) {
  return std::fmod(a, b);
}
template <Whole T>
T fmod(T a, T b) {
  return b == 0 || b == T(-1) ? 0 : a % b;
}
template <Real T>
T floor_divide(T a, T b) {
  T q = (a - remainder(a, b)) / b;  // exact where floor(a / b) may round up to the next whole number
  return b == T(0) ? a / b : std::floor(q + T(0.5));
}
template <Whole T>
T floor_divide(T a, T b) {
  if (b == 0) return 0;
  if (b == T(-1)) return static_cast<T>(-a);
  T q = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q;
}
template <class T>
T shift_left(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? T(0) : static_cast<T>(static_cast<U>(a) << b);
}
template <class T>
T shift_right(T a, T b) {
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? (a < 0 ? T(-1) : T(0)) : static_cast<T>(a >> b);
}
template <class T>
T magnitude(T a) {
  return a < 0 ? static_cast<T>(-a) : a;
}
template <class T>
T gcd(T a, T b) {
  while (b) a = std::exchange(b, b == T(-1) ? T(0) : static_cast<T>(a % b));
  return magnitude(a);
}
template <class T>
T lcm(T a, T b) {
  T g = gcd(a, b);
  return g == 0 ? T(0) : magnitude(static_cast<T>(a / g * b));
}
template <Real T>
T atan2(T a, T b) {
  return std::atan2(a, b);
}
template <Real T>
T hypot(T a, T b) {
  return std::hypot(a, b);
}
template <Real T>
T copysign(T a, T b) {
  return std::copysign(a, b);
}
template <Real T>
T logaddexp(T a, T b) {
  if (a == b && std::isinf(a)) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))) + (a + b == a + b ? T(0) : a + b);
}
template <Real T>
T xlogy(T a, T b) {
  return a == T(0) && b == b ? T(0) : a * std::log(b);
}

// The same names for gradients made of public ops, and for the probe.
#define TENON_GRADIENT_FORM(NAME)                                       \
  Value NAME(const Value& x) { return Value(tenon::NAME(x.tensor())); } \
  constexpr Probe NAME(Probe x) { return -x; }
TENON_GRADIENT_FORM(sinh)
TENON_GRADIENT_FORM(cosh)
TENON_GRADIENT_FORM(floor)
TENON_GRADIENT_FORM(trunc)
TENON_GRADIENT_FORM(digamma)
#undef TENON_GRADIENT_FORM

/// Hurwitz's zeta(s, x) by Euler and Maclaurin (Abramowitz and Stegun 23.2), x > 0.
double zeta(double s, double x) {
  constexpr int kTerms = 12;
  constexpr double b[] = {
      1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0, 1.0 / 74724249600.0};
  double sum = 0;
  for (int k = 0; k < kTerms; ++k) sum += std::pow(x + k, -s);
  double y = x + kTerms, term = std::pow(y, -s);
  sum += y * term / (s - 1) + term / 2;
  double rising = s, power = term / y;
  for (int k = 0; k < 7; ++k) {
    sum += b[k] * rising * power;
    rising *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= y * y;
  }
  return sum;
}

/// psi(x): the reflection below 0, the recurrence up to 10, then the asymptotic series.
double digamma(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0) return x == std::floor(x) ? NAN : digamma(1 - x) - M_PI / std::tan(M_PI * x);
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  double z = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132)))));
}
float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }

double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  double factorial = 1;
  for (int64_t k = 2; k <= n; ++k) factorial *= static_cast<double>(k);
  return (n % 2 ? factorial : -factorial) * zeta(static_cast<double>(n + 1), x);
}

}  // namespace
}  // namespace sc

// name, name in ONNX, forward(x), gradient(g, x, y), values for tests
OP_UNARY_ANY(sign, "Sign", sc::sign(x), g* T(0), apart_from_zero(-2, 2, 0.1))
OP_UNARY_ANY(floor, "Floor", sc::floor(x), g* T(0), in(0.1, 0.9))
OP_UNARY_ANY(ceil, "Ceil", sc::ceil(x), g* T(0), in(0.1, 0.9))
OP_UNARY_ANY(round, "Round", sc::round(x), g* T(0), in(0.6, 1.4))
// Its gradient takes it for a straight line between the ends, where finite differences see stairs: they hold outside.
OP_PARAMETRIC(straight_round, "", sc::select(sc::round(x) < a, a, sc::select(sc::round(x) > b, b, sc::round(x))),
              sc::select(x >= a - T(0.5), sc::select(x <= b + T(0.5), g, T(0)), T(0)), in(2, 3), -1, 1, (void)o)
OP_UNARY_ANY(trunc, "", sc::trunc(x), g* T(0), in(0.1, 0.9))
OP_UNARY(frac, "", x - sc::trunc(x), g, in(0.1, 0.9))
OP_UNARY(exp2, "", sc::exp2(x), g* y* T(0.69314718055994531), in(-2, 2))
OP_UNARY(expm1, "", sc::expm1(x), g*(y + T(1)), in(-2, 2))
OP_UNARY(log2, "", sc::log2(x), g / (x * T(0.69314718055994531)), in(0.2, 3))
OP_UNARY(log10, "", sc::log10(x), g / (x * T(2.3025850929940457)), in(0.2, 3))
OP_UNARY(log1p, "", sc::log1p(x), g / (x + T(1)), in(-0.5, 3))
namespace {
const bool log1p_by_log = (
    Register<pointwise::Unary<log1p_formula>>::def().decompose =
        [](const void*, const std::vector<Tensor>& in) { return log(add(in[0], 1)); },
    true);
}  // namespace
OP_UNARY(logit, "", sc::log(x / (T(1) - x)), g / (x * (T(1) - x)), in(0.1, 0.9))
OP_UNARY(tan, "Tan", sc::tan(x), g*(T(1) + y * y), in(-1, 1))
OP_UNARY(asin, "Asin", sc::asin(x), g / sc::sqrt(T(1) - x * x), in(-0.8, 0.8))
OP_UNARY(acos, "Acos", sc::acos(x), -g / sc::sqrt(T(1) - x * x), in(-0.8, 0.8))
OP_UNARY(atan, "Atan", sc::atan(x), g / (T(1) + x * x), in(-2, 2))
OP_UNARY(sinh, "Sinh", sc::sinh(x), g* sc::cosh(x), in(-2, 2))
OP_UNARY(cosh, "Cosh", sc::cosh(x), g* sc::sinh(x), in(-2, 2))
OP_UNARY(asinh, "Asinh", sc::asinh(x), g / sc::sqrt(x * x + T(1)), in(-2, 2))
OP_UNARY(acosh, "Acosh", sc::acosh(x), g / sc::sqrt(x * x - T(1)), in(1.3, 3))
OP_UNARY(atanh, "Atanh", sc::atanh(x), g / (T(1) - x * x), in(-0.8, 0.8))
OP_UNARY(erfc, "", sc::erfc(x), g* T(-1.1283791670955126) * sc::exp(-x * x), in(-2, 2))
OP_UNARY(erfinv, "", sc::erfinv(x), g* T(0.88622692545275801) * sc::exp(y * y), in(-0.8, 0.8))
OP_UNARY(lgamma, "", sc::lgamma(x), g* sc::digamma(x), in(0.5, 4))
OP_UNARY(deg2rad, "", x* T(0.017453292519943295), g* T(0.017453292519943295), in(-180, 180))
OP_UNARY(rad2deg, "", x* T(57.295779513082321), g* T(57.295779513082321), in(-3, 3))

namespace {
// (cos(pi x) - sinc(x)) / x; 0 at 0, where the quotient has no digits.
template <class T>
[[gnu::always_inline]] constexpr T sinc_slope(T x) {
  return sc::select(x == T(0), T(0),
                    (sc::cos(x * T(3.14159265358979323846)) -
                     sc::sin(x * T(3.14159265358979323846)) / (x * T(3.14159265358979323846))) /
                        x);
}
}  // namespace
OP_UNARY(sinc, "", sc::sinc(x), g* sinc_slope(x), apart_from_zero(-2, 2, 0.3))

// name, name in ONNX, forward(a, b), gradient of a, gradient of b, values for tests
OP_BINARY(remainder, "", sc::remainder(a, b), g, -g* sc::floor(a / b), in(0.6, 0.9))
OP_BINARY(fmod, "", sc::fmod(a, b), g, -g* sc::trunc(a / b), in(0.6, 0.9))
OP_BINARY_FLOAT(atan2, "", sc::atan2(a, b), g* b / (a * a + b * b), -g* a / (a * a + b * b),
                apart_from_zero(-2, 2, 0.3))
OP_BINARY_FLOAT(hypot, "", sc::hypot(a, b), g* a / y, g* b / y, apart_from_zero(-2, 2, 0.3))
OP_BINARY_FLOAT(logaddexp, "", sc::logaddexp(a, b), g* sc::exp(a - y), g* sc::exp(b - y), in(-2, 2))
OP_BINARY_FLOAT(xlogy, "", sc::xlogy(a, b), sc::select(a == T(0), T(0), g* sc::log(b)), g* a / b, in(0.3, 2))
OP_BINARY_FLOAT(copysign, "", sc::copysign(a, b), sc::select(a == T(0), T(0), g* y / a), T(0) * g,
                apart_from_zero(-2, 2, 0.3))

OP_COMPARE(logical_and, "And", (a != T(0)) & (b != T(0)))
OP_COMPARE(logical_or, "Or", (a != T(0)) | (b != T(0)))
OP_COMPARE(logical_xor, "Xor", (a != T(0)) != (b != T(0)))

OP_BITS(bitwise_and, "BitwiseAnd", a& b)
OP_BITS(bitwise_or, "BitwiseOr", a | b)
OP_BITS(bitwise_xor, "BitwiseXor", a ^ b)
OP_BITS(bitwise_left_shift, "", sc::shift_left(a, b))
OP_BITS(bitwise_right_shift, "", sc::shift_right(a, b))
OP_BITS(gcd, "", sc::gcd(a, b))
OP_BITS(lcm, "", sc::lcm(a, b))

OP_TEST(isnan, "IsNaN", x != x)
OP_TEST(isinf, "IsInf", sc::abs(x) == std::numeric_limits<T>::infinity() && std::numeric_limits<T>::has_infinity)
OP_TEST(isfinite, "", x - x == T(0))
OP_TEST(logical_not, "", x == T(0))

namespace {

/// Not differentiable: the derivative is 0 almost everywhere.
struct FloorDivide {
  static constexpr const char* name = "floor_divide";
  static constexpr OpInfo info{"floor_divide", "", OpKind::pointwise};
  static constexpr pointwise::Types types = pointwise::Types::any;
  template <class T>
  static T forward(T a, T b) {
    return sc::floor_divide(a, b);
  }
  static Meta infer(const NoAttrs&, const Meta& a, const Meta& b) { return pointwise::infer_binary(a, b, types); }
  static void cpu(const Call& c) {
    pointwise::run_loops(c,
                         {pointwise::forward2<FloorDivide, float>, pointwise::forward2<FloorDivide, double>,
                          pointwise::forward2<FloorDivide, int32_t>, pointwise::forward2<FloorDivide, int64_t>},
                         types);
  }
  static void samples(Samples& s) {
    s.add("integers", NoAttrs{}, {s.values({7}, {-9, 9}, DType::i64), s.values({7}, {1, 5}, DType::i64)});
    s.add("numbers", NoAttrs{}, {s.values({7}, {1, 9}), s.values({7}, {1, 2})});
  }
};
const Register<FloorDivide> floor_divide_op;

struct Polygamma {
  static constexpr OpInfo info{"polygamma", "", OpKind::other};
  struct Attrs {
    int64_t n;
    template <class F>
    void fields(F&& f) const {
      f("n", n);
    }
  };
  static constexpr Saves saves{1, 0};
  static Meta infer(const Attrs& a, const Meta& x) {
    if (a.n < 0) throw Error("polygamma: n is below 0");
    return pointwise::infer_unary(x, pointwise::Types::floating);
  }
  static size_t workspace(const Attrs&, const Call& c) {
    kernels::Room room;
    ops::target(c, 0, DType::f64, room);
    return room.used();
  }
  static void cpu(const Call& c) {
    int64_t n = c.as<Attrs>().n;
    kernels::Room room(c.workspace);
    const Tensor y = ops::target(c, 0, DType::f64, room);
    copy_(y, c.in[0]);
    for (int64_t i = 0; i < y.numel(); ++i) y.data<double>()[i] = sc::polygamma(n, y.data<double>()[i]);
    ops::finished(c, 0, y);
  }
  static void backward(Grad& d) { d.in(0) = mul(d.out(), polygamma(d.as<Attrs>().n + 1, d.x(0))); }
  static void samples(Samples& s) {
    s.add("digamma", Attrs{0}, {s.values({3, 2}, {0.5, 4})});
    s.add("second", Attrs{2}, {s.values({3}, {0.5, 4})});
  }
};
const Register<Polygamma> polygamma_op;

}  // namespace

Tensor polygamma(int64_t n, const Tensor& x) { return apply<Polygamma>({n}, x); }
Tensor digamma(const Tensor& x) { return polygamma(0, x); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return apply<FloorDivide>({}, a, b); }
Tensor floor_divide(const Tensor& a, double b) { return floor_divide(a, scalar_like(b, a)); }
Tensor bitwise_not(const Tensor& x) { return x.dtype() == DType::boolean ? logical_not(x) : sub(neg(x), 1); }

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) { return add(a, mul(weight, sub(b, a))); }
Tensor lerp(const Tensor& a, const Tensor& b, double weight) { return add(a, mul(sub(b, a), weight)); }
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  Tensor p = mul(a, b);
  return add(x, value == 1 ? p : mul(p, value));
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  Tensor q = div(a, b);
  return add(x, value == 1 ? q : mul(q, value));
}

Tensor clamp(const Tensor& x, const Tensor& min, const Tensor& max) {
  Tensor y = x;
  if (min) y = where(lt(y, min), min, y);
  if (max) y = where(gt(y, max), max, y);
  return y;
}
namespace {
const bool straight_round_decomposes = [] {
  Register<pointwise::Parametric<straight_round_formula>>::def().decompose = [](const void* attrs,
                                                                                const std::vector<Tensor>& in) {
    const auto& p = *static_cast<const pointwise::ParametricAttrs*>(attrs);
    return minimum(maximum(round(in[0]), p.a), p.b);
  };
  return true;
}();
}  // namespace

Tensor fake_quantize(const Tensor& x, const Tensor& scale, double lo, double hi) {
  return mul(straight_round_with(div(x, scale), lo, hi), scale);
}

Tensor clamp(const Tensor& x, double min, double max) {
  return clamp(x, min == -INFINITY ? Tensor() : scalar_like(min, x), max == INFINITY ? Tensor() : scalar_like(max, x));
}

}  // namespace tenon
