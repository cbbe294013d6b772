#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tenon::kernels {

// Note [Fused multiply-add]
// The build forbids contraction so that every form of a formula gives the same bits. Inside a product there is only
// this form, and the fused instruction halves its cost, so it is asked for by name. Lanes and scalars round alike.
inline float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }

#if defined(__AVX2__)
/// turned[i] is column i of the 8 rows.
inline void turn_8x8(const float* from, int64_t from_row, __m256 (&turned)[8]) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_row);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    turned[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    turned[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
}
#endif

/// Calls f(std::integral_constant<int, count>{}) for a count of 1 to 6: the rows that a loop keeps in registers.
template <class F>
inline void with_count(int64_t count, const F& f) {
  switch (count) {
    case 6:
      return f(std::integral_constant<int, 6>{});
    case 5:
      return f(std::integral_constant<int, 5>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    default:
      return f(std::integral_constant<int, 1>{});
  }
}

/// 32 bytes of lanes.
template <class T>
struct Lanes;
#if defined(__AVX2__) && defined(__FMA__)
template <>
struct Lanes<float> {
  static constexpr int count = 8;
  __m256 v;
  static Lanes zero() { return {_mm256_setzero_ps()}; }
  static Lanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void add_product(float x, const Lanes& y) { v = _mm256_fmadd_ps(_mm256_set1_ps(x), y.v, v); }
  void add_products(const Lanes& x, const Lanes& y) { v = _mm256_fmadd_ps(x.v, y.v, v); }
  void add(const Lanes& x) { v = _mm256_add_ps(v, x.v); }
  /// Halves are added to halves: lane 0 to 4, then 0 to 2, then 0 to 1.
  float sum() const {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
};
template <>
struct Lanes<double> {
  static constexpr int count = 4;
  __m256d v;
  static Lanes zero() { return {_mm256_setzero_pd()}; }
  static Lanes load(const double* p) { return {_mm256_loadu_pd(p)}; }
  void store(double* p) const { _mm256_storeu_pd(p, v); }
  void add_product(double x, const Lanes& y) { v = _mm256_fmadd_pd(_mm256_set1_pd(x), y.v, v); }
  void add_products(const Lanes& x, const Lanes& y) { v = _mm256_fmadd_pd(x.v, y.v, v); }
  void add(const Lanes& x) { v = _mm256_add_pd(v, x.v); }
  double sum() const {
    const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
  }
};
#else
template <class T>
struct Lanes {
  static constexpr int count = 32 / sizeof(T);
  T v[count];
  static Lanes zero() { return {}; }
  static Lanes load(const T* p) {
    Lanes l;
    std::copy_n(p, count, l.v);
    return l;
  }
  void store(T* p) const { std::copy_n(v, count, p); }
  void add_product(T x, const Lanes& y) {
    for (int i = 0; i < count; ++i) v[i] = fma_(x, y.v[i], v[i]);
  }
  void add_products(const Lanes& x, const Lanes& y) {
    for (int i = 0; i < count; ++i) v[i] = fma_(x.v[i], y.v[i], v[i]);
  }
  void add(const Lanes& x) {
    for (int i = 0; i < count; ++i) v[i] += x.v[i];
  }
  T sum() const {
    Lanes s = *this;
    for (int n = count / 2; n >= 1; n /= 2)
      for (int i = 0; i < n; ++i) s.v[i] += s.v[i + n];
    return s.v[0];
  }
};
#endif

}  // namespace tenon::kernels
