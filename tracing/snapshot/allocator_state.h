#pragma once
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// What an allocator held at one moment: its segments by address, with their blocks. See Note [Undoing] in
/// allocator_state.cpp.
struct AllocatorState {
  std::vector<Segment> segments;  ///< Segment::stream numbers the streams of the snapshot
  std::vector<Block> blocks;
  /// Changes that could not be undone, since the recording does not fit the dump: 0 in a sound one.
  size_t doubts = 0;
};
/// That of a device when it was dumped: the snapshot's own segments.
AllocatorState state_at_end(const Snapshot& snapshot, int64_t device);
/// That after the first `events` events of a device's trace: with 0, as recording began. From the end, by undoing.
AllocatorState state_after(const Snapshot& snapshot, size_t trace, size_t events);

/// The pool that an event belongs to: what it says itself (from PyTorch 2.12 on), else what the segment says in which
/// its address lies.
class PoolsOfEvents {
 public:
  PoolsOfEvents(const Snapshot& snapshot, int64_t device);
  PoolId operator()(size_t event) const;

 private:
  const Snapshot* snapshot_;
  std::vector<std::pair<uint64_t, const Segment*>> private_segments_;  ///< by address
};

}  // namespace tenon::snapshot
