#include "engine/kernels/tiled_gemm.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "engine/kernels/kept_room.h"
#include "engine/kernels/lanes.h"
#include "engine/kernels/tiles.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kRows = 96;                  // of A packed at a time: with depth 512 they fit a second-level cache
constexpr int64_t kColumns = 1024;             // of B
constexpr int64_t kPackedAtOnce = 32768;       // elements that a thread packs before it looks for more
constexpr int64_t kWorthAThread = 512 * 1024;  // multiply-adds
constexpr int64_t kPieceRows = 24;             // of a whole product: few, so that threads end at about the same time
constexpr int64_t kCached = 64 * 1024;         // bytes

/// What a thread packs into.
template <class T>
class PackingRoom {
  KeptRoom<T> kept_a_, kept_b_;  // made before what lies in them

 public:
  T* const a = kept_a_.of(kRows * kProductBlock);
  T* const b = kept_b_.of(kColumns * kProductBlock);
};

/// Columns of a strip: two lanes, or one where no more are left. B is packed strip by strip, each row by row, with
/// zeros for the columns that the last one lacks.
int64_t lanes_of(int64_t columns, int64_t lane) { return columns > lane ? 2 : 1; }

/// A strip of fewer columns than it has room for. `row` and `column` are the steps of op(B).
template <class T>
void pack_narrow(const T* b, int64_t row, int64_t column, int64_t n, int64_t k, int64_t wide, T* to) {
  for (int64_t p = 0; p < k; ++p, to += wide)
    for (int64_t j = 0; j < wide; ++j) to[j] = j < n ? b[p * row + j * column] : T(0);
}

/// Full strips, some at a time, so that a row of B is read along.
template <int64_t kWide, class T>
void pack_rows(const T* b, int64_t ldb, int64_t strips, int64_t k, T* to) {
  constexpr int64_t kTogether = 4;
  for (int64_t first = 0; first < strips; first += kTogether) {
    const int64_t some = std::min(kTogether, strips - first);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t s = 0; s < some; ++s)
        std::memcpy(to + ((first + s) * k + p) * kWide, b + p * ldb + (first + s) * kWide, kWide * sizeof(T));
  }
}

/// One full strip of a transposed B.
template <class T>
void pack_columns(const T* b, int64_t ldb, int64_t wide, int64_t k, T* to) {
  int64_t p = 0;
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    for (; p + 8 <= k; p += 8)
      for (int64_t part = 0; part < wide; part += 8) {
        __m256 turned[8];
        turn_8x8(b + part * ldb + p, ldb, turned);
        for (int64_t i = 0; i < 8; ++i) _mm256_storeu_ps(to + (p + i) * wide + part, turned[i]);
      }
#endif
  for (; p < k; ++p)
    for (int64_t i = 0; i < wide; ++i) to[p * wide + i] = b[i * ldb + p];
}

/// op(B) [k, n].
template <class T>
void pack_right(bool tb, const T* b, int64_t ldb, int64_t n, int64_t k, T* to) {
  const int64_t lane = product_tiles<T>().lane, wide = 2 * lane, strips = n / wide, rest = n % wide;
  constexpr int64_t kNarrow = 64 / sizeof(T);
  if (tb)
    for (int64_t s = 0; s < strips; ++s) pack_columns(b + s * wide * ldb, ldb, wide, k, to + s * wide * k);
  else
    wide == kNarrow ? pack_rows<kNarrow>(b, ldb, strips, k, to) : pack_rows<2 * kNarrow>(b, ldb, strips, k, to);
  if (rest > 0)
    pack_narrow(b + strips * wide * (tb ? ldb : 1), tb ? 1 : ldb, tb ? ldb : 1, rest, k, lanes_of(rest, lane) * lane,
                to + strips * wide * k);
}

/// to[p * rows + r] = a[r * lda + p].
template <class T>
void pack_left_strip(const T* a, int64_t lda, int64_t rows, int64_t k, T* to) {
  int64_t r = 0;
#if defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    for (; r + 8 <= rows; r += 8) {
      int64_t p = 0;
      for (const float* from = a + r * lda; p + 8 <= k; p += 8) {
        __m256 turned[8];
        turn_8x8(from + p, lda, turned);
        for (int64_t i = 0; i < 8; ++i) _mm256_storeu_ps(to + (p + i) * rows + r, turned[i]);
      }
      for (; p < k; ++p)
        for (int64_t i = r; i < r + 8; ++i) to[p * rows + i] = a[i * lda + p];
    }
#endif
#if defined(__SSE__)
  if constexpr (sizeof(T) == 4)
    for (; r + 4 <= rows; r += 4) {
      int64_t p = 0;
      for (const float* from = a + r * lda; p + 4 <= k; p += 4) {
        __m128 v[4];
        for (int64_t i = 0; i < 4; ++i) v[i] = _mm_loadu_ps(from + i * lda + p);
        _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]);
        for (int64_t i = 0; i < 4; ++i) _mm_storeu_ps(to + (p + i) * rows + r, v[i]);
      }
      for (; p < k; ++p)
        for (int64_t i = r; i < r + 4; ++i) to[p * rows + i] = a[i * lda + p];
    }
