#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "tracing/snapshot/allocator_state.h"

namespace tenon::tracing {

/// How the free bytes of segments lie.
struct Space {
  int64_t reserved = 0, taken = 0, free = 0, largest = 0, segments = 0;
  int64_t waiting = 0;     ///< of what is taken: freed, but another stream may still use it
  int64_t returnable = 0;  ///< of what is free: whole segments, and whole pages of expandable ones
  int64_t kept = 0;  ///< of what is free: in pools of CUDA graphs and MemPools, which keep theirs while they are in use
  double gaps_squared = 0;
  void add(const Space& other);
};
/// A segment of everybody's pool with both tenants and free room.
struct Held {
  snapshot::Segment segment;
  int64_t free = 0, largest = 0, blockers = 0, blocked_by = 0, returnable = 0;
  uint32_t smallest_stack = snapshot::kNone;
};
/// What can serve a request: pieces of one stream and pool, for small or for large requests.
struct PoolKey {
  uint32_t stream = 0;
  bool large = false;
  snapshot::PoolId id;
  auto operator<=>(const PoolKey&) const = default;
};
struct SpaceOf {
  Space all;
  std::map<PoolKey, Space> pools;
  std::vector<Held> held;  ///< most free bytes first
};
SpaceOf space_of(const snapshot::AllocatorState& state);
/// "the large pool of stream 0", "the small pool of stream 7 of a CUDA graph"
std::string pool_text(const PoolKey& pool, const snapshot::Snapshot& s);

}  // namespace tenon::tracing
