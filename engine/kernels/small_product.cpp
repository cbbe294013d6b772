#include "engine/kernels/small_product.h"

#include <algorithm>
#include <type_traits>

#include "engine/kernels/lanes.h"
#include "engine/kernels/tiled_gemm.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kTinyB = 4096;     // elements of B that fit the stack copy
constexpr int64_t kRowPiece = 1024;  // columns of a row that are added up together, in the first-level cache

#if defined(__AVX2__)
void transpose_8x8(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m256 turned[8];
  turn_8x8(from, from_row, turned);
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to + i * to_row, turned[i]);
}
#endif

/// R rows and W lanes of C, accumulated over k in order, in registers. B is row-major here.
template <class T, int W, int R>
inline void tile(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc,
                 Start<T> start) {
  using L = Lanes<T>;
  L acc[R][W];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) acc[r][j] = start.at ? L::load(start.at + r * start.row + j * L::count) : L::zero();
  for (int64_t p = 0; p < k; ++p) {
    L row[W];
    for (int j = 0; j < W; ++j) row[j] = L::load(b + p * ldb + j * L::count);
    for (int r = 0; r < R; ++r) {
      T x = a[r * a_row + p * a_col];
      for (int j = 0; j < W; ++j) acc[r][j].add_product(x, row[j]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < W; ++j) acc[r][j].store(c + r * ldc + j * L::count);
}

/// R rows of one column.
template <class T, int R>
inline void column(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c, int64_t ldc,
                   Start<T> start) {
  T acc[R];
  for (int r = 0; r < R; ++r) acc[r] = start.one(r);
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < R; ++r) acc[r] = fma_(a[r * a_row + p * a_col], b[p * ldb], acc[r]);
  for (int r = 0; r < R; ++r) c[r * ldc] = acc[r];
}

template <class T, int R>
inline void rows(int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c,
                 int64_t ldc, Start<T> start) {
  constexpr int L = Lanes<T>::count;
  int64_t j = 0;
  for (; j + 2 * L <= n; j += 2 * L) tile<T, 2, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, start.from(0, j));
  if (j + L <= n) {
    tile<T, 1, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, start.from(0, j));
    j += L;
  }
  for (; j < n; ++j) column<T, R>(k, a, a_row, a_col, b + j, ldb, c + j, ldc, start.from(0, j));
}

template <class T>
void plain(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t ldb, T* c,
           int64_t ldc, Start<T> start) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) rows<T, 4>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, start.from(i, 0));
  for (; i < m; ++i) rows<T, 1>(n, k, a + i * a_row, a_row, a_col, b, ldb, c + i * ldc, ldc, start.from(i, 0));
}

/// to[p * to_ld + j] = b[j * ldb + p], a block at a time so that neither side strides far.
template <class T>
void transpose_blocks(int64_t n, int64_t k, const T* b, int64_t ldb, T* out, int64_t to_ld) {
  constexpr int64_t B = 8;
  for (int64_t j0 = 0; j0 < n; j0 += B)
    for (int64_t p0 = 0; p0 < k; p0 += B) {
      int64_t jn = std::min(B, n - j0), pn = std::min(B, k - p0);
      const T* from = b + j0 * ldb + p0;
      T* to = out + p0 * to_ld + j0;
#if defined(__AVX2__)
      if constexpr (sizeof(T) == 4) {
        if (jn == B && pn == B) {
          transpose_8x8(from, ldb, to, to_ld);
          continue;
        }
      }
#endif
      for (int64_t p = 0; p < pn; ++p)
        for (int64_t j = 0; j < jn; ++j) to[p * to_ld + j] = from[j * ldb + p];
    }
}

