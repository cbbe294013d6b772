#pragma once
#include <cstdint>
#include <vector>

#include "engine/formats/onnx/static_graph.h"

namespace tenon::formats {

/// Where a value lies during a run.
struct PlannedPlace {
  enum class In : uint8_t { arena, input, output, constant };
  In in = In::arena;
  int number = 0;      ///< of the input, the output, or the value that is the constant
  int64_t offset = 0;  ///< in bytes
};

/// A static memory plan: every value's place in one arena, so that values whose lifetimes meet share no byte, but where
/// a node writes over its own input.
struct MemoryPlan {
  std::vector<PlannedPlace> places;  ///< by value
  std::vector<bool> moved;           ///< by node: false where the result lies where its input does, so nothing is done
  int64_t arena_bytes = 0;
  int64_t all_bytes = 0;  ///< that the values would take without sharing
};

/// `in_place`: of each node, whether its result may take the memory of an input of the same size that nothing reads
/// afterwards.
MemoryPlan plan_memory(const StaticGraph& graph, const std::vector<bool>& in_place);

/// Addresses in the arena, and of constants, are multiples of it.
inline constexpr int64_t kArenaAlignment = 16;

}  // namespace tenon::formats
