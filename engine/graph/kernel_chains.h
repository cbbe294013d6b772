#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/step_trace.h"
#include "engine/op/strided_loop.h"

namespace tenon {

// Note [Kernels tile by tile]
// Pointwise kernels that follow one another and go over the same elements are run a tile of elements at a time: what
// one has written the next reads while it lies in the cache, and a value that nobody else reads never leaves it.
// Element i of a result needs element i of the operands, or one number for all, so neither the order of the tiles nor
// the number of threads changes a bit; the loops are those that the ops have.

/// Steps [first, first + count) of a trace, two at least, over `elements` elements each.
struct KernelChain {
  size_t first = 0, count = 0;
  int64_t elements = 0;
};

struct KernelChains {
  std::vector<KernelChain> chains;  ///< in the order of the trace
  std::vector<int> of_step;         ///< the chain of each step; -1: it runs alone
  std::vector<std::string> why;     ///< of each step: why it is pointwise, as the one before it, and not in its chain
};
KernelChains find_chains(const StepTrace& trace);

/// Whether a loop reads one number through this window, for each element of its result.
bool is_one_number(const StepTrace::Window& w);

/// Where the elements of an operand are while a chain runs.
struct ChainOperand {
  char* base = nullptr;  ///< of the first element; where `tile` says so, there is none
  int64_t stride = 0;    ///< in bytes; 0: one number
  int tile = -1;         ///< of the chain's tiles, below kMostChainTiles
};
struct ChainStep {
  InnerLoop loop = nullptr;
  int operands = 0;
  ChainOperand at[kMaxOperands];  ///< the result first
};

inline constexpr int kMostChainTiles = 8;  // 32 KiB together

void run_chain(const std::vector<ChainStep>& steps, int64_t elements);

}  // namespace tenon
