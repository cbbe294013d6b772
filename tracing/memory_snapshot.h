#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracing/step_record.h"

namespace tenon::tracing {

/// The memory of recorded steps as a snapshot that PyTorch's tools read (the pickle of torch.cuda.memory._snapshot()): every taking and
/// giving back with the op, module path and category that asked for it, and what is left at the end.
std::string memory_snapshot(const std::vector<AllocEvent>& events, const std::vector<OpRecord>& ops);

/// A snapshot file, PyTorch's or ours.
struct SnapshotBlock {
  uint64_t address = 0;
  int64_t size = 0, requested = 0;
  bool active = false, pending_free = false;
};
struct SnapshotSegment {
  int device = 0;
  uint64_t address = 0;
  int64_t total = 0;
  std::string type;
  std::vector<SnapshotBlock> blocks;
};
struct SnapshotEvent {
  std::string action;        ///< alloc, free_requested, free_completed, segment_alloc, ...
  uint64_t address = 0;
  int64_t size = 0, time_us = 0;
  std::string where;         ///< the innermost frame: "conv2d (features.0)"
  std::string category;
};
struct Snapshot {
  std::vector<SnapshotSegment> segments;
  std::vector<std::vector<SnapshotEvent>> traces;  ///< one a device
};
/// Throws Error naming `name` for anything that is no snapshot. Keys that are missing are no error.
Snapshot read_snapshot(std::string_view bytes, const std::string& name);

/// What a trace shows when its events are walked in order, as PyTorch's viewer does it.
struct SnapshotTimeline {
  int64_t peak = 0, at_end = 0, before = 0;   ///< bytes; `before`: of blocks taken before the recording began
  size_t peak_event = 0;
  std::vector<SnapshotEvent> live_at_peak;    ///< largest first; blocks from before the recording not among them
};
SnapshotTimeline timeline(const Snapshot& s, size_t device);

}  // namespace tenon::tracing
