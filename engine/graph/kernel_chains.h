#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/step_trace.h"
#include "engine/op/tile_loop.h"

namespace tenon {

// Pointwise kernels of a step that run together: Note [Tile by tile].

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

/// How a loop over the elements of `to`, in the order in which they lie there, reads an operand through `from`: base
/// and tile are left open. Nothing: in no order that a chain knows.
std::optional<TileOperand> read_as(const StepTrace::Window& from, const StepTrace::Window& to);

void run_chain(const std::vector<TileStep>& steps, int64_t elements);

}  // namespace tenon
