#include "engine/kernels/bf16_product.h"

#include "core/error.h"
#include "core/vectors.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/kernels/kept_room.h"

#if TENON_WIDE_VECTORS && defined(__linux__)
#define TENON_BF16_TILES 1
#else
#define TENON_BF16_TILES 0
#endif

#if TENON_BF16_TILES
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/half.h"
#include "core/parallel.h"
#endif

namespace tenon::kernels {

#if TENON_BF16_TILES
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,amx-tile,amx-bf16,prefer-vector-width=512")
namespace {

constexpr int64_t kSide = 32;                // rows and columns of four tiles, which are added up at once
constexpr int64_t kStep = 32;                // products of a tile
constexpr int64_t kDepth = 512;              // products of each sum before the next sums' turn
constexpr int64_t kColumns = 512;            // whose sums a thread keeps
constexpr int64_t kMostRows = 256;           // of A copied at a time, fewer where they are long
constexpr int64_t kCopied = 512 * 1024;      // elements of A copied at a time: they fit a second-level cache
constexpr int64_t kRight = 4 * 1024 * 1024;  // of B copied at a time
constexpr int64_t kTile = 16 * kStep;        // elements

int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct BfRooms {
  KeptRoom<uint16_t> left, right;
  KeptRoom<float> sums;
};
BfRooms& rooms() {
  thread_local BfRooms all;
  return all;
}

/// The processor's tiles while they are in use: after it, they cost no switch between threads anything.
class TilesInUse {
  struct alignas(64) Shapes {
    uint8_t palette = 1, start = 0, none[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };

 public:
  TilesInUse() {
    Shapes all;
    for (int i = 0; i < 8; ++i) all.row_bytes[i] = 64, all.rows[i] = 16;
    // The intrinsics do not tell the compiler what they read: all of this, and what was copied for the tiles.
    asm volatile("" ::: "memory");
    _tile_loadconfig(&all);
  }
  TilesInUse(const TilesInUse&) = delete;
  ~TilesInUse() { _tile_release(); }
};

/// Sixteen rows of sixteen pairs, turned.
inline void turn_16x16(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  __m512i q[16];  // q[4 i + c]: of rows 4 i and on, columns c, c + 4, c + 8 and c + 12
  for (int i = 0; i < 16; i += 4) {
    q[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    q[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    q[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    q[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512i even = _mm512_shuffle_i32x4(q[c], q[4 + c], 0x88), odd = _mm512_shuffle_i32x4(q[c], q[4 + c], 0xdd);
    const __m512i even2 = _mm512_shuffle_i32x4(q[8 + c], q[12 + c], 0x88),
                  odd2 = _mm512_shuffle_i32x4(q[8 + c], q[12 + c], 0xdd);
    r[c] = _mm512_shuffle_i32x4(even, even2, 0x88);
    r[4 + c] = _mm512_shuffle_i32x4(odd, odd2, 0x88);
    r[8 + c] = _mm512_shuffle_i32x4(even, even2, 0xdd);
    r[12 + c] = _mm512_shuffle_i32x4(odd, odd2, 0xdd);
  }
}

/// The first `count` of 32 elements, at most all of them, and zeros.
inline __m512i some(const uint16_t* from, int64_t count) {
  if (count >= kStep) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << std::max<int64_t>(count, 0)) - 1), from);
}

/// Sixteen lines of 32 elements each, `apart` from each other, `lines` and `elements` of which there are; zeros beyond.
inline void load_lines(const uint16_t* from, int64_t apart, int64_t lines, int64_t elements, __m512i (&r)[16]) {
  for (int64_t i = 0; i < 16; ++i) r[i] = i < lines ? some(from + i * apart, elements) : _mm512_setzero_si512();
}

inline void store_tile(const __m512i (&r)[16], uint16_t* to) {
  for (int64_t i = 0; i < 16; ++i) _mm512_store_si512(to + i * kStep, r[i]);
}

/// 32 lines of k, as they follow each other, of up to 32 elements each: two tiles of sixteen pairs of lines, by
/// element.
inline void pair_lines(const uint16_t* from, int64_t apart, int64_t lines, int64_t elements, __m512i (&first)[16],
                       __m512i (&second)[16]) {
  for (int64_t i = 0; i < 16; ++i) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i x = 2 * i < lines ? some(from + 2 * i * apart, elements) : zero;
    const __m512i y = 2 * i + 1 < lines ? some(from + (2 * i + 1) * apart, elements) : zero;
    const __m512i low = _mm512_unpacklo_epi16(x, y), high = _mm512_unpackhi_epi16(x, y);
    const __m512i lanes = _mm512_shuffle_i32x4(low, high, 0x44), lanes2 = _mm512_shuffle_i32x4(low, high, 0xee);
    first[i] = _mm512_shuffle_i32x4(lanes, lanes, 0xd8);
    second[i] = _mm512_shuffle_i32x4(lanes2, lanes2, 0xd8);
  }
}

/// 32 rows of op(A), k by k: for each step two tiles of sixteen rows. `there` of the rows exist; zeros are the rest.
void copy_rows(bool turned, const uint16_t* a, int64_t lda, int64_t there, int64_t k, uint16_t* to) {
  for (int64_t p = 0; p < k; p += kStep, to += 2 * kTile) {
    __m512i first[16], second[16];
    if (turned) {
      pair_lines(a + p * lda, lda, k - p, there, first, second);
      turn_16x16(first);
      turn_16x16(second);
    } else {
      load_lines(a + p, lda, there, k - p, first);
      load_lines(a + 16 * lda + p, lda, there - 16, k - p, second);
    }
    store_tile(first, to);
    store_tile(second, to + kTile);
  }
}

/// 32 columns of op(B), k by k: for each step two tiles of sixteen pairs of k by sixteen columns.
void copy_columns(bool turned, const uint16_t* b, int64_t ldb, int64_t there, int64_t k, uint16_t* to) {
  for (int64_t p = 0; p < k; p += kStep, to += 2 * kTile) {
    __m512i first[16], second[16];
    if (turned) {
      load_lines(b + p, ldb, there, k - p, first);
      load_lines(b + 16 * ldb + p, ldb, there - 16, k - p, second);
      turn_16x16(first);
      turn_16x16(second);
    } else {
      pair_lines(b + p * ldb, ldb, k - p, there, first, second);
    }
    store_tile(first, to);
    store_tile(second, to + kTile);
  }
}

/// 32 x 32 sums of `steps` tiles more.
inline void add_tiles(int64_t steps, const uint16_t* a, const uint16_t* b, float* sums, int64_t row, bool first) {
  const int64_t bytes = row * static_cast<int64_t>(sizeof(float));
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + 16, bytes);
    _tile_loadd(2, sums + 16 * row, bytes);
    _tile_loadd(3, sums + 16 * row + 16, bytes);
  }
  for (int64_t s = 0; s < steps; ++s, a += 2 * kTile, b += 2 * kTile) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTile, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + 16, bytes);
  _tile_stored(2, sums + 16 * row, bytes);
  _tile_stored(3, sums + 16 * row + 16, bytes);
}