#endif
  for (; r < rows; ++r)
    for (int64_t p = 0; p < k; ++p) to[p * rows + r] = a[r * lda + p];
}

template <int64_t kTall, class T>
void pack_turned_strip(const T* a, int64_t lda, int64_t k, T* to) {
  for (int64_t p = 0; p < k; ++p) std::memcpy(to + p * kTall, a + p * lda, kTall * sizeof(T));
}

/// op(A) [m, k] in strips of `tall` rows, each column by column.
template <class T>
void pack_left(bool ta, const T* a, int64_t lda, int64_t m, int64_t k, int64_t tall, T* to) {
  for (int64_t i = 0; i < m; i += tall, to += tall * k) {
    const int64_t rows = std::min(tall, m - i);
    if (!ta)
      pack_left_strip(a + i * lda, lda, rows, k, to);
    else if (rows == kMostTall)
      pack_turned_strip<kMostTall>(a + i, lda, k, to);
    else if (rows == kMostTall / 2)
      pack_turned_strip<kMostTall / 2>(a + i, lda, k, to);
    else
      for (int64_t p = 0; p < k; ++p) std::copy_n(a + p * lda + i, rows, to + p * rows);
  }
}

/// op(B) of a block: strips that are packed, or, row by row, where it lies.
template <class T>
struct RightSide {
  const T* strips = nullptr;
  const T* rows = nullptr;  ///< null: all columns are packed; else those of the last strip alone, where it is not full
  int64_t ldb = 0;
  struct Strip {
    const T* at;
    int64_t row;
  };
  Strip strip(int64_t j, bool whole, int64_t depth, int64_t columns) const {
    if (rows && whole) return {rows + j, ldb};
    return {rows ? strips : strips + j * depth, columns};
  }
};

/// What some rows of A give with one strip of B. `strips` are the rows packed, or null: they are read where they lie.
template <class T>
void by_strip(const ProductTiles<T>& tiles, int64_t height, int64_t columns, int64_t depth, const T* strips, const T* a,
              int64_t lda, const typename RightSide<T>::Strip& right, T* c, int64_t ldc, bool add) {
  const int64_t lanes = lanes_of(columns, tiles.lane);
  const bool whole = columns == lanes * tiles.lane;
  for (int64_t i = 0; i < height; i += tiles.tall) {
    const int64_t rows = std::min(tiles.tall, height - i);
    T beside[kMostTall * kMostWide], *to = c + i * ldc, *sums = whole ? to : beside;
    const int64_t row = whole ? ldc : kMostWide;
    if (strips)
      tiles.of_strip(rows, lanes, depth, strips + i * depth, right.at, right.row, sums, row, whole && add);
    else
      tiles.of_rows(rows, lanes, depth, a + i * lda, lda, right.at, right.row, sums, row, whole && add);
    if (whole) continue;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t x = 0; x < columns; ++x) {
        const T sum = beside[r * kMostWide + x];
        to[r * ldc + x] = add ? sum + to[r * ldc + x] : sum;
      }
  }
}

/// A block of `depth` products of each element. Of A, kRows at a time are packed into `room` where they must be.
template <class T>
void block(bool ta, int64_t m, int64_t n, int64_t depth, const T* a, int64_t lda, const RightSide<T>& b, T* c,
           int64_t ldc, bool add, T* room) {
  const ProductTiles<T>& tiles = product_tiles<T>();
  const int64_t wide = 2 * tiles.lane;
  const bool packs = ta || tiles.in_strips;
  for (int64_t i = 0; i < m; i += kRows) {
    const int64_t height = std::min(kRows, m - i);
    const T* left = a + (ta ? i : i * lda);
    if (packs) pack_left(ta, left, lda, height, depth, tiles.tall, room);
    for (int64_t j = 0; j < n; j += wide) {
      const int64_t columns = std::min(wide, n - j), lanes = lanes_of(columns, tiles.lane);
      by_strip(tiles, height, columns, depth, packs ? room : nullptr, left, lda,
               b.strip(j, columns == lanes * tiles.lane, depth, lanes * tiles.lane), c + i * ldc + j, ldc, add);
    }
  }
}

template <class T>
const PackingRoom<T>& packing_room() {
  thread_local PackingRoom<T> room;
  return room;
}

