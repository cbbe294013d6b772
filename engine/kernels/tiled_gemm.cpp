#include "engine/kernels/tiled_gemm.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "engine/kernels/lanes.h"

namespace tenon::kernels {
namespace {

constexpr int kTall = 6;       // rows of C in registers: 12 sums, two lanes of B and an element of A
constexpr int64_t kRows = 96;  // of A packed at a time: half of a second-level cache of 256 KiB and more
constexpr int64_t kPackedB = 512 * kProductBlock * 4;  // bytes

/// Elements of a row of C in registers.
template <class T>
constexpr int64_t kWide = 2 * Lanes<T>::count;

/// What a thread packs into, kept for its next product as oneDNN keeps its own: it is no tensor's, and the pool would
/// tell of it in an order that depends on the threads.
template <class T>
class PackingRoom {
  std::unique_ptr<char[]> kept_a_, kept_b_;  // made before what lies in them

  static T* room(int64_t bytes, std::unique_ptr<char[]>& kept) {
    constexpr size_t kLine = 64;
    size_t space = static_cast<size_t>(bytes) + kLine;
    kept.reset(new char[space]);
    void* at = kept.get();
    return static_cast<T*>(std::align(kLine, static_cast<size_t>(bytes), at, space));
  }

 public:
  T* const a = room(kRows * kProductBlock * static_cast<int64_t>(sizeof(T)), kept_a_);
  T* const b = room(kPackedB, kept_b_);
};

/// R rows of C, two lanes wide. B lies row by row.
template <int R, class T>
inline void tile_sums(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b, T* c, int64_t ldc, bool add) {
  using L = Lanes<T>;
  L acc[R][2];
  for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = L::zero();
  for (int64_t p = 0; p < k; ++p, a += a_col, b += kWide<T>) {
    const L left = L::load(b), right = L::load(b + L::count);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const T x = a[r * a_row];
      acc[r][0].add_product(x, left);
      acc[r][1].add_product(x, right);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half) {
      T* to = c + r * ldc + half * L::count;
      if (add) acc[r][half].add(L::load(to));
      acc[r][half].store(to);
    }
}

/// Fewer columns than a strip has, with zeros for the others. `row` and `column` are the steps of op(B).
template <class T>
void pack_narrow(const T* b, int64_t row, int64_t column, int64_t n, int64_t k, T* to) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < kWide<T>; ++j) to[p * kWide<T> + j] = j < n ? b[p * row + j * column] : T(0);
}

/// Strips of kWide columns, each row by row; some strips at a time, so that a row of B is read along.
template <class T>
void pack_rows(const T* b, int64_t ldb, int64_t n, int64_t k, T* to) {
  constexpr int64_t kStrips = 4;
  int64_t j = 0;
  while (j + kWide<T> <= n) {
    const int64_t strips = std::min(kStrips, (n - j) / kWide<T>);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t s = 0; s < strips; ++s)
        std::memcpy(to + (j + s * kWide<T>)*k + p * kWide<T>, b + p * ldb + j + s * kWide<T>, kWide<T> * sizeof(T));
    j += strips * kWide<T>;
  }
  if (j < n) pack_narrow(b + j, ldb, 1, n - j, k, to + j * k);
}

template <class T>
void pack_columns(const T* b, int64_t ldb, int64_t n, int64_t k, T* to) {
  int64_t j = 0;
  for (; j + kWide<T> <= n; j += kWide<T>) {
    const T* from = b + j * ldb;
    T* strip = to + j * k;
    int64_t p = 0;
#if defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
      for (; p + 8 <= k; p += 8)
        for (int64_t half = 0; half < 2; ++half) {
          __m256 turned[8];
          turn_8x8(from + half * 8 * ldb + p, ldb, turned);
          for (int64_t i = 0; i < 8; ++i) _mm256_storeu_ps(strip + (p + i) * kWide<T> + half * 8, turned[i]);
        }
#endif
    for (; p < k; ++p)
      for (int64_t i = 0; i < kWide<T>; ++i) strip[p * kWide<T> + i] = from[i * ldb + p];
  }
  if (j < n) pack_narrow(b + j * ldb, 1, ldb, n - j, k, to + j * k);
}

/// Strips of kTall rows of a transposed A, each column by column.
template <class T>
void pack_turned_rows(const T* a, int64_t lda, int64_t m, int64_t k, T* to) {
  for (int64_t i = 0; i < m; i += kTall) {
    const int64_t rows = std::min<int64_t>(kTall, m - i);
    T* strip = to + i * k;
    if (rows == kTall)
      for (int64_t p = 0; p < k; ++p) std::memcpy(strip + p * kTall, a + p * lda + i, kTall * sizeof(T));
    else
      for (int64_t p = 0; p < k; ++p) std::copy_n(a + p * lda + i, rows, strip + p * rows);
  }
}