/// What float_to_bfloat() makes of them.
inline __m256i rounded(__m512 values) {
  const __m512i x = _mm512_castps_si512(values), odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
  const __m512i near = _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_or_epi32(near, nan, x, _mm512_set1_epi32(0x400000)), 16));
}

void write_row(const float* sums, const uint16_t* bias, int64_t n, uint16_t* to) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) {
    __m512 v = _mm512_loadu_ps(sums + j);
    if (bias) {
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bias + j));
      v = _mm512_add_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j), rounded(v));
  }
  for (; j < n; ++j) to[j] = float_to_bfloat(bias ? sums[j] + bfloat_to_float(bias[j]) : sums[j]);
}

/// Some rows by the columns that are copied, 32 by 32, of `k` products each, a multiple of a step.
void multiply(int64_t rows, int64_t columns, int64_t k, const uint16_t* a, const uint16_t* b, float* sums) {
  const TilesInUse tiles;
  const int64_t wide = up(columns, kSide);
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t steps = std::min(kDepth, k - p) / kStep;
    for (int64_t i = 0; i < rows; i += kSide)
      for (int64_t j = 0; j < columns; j += kSide)
        add_tiles(steps, a + i * k + p * kSide, b + j * k + p * kSide, sums + i * wide + j, wide, p == 0);
  }
}

bool asked_for_tiles() {
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM; Linux keeps them from who has not asked
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

}  // namespace

bool has_bf16_tiles() {
  static const bool has = has_bf16_tile_products() && asked_for_tiles();
  return has && has_wide_vectors();
}

void tiled_bf16(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint16_t* b,
                int64_t ldb, const uint16_t* bias, uint16_t* c, int64_t ldc) {
  const int64_t deep = up(k, kStep), most = std::clamp(kCopied / deep / kSide * kSide, kSide, kMostRows);
  // Where there are threads, two pieces for each: the cuts change no bits.
  const int64_t pieces = num_threads() > 1 ? 2 * num_threads() : 1;
  const int64_t rows = std::min(most, up((m + pieces - 1) / pieces, kSide));
  const int64_t width = std::min(up(n, kSide), std::max(kColumns, kRight / deep / kColumns * kColumns));
  uint16_t* const copied = rooms().right.of(width * deep);
  for (int64_t first = 0; first < n; first += width) {
    const int64_t end = std::min(n, first + width);
    parallel_for((end - first + kSide - 1) / kSide, 4, [&](int64_t s, int64_t e) {
      for (; s < e; ++s) {
        const int64_t j = first + s * kSide;
        copy_columns(tb, b + j * (tb ? ldb : 1), ldb, std::min(kSide, end - j), k, copied + s * kSide * deep);
      }
    });
    parallel_for(m, rows, [&](int64_t i, int64_t e) {
      uint16_t* const lines = rooms().left.of(up(rows, kSide) * deep);
      float* const sums = rooms().sums.of(up(rows, kSide) * kColumns);
      for (int64_t r = i; r < e; r += kSide)
        copy_rows(ta, a + r * (ta ? 1 : lda), lda, std::min(kSide, e - r), k, lines + (r - i) * deep);
      for (int64_t j = first; j < end; j += kColumns) {
        const int64_t columns = std::min(kColumns, end - j);
        multiply(e - i, columns, deep, lines, copied + (j - first) * deep, sums);
        for (int64_t r = i; r < e; ++r)
          write_row(sums + (r - i) * up(columns, kSide), bias ? bias + j : nullptr, columns, c + r * ldc + j);
      }
    });
  }
}
#pragma GCC pop_options
#else
bool has_bf16_tiles() { return false; }
void tiled_bf16(bool, bool, int64_t, int64_t, int64_t, const uint16_t*, int64_t, const uint16_t*, int64_t,
                const uint16_t*, uint16_t*, int64_t) {
  throw Error("this program has no tiles of bf16");
}
#endif

}  // namespace tenon::kernels