template <class T>
void tiled(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
           int64_t ldc, bool add) {
  const int64_t deep = product_block(k);
  const PackingRoom<T>& packed = packing_room<T>();
  // To pack a right side takes as long as to multiply it by some rows; one that stays in the cache is fast where it is.
  const bool reads_in_place =
      !tb && (m <= product_tiles<T>().few || k * ldb * static_cast<int64_t>(sizeof(T)) <= kCached);
  for (int64_t j = 0; j < n; j += kColumns)
    for (int64_t p = 0; p < k; p += deep) {
      const int64_t width = std::min(kColumns, n - j), depth = std::min(deep, k - p);
      const T* from = b + (tb ? j * ldb + p : p * ldb + j);
      RightSide<T> right{packed.b};
      if (reads_in_place) {
        right.rows = from, right.ldb = ldb;
        const int64_t rest = width % product_tiles<T>().lane, last = width - width % (2 * product_tiles<T>().lane);
        if (rest > 0) pack_right(tb, from + last, ldb, width - last, depth, packed.b);
      } else {
        pack_right(tb, from, ldb, width, depth, packed.b);
      }
      block(ta, m, width, depth, a + (ta ? p * lda : p), lda, right, c + j, ldc, add || p > 0, packed.a);
    }
}

/// A whole product on all threads. A block of B is packed by all of them for all of them, into the room of the thread
/// that calls; then each packs and multiplies some rows of A.
template <class T>
void whole(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
           int64_t ldc, bool add) {
  const int64_t deep = product_block(k);
  const int64_t wide = 2 * product_tiles<T>().lane, tall = product_tiles<T>().tall;
  T* const packed = packing_room<T>().b;
  const int64_t some = std::max<int64_t>(1, kPackedAtOnce / (wide * deep));
  const int64_t worth = kWorthAThread / (std::min(n, kColumns) * deep), least = std::max(worth, kPieceRows);
  const int64_t rows = std::clamp<int64_t>((least + tall - 1) / tall * tall, tall, kRows);
  for (int64_t j = 0; j < n; j += kColumns)
    for (int64_t p = 0; p < k; p += deep) {
      const int64_t width = std::min(kColumns, n - j), depth = std::min(deep, k - p);
      const T* from = b + (tb ? j * ldb + p : p * ldb + j);
      parallel_for((width + wide - 1) / wide, some, [&](int64_t s, int64_t e) {
        pack_right(tb, from + s * wide * (tb ? ldb : 1), ldb, std::min(e * wide, width) - s * wide, depth,
                   packed + s * wide * depth);
      });
      parallel_for(m, rows, [&](int64_t i, int64_t e) {
        block(ta, e - i, width, depth, a + (ta ? p * lda + i : i * lda + p), lda, RightSide<T>{packed}, c + i * ldc + j,
              ldc, add || p > 0, packing_room<T>().a);
      });
    }
}

template <class T>
int64_t padded(int64_t n) {
  const int64_t lane = product_tiles<T>().lane;
  return (n + lane - 1) / lane * lane;
}

template <class T>
void pack_whole(bool tb, int64_t n, int64_t k, const T* b, int64_t ldb, T* to) {
  const int64_t deep = product_block(k);
  for (int64_t p = 0; p < k; p += deep)
    pack_right(tb, b + (tb ? p : p * ldb), ldb, n, std::min(deep, k - p), to + p * padded<T>(n));
}

template <class T>
void by_packed(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* packed, TiledColumns columns, T* c,
               int64_t ldc, bool add) {
  const int64_t deep = product_block(k);
  for (int64_t p = 0; p < k; p += deep) {
    const int64_t depth = std::min(deep, k - p);
    const RightSide<T> right{packed + p * padded<T>(n) + columns.first * depth};
    block<T>(false, m, columns.count, depth, a + p, lda, right, c, ldc, add || p > 0, packing_room<T>().a);
  }
}

}  // namespace

void tiled_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   int64_t ldb, float* c, int64_t ldc, bool add) {
  whole(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
}
void tiled_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                   int64_t ldb, double* c, int64_t ldc, bool add) {
  whole(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
}
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, float* c, int64_t ldc, bool add) {
  tiled(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
}
void tiled_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                int64_t ldb, double* c, int64_t ldc, bool add) {
  tiled(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, add);
}

template <class T>
int64_t tiled_side(int64_t n, int64_t k) {
  return padded<T>(n) * k;
}
template int64_t tiled_side<float>(int64_t, int64_t);
template int64_t tiled_side<double>(int64_t, int64_t);
void tiled_pack(bool tb, int64_t n, int64_t k, const float* b, int64_t ldb, float* to) {
  pack_whole(tb, n, k, b, ldb, to);
}
void tiled_pack(bool tb, int64_t n, int64_t k, const double* b, int64_t ldb, double* to) {
  pack_whole(tb, n, k, b, ldb, to);
}
void tiled_gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                       TiledColumns columns, float* c, int64_t ldc, bool add) {
  by_packed(m, n, k, a, lda, packed, columns, c, ldc, add);
}
void tiled_gemm_packed(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* packed,
                       TiledColumns columns, double* c, int64_t ldc, bool add) {
  by_packed(m, n, k, a, lda, packed, columns, c, ldc, add);
}

}  // namespace tenon::kernels
