#include "engine/kernels/tiles.h"

#include "core/vectors.h"
#include "engine/kernels/lanes.h"

namespace tenon::kernels {
namespace narrow_tiles {
namespace {

template <class T>
using Lane = Lanes<T>;
constexpr int kTall = 6;  // 12 sums, two lanes of B and an element of A in 16 registers
constexpr int kFew = 8;
#include "engine/kernels/tiles.inc"

}  // namespace
}  // namespace narrow_tiles

#if TENON_WIDE_VECTORS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,prefer-vector-width=512")
namespace wide_tiles {
namespace {

/// 64 bytes of them.
template <class T>
struct Lane;
template <>
struct Lane<float> {
  static constexpr int count = 16;
  __m512 v;
  static Lane zero() { return {_mm512_setzero_ps()}; }
  static Lane load(const float* p) { return {_mm512_loadu_ps(p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void add_product(float x, const Lane& y) { v = _mm512_fmadd_ps(_mm512_set1_ps(x), y.v, v); }
  void add(const Lane& x) { v = _mm512_add_ps(v, x.v); }
};
template <>
struct Lane<double> {
  static constexpr int count = 8;
  __m512d v;
  static Lane zero() { return {_mm512_setzero_pd()}; }
  static Lane load(const double* p) { return {_mm512_loadu_pd(p)}; }
  void store(double* p) const { _mm512_storeu_pd(p, v); }
  void add_product(double x, const Lane& y) { v = _mm512_fmadd_pd(_mm512_set1_pd(x), y.v, v); }
  void add(const Lane& x) { v = _mm512_add_pd(v, x.v); }
};
constexpr int kTall = 12;  // 24 sums, two lanes of B and an element of A in 32 registers
constexpr int kFew = 36;
#include "engine/kernels/tiles.inc"

}  // namespace
}  // namespace wide_tiles
#pragma GCC pop_options
#define WIDE_OR_NARROW(tiles) return has_wide_vectors() ? wide_tiles::tiles : narrow_tiles::tiles
#else
#define WIDE_OR_NARROW(tiles) return narrow_tiles::tiles
#endif

template <>
const ProductTiles<float>& product_tiles<float>() {
  WIDE_OR_NARROW(kProductTiles<float>);
}
template <>
const ProductTiles<double>& product_tiles<double>() {
  WIDE_OR_NARROW(kProductTiles<double>);
}

}  // namespace tenon::kernels
