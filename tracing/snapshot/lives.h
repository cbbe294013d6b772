#pragma once
#include <cstdint>
#include <memory>

#include "tracing/snapshot/column.h"

namespace tenon::snapshot {

struct Snapshot;

/// Smallest, largest and last of what is alive in a stretch of events.
struct Usage {
  int64_t low = 0, high = 0, last = 0;
  bool operator==(const Usage&) const = default;
};

/// Which event of a device begins and ends which allocation, and what is alive when: all that a Timeline looks up, as
/// columns. 8 bytes an allocation and 4 an event: what is known of an allocation stands in the event that made it.
struct Lives {
  static constexpr size_t kStride = 32, kBlock = 128;
  struct Life {
    uint32_t source = 0;  ///< event of the device (or, from `blocks_from` on, block of the snapshot) that tells of it
    uint32_t died = 0;    ///< event that ended it, or their number; of a block, which stays, its segment's stream
  };
  Column<Life> lives;
  Column<uint32_t> of_event;       ///< the life that an event makes or ends; kNone
  Column<uint32_t> before;         ///< lives from before, ascending
  Column<uint32_t> lost;           ///< lives that end where another begins, by that event
  Column<int64_t> sums;            ///< alive before every event that kStride divides
  Column<Usage> blocks;            ///< of every kBlock events
  Column<uint64_t> keyframes;      ///< moments whose living are written down, ascending: how many events have happened
  Column<uint64_t> keyframe_ends;  ///< into `living`
  Column<uint32_t> living;
  uint32_t blocks_from = 0;  ///< lives from this one on are blocks of segments
  uint64_t events = 0, peak = 0, unknown_frees = 0;
  int64_t peak_bytes = 0, bytes_before = 0;

  std::span<const uint32_t> living_at(size_t keyframe) const {
    const size_t begin = keyframe ? keyframe_ends[keyframe - 1] : 0;
    return living.span().subspan(begin, keyframe_ends[keyframe] - begin);
  }
  template <class Self, class F>
  static void each_part(Self& l, const F& f) {
    f(l.lives);
    f(l.of_event);
    f(l.before);
    f(l.lost);
    f(l.sums);
    f(l.blocks);
    f(l.keyframes);
    f(l.keyframe_ends);
    f(l.living);
  }
};

/// Those of one trace: PyTorch's own viewer's rules. See Note [Who was there before].
std::shared_ptr<const Lives> find_lives(const Snapshot& snapshot, size_t trace);
/// Whether columns that were mapped may be what find_lives() made of that trace: every number leads to where something
/// is, an allocation ends at its own address, and sums and keyframes are those of the events. Reads all of them, on
/// every core; the snapshot's own columns must be sound.
bool fits(const std::shared_ptr<const Lives>& lives, const Snapshot& snapshot, size_t trace);

}  // namespace tenon::snapshot
