#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/host_device.h"

// Scalar functions from which the formulas of pointwise ops are written. The float forms are branch-free, so that a
// loop over them vectorises (always inlined: a call would end that); the double forms are the C library's. One
// definition serves the dense, the strided and the fused gradient loop.
namespace tenon::sc {

template <class T>
requires std::is_arithmetic_v<T> TENON_HD constexpr T select(bool c, T a, T b) { return c ? a : b; }
/// By the bits: of a conditional with a costly side the compiler would make a branch, and no vector code.
TENON_HD constexpr float select(bool c, float a, float b) {
  int32_t mask = -static_cast<int32_t>(c);
  return std::bit_cast<float>((std::bit_cast<int32_t>(a) & mask) | (std::bit_cast<int32_t>(b) & ~mask));
}

/// Cephes expf: x = n ln2 + r, a polynomial in r, and 2^n applied in two halves so that results become subnormal or
/// infinite as they should.
[[gnu::always_inline]] TENON_HD inline float exp(float x) {
  float clamped = x > 89.0f ? 89.0f : (x < -104.0f ? -104.0f : x);
  float shifted = clamped * 1.44269504f + 12582912.0f;  // rounds to an integer in the low mantissa bits
  int32_t n = std::bit_cast<int32_t>(shifted) - 0x4B400000;
  float nf = shifted - 12582912.0f;
  float r = clamped - nf * 0.693359375f - nf * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int32_t half = n >> 1;
  float s1 = std::bit_cast<float>((half + 127) << 23), s2 = std::bit_cast<float>((n - half + 127) << 23);
  float y = p * s1 * s2;
  return x > 88.7228394f ? std::bit_cast<float>(0x7f800000) : y;
}
TENON_HD inline double exp(double x) { return std::exp(x); }

/// Cephes logf: mantissa in [sqrt(1/2), sqrt(2)), a polynomial, plus the exponent times ln2.
[[gnu::always_inline]] TENON_HD inline float log(float x) {
  bool small = x < 1.17549435e-38f;
  float scaled = small ? x * 8388608.0f : x;
  int32_t bits = std::bit_cast<int32_t>(scaled);
  int32_t e = ((bits >> 23) & 255) - 126 - (small ? 23 : 0);
  float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  bool low = m < 0.707106781f;
  e = low ? e - 1 : e;
  m = low ? m + m - 1.0f : m - 1.0f;
  float z = m * m, ef = static_cast<float>(e);
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = m * z * p + ef * -2.12194440e-4f - 0.5f * z;
  y = m + y + ef * 0.693359375f;
  y = x == 0.0f ? -std::bit_cast<float>(0x7f800000) : y;
  y = x == std::bit_cast<float>(0x7f800000) ? x : y;
  return x >= 0.0f ? y : std::bit_cast<float>(0x7fc00000);
}
TENON_HD inline double log(double x) { return std::log(x); }

/// Cephes tanhf: a polynomial below 0.625, 1 - 2 / (e^2x + 1) above.
[[gnu::always_inline]] TENON_HD inline float tanh(float x) {
  float a = x < 0.0f ? -x : x, z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = p * z * x + x;
  float big = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  big = x < 0.0f ? -big : big;
  return a < 0.625f ? small : (x == x ? big : x);
}
TENON_HD inline double tanh(double x) { return std::tanh(x); }

template <class T>
requires std::is_floating_point_v<T>
[[gnu::always_inline]] TENON_HD inline T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
/// log(1 + e^x) without overflow: max(x, 0) + log(1 + e^-|x|).
TENON_HD inline double softplus(double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(x < 0 ? x : -x)); }
/// The same branch-free: log(1 + u) keeps the digits of a small u by Kahan's quotient.
[[gnu::always_inline]] TENON_HD inline float softplus(float x) {
  float u = exp(x < 0.0f ? x : -x), y = 1.0f + u, d = y - 1.0f;
  float tail = select(d == 0.0f, u, log(y) * (u / (d == 0.0f ? 1.0f : d)));
  return (x > 0.0f ? x : (x == x ? 0.0f : x)) + tail;
}

