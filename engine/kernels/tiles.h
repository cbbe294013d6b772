#pragma once
#include <cstdint>

namespace tenon::kernels {

// Note [Tiles]
// A tile of a product stays in registers while it is added up: some rows, one or two lanes wide. An element of it is
// one chain of fused multiply-adds in the order of k, from zero, so that its bits depend neither on the size of the
// tile nor on what is computed beside it: they are the same on every processor. The loops are written once (tiles.inc)
// and compiled for each width of vectors; which one runs is asked once for each product: Note [Wide vectors].

/// Rows of the tallest tile, and columns of the widest.
inline constexpr int64_t kMostTall = 12, kMostWide = 32;

template <class T>
struct ProductTiles {
  int64_t tall;    ///< rows
  int64_t lane;    ///< columns of one lane
  bool in_strips;  ///< rows apart displace each other's cache lines: A is read in strips alone
  int64_t few;     ///< of so many rows, a right side is read in place faster than it is packed
  /// C [rows, lanes * lane] = A B, or added to C.
  void (*of_rows)(int64_t rows, int64_t lanes, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                  int64_t ldc, bool add);
  /// The same of an A that lies column by column, `rows` high.
  void (*of_strip)(int64_t rows, int64_t lanes, int64_t k, const T* a, const T* b, int64_t ldb, T* c, int64_t ldc,
                   bool add);
};
template <class T>
const ProductTiles<T>& product_tiles();

}  // namespace tenon::kernels
