#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "engine/op/scalar.h"

// Scalar functions behind the elementary and special ops: the C library's, and what it lacks.
namespace tenon::sc {

template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Whole = std::is_integral_v<T>;

#define TENON_FROM_C(NAME)      \
  template <Real T>             \
  TENON_HD inline T NAME(T x) { \
    return std::NAME(x);        \
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
TENON_HD inline T floor(T x) {
  return x;
}
template <Whole T>
TENON_HD inline T ceil(T x) {
  return x;
}
template <Whole T>
TENON_HD inline T trunc(T x) {
  return x;
}
template <Real T>
TENON_HD inline T round(T x) {
  return std::nearbyint(x);
}
template <Whole T>
TENON_HD inline T round(T x) {
  return x;
}
template <class T>
TENON_HD inline T sign(T x) {
  return T((x > T(0)) - (x < T(0))) + (x == x ? T(0) : x);
}

template <Real T>
TENON_HD inline T sinc(T x) {
  T p = x * T(3.14159265358979323846);
  return x == T(0) ? T(1) : std::sin(p) / p;
}

// lgamma() of the C library writes a global; lgamma_r() does not.
TENON_HD inline double lgamma(double x) {
#ifdef __CUDA_ARCH__
  return ::lgamma(x);
#else
  int ignored;
  return ::lgamma_r(x, &ignored);
#endif
}
TENON_HD inline float lgamma(float x) { return static_cast<float>(lgamma(static_cast<double>(x))); }

/// Giles 2010, "Approximating the erfinv function", refined by two Newton steps on erf.
TENON_HD inline double erfinv(double y) {
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
TENON_HD inline float erfinv(float y) { return static_cast<float>(erfinv(static_cast<double>(y))); }

template <Real T>
TENON_HD inline T remainder(T a, T b) {
  T r = std::fmod(a, b);
  return r != T(0) && ((r < T(0)) != (b < T(0))) ? r + b : r;
}
template <Whole T>
TENON_HD inline T remainder(T a, T b) {
  if (b == 0 || b == T(-1)) return 0;
  T r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
template <Real T>
TENON_HD inline T fmod(T a, T b) {
  return std::fmod(a, b);
}
template <Whole T>
TENON_HD inline T fmod(T a, T b) {
  return b == 0 || b == T(-1) ? 0 : a % b;
}
template <Real T>
TENON_HD inline T floor_divide(T a, T b) {
  T q = (a - remainder(a, b)) / b;  // exact where floor(a / b) may round up to the next whole number
  return b == T(0) ? a / b : std::floor(q + T(0.5));
}
template <Whole T>
TENON_HD inline T floor_divide(T a, T b) {
  if (b == 0) return 0;
  if (b == T(-1)) return static_cast<T>(-a);
  T q = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q;
}
template <class T>
TENON_HD inline T shift_left(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? T(0) : static_cast<T>(static_cast<U>(a) << b);
}
template <class T>
TENON_HD inline T shift_right(T a, T b) {
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? (a < 0 ? T(-1) : T(0)) : static_cast<T>(a >> b);
}
template <class T>
TENON_HD inline T magnitude(T a) {
  return a < 0 ? static_cast<T>(-a) : a;
}
template <class T>
TENON_HD inline T gcd(T a, T b) {
  while (b) a = std::exchange(b, b == T(-1) ? T(0) : static_cast<T>(a % b));
  return magnitude(a);
}
template <class T>
TENON_HD inline T lcm(T a, T b) {
  T g = gcd(a, b);
  return g == 0 ? T(0) : magnitude(static_cast<T>(a / g * b));
}
template <Real T>
TENON_HD inline T atan2(T a, T b) {
  return std::atan2(a, b);
}
template <Real T>
TENON_HD inline T hypot(T a, T b) {
  return std::hypot(a, b);
}
template <Real T>
TENON_HD inline T copysign(T a, T b) {
  return std::copysign(a, b);
}
template <Real T>
TENON_HD inline T logaddexp(T a, T b) {
  if (a == b && std::isinf(a)) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))) + (a + b == a + b ? T(0) : a + b);
}
template <Real T>
TENON_HD inline T xlogy(T a, T b) {
  return a == T(0) && b == b ? T(0) : a * std::log(b);
}

/// Hurwitz's zeta(s, x) by Euler and Maclaurin (Abramowitz and Stegun 23.2), x > 0.
TENON_HD inline double zeta(double s, double x) {
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
TENON_HD inline double digamma(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0) return x == std::floor(x) ? NAN : digamma(1 - x) - M_PI / std::tan(M_PI * x);
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  double z = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132)))));
}
TENON_HD inline float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }

TENON_HD inline double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  double factorial = 1;
  for (int64_t k = 2; k <= n; ++k) factorial *= static_cast<double>(k);
  return (n % 2 ? factorial : -factorial) * zeta(static_cast<double>(n + 1), x);
}

}  // namespace tenon::sc