TENON_HD inline float sqrt(float x) { return std::sqrt(x); }
TENON_HD inline double sqrt(double x) { return std::sqrt(x); }
/// Polynomials by minimax: in x^2 below 0.927, in |x| of the logarithm of 1 - erf above; within 2 ulp.
[[gnu::always_inline]] TENON_HD inline float erf(float x) {
  float a = x < 0.0f ? -x : x, s = x * x;
  float r = -1.72853470e-5f * a + 3.83197126e-4f, u = -3.88396438e-3f * a + 2.42546219e-2f;
  r = r * s + u;
  r = r * a - 1.06777877e-1f;
  r = r * a - 6.34846687e-1f;
  r = r * a - 1.28717512e-1f;
  r = r * a - a;
  float big = 1.0f - exp(r);
  big = x < 0.0f ? -big : big;
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  float small = p * x + x;
  return select(a > 0.927734375f, big, small);
}
TENON_HD inline double erf(double x) { return std::erf(x); }
TENON_HD inline float sin(float x) { return std::sin(x); }
TENON_HD inline double sin(double x) { return std::sin(x); }
TENON_HD inline float cos(float x) { return std::cos(x); }
TENON_HD inline double cos(double x) { return std::cos(x); }
template <class T>
requires std::is_arithmetic_v<T> TENON_HD inline T pow(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::pow(a, b);
  else {
    if (b < 0) return a == 1 ? T(1) : a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
    using U = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, int, T>>;
    U r = 1, base = static_cast<U>(a);
    for (U n = static_cast<U>(b); n; n >>= 1, base *= base)
      if (n & 1) r *= base;
    return static_cast<T>(r);
  }
}
template <class T>
requires std::is_arithmetic_v<T> TENON_HD constexpr T abs(T x) { return x < T(0) ? T(-x) : (x == T(0) ? T(0) : x); }

/// Stands for a value while asking what a gradient's formula reads: bit 0 is g, then x (a, b), then y.
struct Probe {
  unsigned mask = 0;
  bool just_g = false;
  constexpr Probe(double) {}
  constexpr Probe(unsigned m, bool g) : mask(m), just_g(g) {}
};
constexpr Probe operator+(Probe a, Probe b) { return {a.mask | b.mask, false}; }
constexpr Probe operator-(Probe a, Probe b) { return {a.mask | b.mask, false}; }
constexpr Probe operator*(Probe a, Probe b) { return {a.mask | b.mask, false}; }
constexpr Probe operator/(Probe a, Probe b) { return {a.mask | b.mask, false}; }
constexpr Probe operator-(Probe a) { return {a.mask, false}; }
constexpr Probe operator>(Probe a, Probe b) { return a + b; }
constexpr Probe operator<(Probe a, Probe b) { return a + b; }
constexpr Probe operator>=(Probe a, Probe b) { return a + b; }
constexpr Probe operator<=(Probe a, Probe b) { return a + b; }
constexpr Probe operator==(Probe a, Probe b) { return a + b; }
constexpr Probe select(Probe c, Probe a, Probe b) { return c + a + b; }
constexpr Probe exp(Probe a) { return -a; }
constexpr Probe log(Probe a) { return -a; }
constexpr Probe tanh(Probe a) { return -a; }
constexpr Probe sigmoid(Probe a) { return -a; }
constexpr Probe softplus(Probe a) { return -a; }
constexpr Probe sqrt(Probe a) { return -a; }
constexpr Probe erf(Probe a) { return -a; }
constexpr Probe sin(Probe a) { return -a; }
constexpr Probe cos(Probe a) { return -a; }
constexpr Probe abs(Probe a) { return -a; }
constexpr Probe pow(Probe a, Probe b) { return a + b; }

}  // namespace tenon::sc