/// A block of `depth` products of each element. `strips` is op(B) of that block, packed; of a transposed A, kRows at a
/// time are packed into `turned`.
template <class T>
void block(bool ta, int64_t m, int64_t n, int64_t depth, const T* a, int64_t lda, const T* strips, T* c, int64_t ldc,
           bool add, T* turned) {
  for (int64_t i0 = 0; i0 < m; i0 += kRows) {
    const int64_t height = std::min(kRows, m - i0);
    if (ta) pack_turned_rows(a + i0, lda, height, depth, turned);
    for (int64_t j = 0; j < n; j += kWide<T>)
      for (int64_t i = 0; i < height; i += kTall) {
        const int64_t rows = std::min<int64_t>(kTall, height - i), columns = std::min(kWide<T>, n - j);
        const T* left = ta ? turned + i * depth : a + (i0 + i) * lda;
        const int64_t a_row = ta ? 1 : lda, a_col = ta ? rows : 1;
        T* to = c + (i0 + i) * ldc + j;
        if (columns == kWide<T>) {
          with_count(rows, [&](auto r) { tile_sums<r>(depth, left, a_row, a_col, strips + j * depth, to, ldc, add); });
          continue;
        }
        T beside[kTall * kWide<T>];
        with_count(rows, [&](auto r) {
          tile_sums<r>(depth, left, a_row, a_col, strips + j * depth, beside, kWide<T>, false);
        });
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t x = 0; x < columns; ++x) {
            const T sum = beside[r * kWide<T> + x];
            to[r * ldc + x] = add ? sum + to[r * ldc + x] : sum;
          }
      }
  }
}

template <class T>
void pack(bool tb, const T* b, int64_t ldb, int64_t n, int64_t k, T* to) {
  tb ? pack_columns(b, ldb, n, k, to) : pack_rows(b, ldb, n, k, to);
}

template <class T>
void tiled(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
           int64_t ldc, bool add) {
  thread_local PackingRoom<T> packed;
  constexpr int64_t kColumns = kPackedB / kProductBlock / static_cast<int64_t>(sizeof(T));
  for (int64_t j = 0; j < n; j += kColumns)
    for (int64_t p = 0; p < k; p += kProductBlock) {
      const int64_t width = std::min(kColumns, n - j), depth = std::min(kProductBlock, k - p);
      pack(tb, b + (tb ? j * ldb + p : p * ldb + j), ldb, width, depth, packed.b);
      block(ta, m, width, depth, a + (ta ? p * lda : p), lda, packed.b, c + j, ldc, add || p > 0, packed.a);
    }
}

int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }

template <class T>
void pack_whole(bool tb, int64_t n, int64_t k, const T* b, int64_t ldb, T* to) {
  for (int64_t p = 0; p < k; p += kProductBlock)
    pack(tb, b + (tb ? p : p * ldb), ldb, n, std::min(kProductBlock, k - p), to + p * padded(n));
}

template <class T>
void by_packed(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* packed, T* c, int64_t ldc, bool add) {
  for (int64_t p = 0; p < k; p += kProductBlock)
    block<T>(false, m, n, std::min(kProductBlock, k - p), a + p, lda, packed + p * padded(n), c, ldc, add || p > 0,
             nullptr);
}

}  // namespace

void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, float* c, int64_t ldc, bool add) {
  tiled(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
}
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                int64_t ldb, double* c, int64_t ldc, bool add) {
  tiled(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
}

int64_t tiled_side(int64_t n, int64_t k) { return padded(n) * k; }
void tiled_pack(bool tb, int64_t n, int64_t k, const float* b, int64_t ldb, float* to) {
  pack_whole(tb, n, k, b, ldb, to);
}
void tiled_pack(bool tb, int64_t n, int64_t k, const double* b, int64_t ldb, double* to) {
  pack_whole(tb, n, k, b, ldb, to);
}
void tiled_gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c,
                       int64_t ldc, bool add) {
  by_packed(m, n, k, a, lda, packed, c, ldc, add);
}
void tiled_gemm_packed(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* packed, double* c,
                       int64_t ldc, bool add) {
  by_packed(m, n, k, a, lda, packed, c, ldc, add);
}

}  // namespace tenon::kernels
