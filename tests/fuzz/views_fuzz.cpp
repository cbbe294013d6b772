#include <string>

#include "core/error.h"
#include "engine/spec/view_chain.h"
#include "engine/spec/walk_cost.h"

/// A chain of views is refused with its place, or stays inside the memory: the first byte chooses what it begins with.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  if (!size) return 0;
  const Shape sizes[] = {{}, {7}, {3, 4}, {2, 1, 5}, {2, 3, 4, 5}, {0, 3}, {1, 1, 1, 1, 1, 1, 1, 2}};
  const Layout of = Layout::contiguous(sizes[data[0] % 7]);
  int64_t storage = of.numel();
  try {
    for (const ViewStep& s : view_chain({reinterpret_cast<const char*>(data) + 1, size - 1}, of, storage)) {
      if (!s.copies.empty()) storage = s.layout.numel();
      int64_t low = 0, high = -1;
      s.layout.extent(low, high);
      if (s.layout.numel() > 0 && (low < 0 || high >= storage)) __builtin_trap();
      if (s.layout.size.n != s.layout.stride.n || s.layout.numel() < 0) __builtin_trap();
      const WalkCost cost = walk_cost(s.layout, 4);
      if (cost.lines > cost.fetched || cost.fetched > cost.elements) __builtin_trap();
      if (s.layout.numel() > 0 && !reads_position(s.layout, s.layout.offset)) __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}