/// The sum of the lanes of each, in the order of Lanes::sum(): four at a time where they are f32.
template <class T, int N>
inline void lane_sums(const Lanes<T> (&of)[N], T (&sums)[N]) {
  int i = 0;
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (sizeof(T) == 4)
    for (; i + 4 <= N; i += 4) {
      __m128 q[4];
      for (int x = 0; x < 4; ++x) {
        const __m256 v = of[i + x].v;
        q[x] = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
      }
      const __m128 first = _mm_add_ps(_mm_movelh_ps(q[0], q[1]), _mm_movehl_ps(q[1], q[0]));
      const __m128 last = _mm_add_ps(_mm_movelh_ps(q[2], q[3]), _mm_movehl_ps(q[3], q[2]));
      _mm_storeu_ps(sums + i, _mm_add_ps(_mm_shuffle_ps(first, last, _MM_SHUFFLE(2, 0, 2, 0)),
                                         _mm_shuffle_ps(first, last, _MM_SHUFFLE(3, 1, 3, 1))));
    }
#endif
  for (; i < N; ++i) sums[i] = of[i].sum();
}

/// Dot products of M rows of A with R rows of a transposed B, too large to copy: sums[m][r]. Each has two chains of
/// lanes, added in a fixed order, whatever is computed beside it.
template <class T, int M, int R>
inline void dots(int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T (&sums)[M][R]) {
  using L = Lanes<T>;
  L acc[M][R][2];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[m][r][0] = acc[m][r][1] = L::zero();
  int64_t p = 0;
  for (; p + 2 * L::count <= k; p += 2 * L::count)
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int64_t at = p + half * L::count;
      L x[M];
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) x[m] = L::load(a + m * lda + at);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const L y = L::load(b + r * ldb + at);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) acc[m][r][half].add_products(x[m], y);
      }
    }
  T all[M * R];
  L halves[M * R];
  for (int i = 0; i < M * R; ++i) {
    halves[i] = acc[i / R][i % R][0];
    halves[i].add(acc[i / R][i % R][1]);
  }
  lane_sums(halves, all);
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) {
      sums[m][r] = all[m * R + r];
      for (int64_t q = p; q < k; ++q) sums[m][r] = fma_(a[m * lda + q], b[r * ldb + q], sums[m][r]);
    }
}

/// M rows of C by all rows of a transposed B, R at a time.
template <class T, int M, int R>
void rows_of_dots(int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
                  Start<T> start) {
  const auto store = [&](int m, int64_t j, T sum) { c[m * ldc + j] = start.at ? start.from(m, j).one(0) + sum : sum; };
  int64_t j = 0;
  for (; j + R <= n; j += R) {
    T sums[M][R];
    dots<T, M, R>(k, a, lda, b + j * ldb, ldb, sums);
    for (int m = 0; m < M; ++m)
      for (int r = 0; r < R; ++r) store(m, j + r, sums[m][r]);
  }
  for (; j < n; ++j) {
    T sums[M][1];
    dots<T, M, 1>(k, a, lda, b + j * ldb, ldb, sums);
    for (int m = 0; m < M; ++m) store(m, j, sums[m][0]);
  }
}

/// One row of C by a transposed B: each element is one chain over k in order, as in tile(), but B is turned in
/// registers alone.
template <class T>
void one_row(int64_t n, int64_t k, const T* a, int64_t a_col, const T* b, int64_t ldb, T* c, Start<T> start) {
  int64_t j = 0;
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (sizeof(T) == 4)
    for (; j + 8 <= n; j += 8) {
      __m256 acc = start.at ? _mm256_loadu_ps(start.at + j) : _mm256_setzero_ps();
      const float* rows = b + j * ldb;
      int64_t p = 0;
      for (; p + 8 <= k; p += 8) {
        __m256 columns[8];
        turn_8x8(rows + p, ldb, columns);
        for (int i = 0; i < 8; ++i) acc = _mm256_fmadd_ps(_mm256_set1_ps(a[(p + i) * a_col]), columns[i], acc);
      }
      for (; p < k; ++p) {
        const float* at = rows + p;
        const __m256 one = _mm256_setr_ps(at[0], at[ldb], at[2 * ldb], at[3 * ldb], at[4 * ldb], at[5 * ldb],
                                          at[6 * ldb], at[7 * ldb]);
        acc = _mm256_fmadd_ps(_mm256_set1_ps(a[p * a_col]), one, acc);
      }
      _mm256_storeu_ps(c + j, acc);
    }
#endif
  for (; j < n; ++j) {
    T sum = start.from(0, j).one(0);
    for (int64_t p = 0; p < k; ++p) sum = fma_(a[p * a_col], b[j * ldb + p], sum);
    c[j] = sum;
  }
}

}  // namespace

