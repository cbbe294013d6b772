#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/op/strided_loop.h"

namespace tenon {

// Note [Tile by tile]
// Loops of f32 that go over the same elements are run one behind the other on a tile of elements at a time: what one
// has written the next reads while it lies in the cache, and a value that nobody else reads never leaves it. Element i
// of a result needs element i of the operands, or a number that i alone decides, so neither the order of the tiles nor
// the number of threads changes a bit; the loops are those that the ops have.

inline constexpr int64_t kTileElements = 1024;
inline constexpr int kMostTiles = 12;  // 48 KiB together

/// Where the elements of an operand are.
struct TileOperand {
  char* base = nullptr;                                  ///< of element `first`; where `tile` says so, there is none
  int64_t stride = static_cast<int64_t>(sizeof(float));  ///< in bytes; 0: one number for all elements
  int tile = -1;                                         ///< its elements lie in this tile
  int64_t first = 0;
  /// Above 0: numbers that repeat. `base` is of the first, and element i has number (i / each) % count. There are
  /// `held` in memory, `count` at least; those behind them repeat, too.
  int64_t count = 0, each = 1, held = 0;
};

struct TileStep {
  InnerLoop loop = nullptr;
  int operands = 0;
  TileOperand at[kMaxOperands];  ///< the result first
};

/// Elements [begin, end) of all steps, on this thread.
void run_tiles(const TileStep* steps, size_t count, int64_t begin, int64_t end);

}  // namespace tenon
