#pragma once
#include <cstdint>

#include "core/layout.h"

namespace tenon {

/// What it costs to read the elements of a layout in the order of its axes, in cache lines of 64 bytes; the memory
/// begins at a line.
struct WalkCost {
  int64_t elements = 0;  ///< that were walked
  bool whole = true;     ///< they are all; else the first ones, as many as are looked at
  int64_t lines = 0;     ///< different lines in which they lie
  int64_t least = 0;     ///< lines that as many elements fill side by side
  int64_t fetched = 0;   ///< lines that a cache of 32 KiB (8 ways, the least recently used goes) fetches on the way
  /// How many times what is needed goes through the cache; 1 where it is read as it lies.
  double times() const { return least > 0 ? static_cast<double>(fetched) / static_cast<double>(least) : 1; }
};
/// Looks at the first 2^20 elements.
WalkCost walk_cost(const Layout& layout, int64_t item_bytes);

/// Whether an element of the layout lies at that position of the memory.
bool reads_position(const Layout& layout, int64_t position);

}  // namespace tenon