template <class T>
void product_of_dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                     int64_t ldc, Start<T> start) {
  int64_t i = 0;
  const auto some = [&](auto rows, auto at_once) {
    rows_of_dots<T, rows.value, at_once.value>(n, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, start.from(i, 0));
    i += rows.value;
  };
  using std::integral_constant;
  while (m - i >= 3 && m - i != 4) some(integral_constant<int, 3>{}, integral_constant<int, 2>{});
  while (m - i >= 2) some(integral_constant<int, 2>{}, integral_constant<int, 3>{});
  if (m - i == 1) some(integral_constant<int, 1>{}, integral_constant<int, 4>{});
}

template <class T>
void small_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                   T* c, int64_t ldc, Start<T> start) {
  int64_t a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  if (!tb) return plain(m, n, k, a, a_row, a_col, b, ldb, c, ldc, start);
  if (n * k <= kTinyB) {
    if (m == 1) return one_row(n, k, a, a_col, b, ldb, c, start);
    T copy[kTinyB];
    transpose_blocks(n, k, b, ldb, copy, n);
    return plain(m, n, k, a, a_row, a_col, copy, n, c, ldc, start);
  }
  if (a_col == 1) return product_of_dots(m, n, k, a, lda, b, ldb, c, ldc, start);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T sum = T(0);
      for (int64_t p = 0; p < k; ++p) sum = fma_(a[i * a_row + p * a_col], b[j * ldb + p], sum);
      c[i * ldc + j] = start.at ? start.from(i, j).one(0) + sum : sum;
    }
}

template <class T>
void row_product(int64_t n, int64_t k, const T* a, int64_t a_step, const T* b, int64_t ldb, T* c, bool add) {
  constexpr int kTogether = 4;  // rows of B
  const int64_t deep = product_block(k);
  for (int64_t j = 0; j < n; j += kRowPiece) {
    const int64_t width = std::min(kRowPiece, n - j);
    for (int64_t p = 0; p < k; p += deep) {
      T beside[kRowPiece];
      T* __restrict const to = add || p > 0 ? beside : c + j;
      std::fill_n(to, width, T(0));
      const int64_t end = std::min(k, p + deep);
      int64_t q = p;
      for (; q + kTogether <= end; q += kTogether) {
        const T x0 = a[q * a_step], x1 = a[(q + 1) * a_step], x2 = a[(q + 2) * a_step], x3 = a[(q + 3) * a_step];
        const T* __restrict b0 = b + q * ldb + j;
        const T* __restrict b1 = b0 + ldb;
        const T* __restrict b2 = b1 + ldb;
        const T* __restrict b3 = b2 + ldb;
        for (int64_t i = 0; i < width; ++i)
          to[i] = fma_(x3, b3[i], fma_(x2, b2[i], fma_(x1, b1[i], fma_(x0, b0[i], to[i]))));
      }
      for (; q < end; ++q)
        for (int64_t i = 0; i < width; ++i) to[i] = fma_(a[q * a_step], b[q * ldb + j + i], to[i]);
      if (to == beside)
        for (int64_t i = 0; i < width; ++i) c[j + i] += to[i];
    }
  }
}

#define PRODUCTS(T)                                                                                               \
  template void small_product<T>(bool, bool, int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, T*, \
                                 int64_t, Start<T>);                                                              \
  template void product_of_dots<T>(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t,  \
                                   Start<T>);                                                                     \
  template void row_product<T>(int64_t, int64_t, const T*, int64_t, const T*, int64_t, T*, bool);
PRODUCTS(float)
PRODUCTS(double)
#undef PRODUCTS

}  // namespace tenon::kernels
