#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "tracing/snapshot/allocator_settings.h"
#include "tracing/snapshot/allocator_state.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// A model of PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, class DeviceCachingAllocator): which
/// segments it asks the driver for and gives back, for allocations and frees in their order. One device. Each function
/// names the one whose rule it follows. See Note [The model's numbers].
class AllocatorModel {
 public:
  struct Limits {
    int64_t device = 0;  ///< bytes that the driver can give in all; 0: no limit. An expandable segment reserves
                         ///< addresses for 9/8 of them.
    int64_t allowed =
        0;  ///< what set_per_process_memory_fraction() allows; 0: all. Garbage is collected only where it is set.
  };
  explicit AllocatorModel(AllocatorSettings settings, Limits limits);
  explicit AllocatorModel(AllocatorSettings settings, int64_t device_limit = 0)
      : AllocatorModel(std::move(settings), Limits{device_limit, 0}) {}
  ~AllocatorModel();
  AllocatorModel(const AllocatorModel&) = delete;
  AllocatorModel& operator=(const AllocatorModel&) = delete;

  /// Goes on from what an allocator held, its addresses kept. Only before anything else.
  void begin_with(const AllocatorState& state, const Snapshot& snapshot);
  /// Where the expandable segments of a pool began, for begin_with(), where that was before what is mapped of them.
  using Base = std::function<uint64_t(const Segment& segment)>;
  void set_bases(Base base) { base_ = std::move(base); }

  /// What the driver was asked for, as a recording would have it.
  struct SegmentEvent {
    Action action;  ///< segment_alloc, segment_free, segment_map, segment_unmap
    int64_t size;
    int64_t stream;
    bool operator==(const SegmentEvent&) const = default;
  };
  static constexpr uint64_t kFailed = 0;
  /// The block's address, or kFailed where the limits do not allow it (out of memory).
  uint64_t alloc(int64_t size, int64_t stream, PoolId pool = {});
  void free(uint64_t address);
  /// Its owner gave it up, but another stream may still use it: free() follows, or the allocator waits for it when it
  /// has nothing else.
  void request_free(uint64_t address);
  /// Gives back every segment without a tenant, as torch.cuda.empty_cache(): of the default pool and of those that
  /// nobody uses any more.
  void empty_cache();
  /// Gives back the segments without a tenant of one pool.
  void release(PoolId pool);
  /// From now on a private pool's segments may be given back: no graph and no MemPool holds it.
  void set_unused(PoolId pool);
  /// Until PyTorch 2.11 nothing unused is given back to make room while a MemPool is in use; later only while a graph
  /// is captured.
  void set_keeps_all_for_pools(bool keeps) { keeps_all_for_pools_ = keeps; }
  /// A pool whose segments are asked for one by one whatever the settings say: that of a MemPool with an allocator of
  /// its own.
  void set_never_expandable(PoolId pool) { never_expandable_.insert(pool); }
  /// Where the driver would put a segment of that size; 0: the model's choice.
  using Addresses = std::function<uint64_t(Action action, int64_t size)>;
  void set_addresses(Addresses addresses) { addresses_ = std::move(addresses); }

  int64_t reserved() const { return reserved_; }
  int64_t peak_reserved() const { return peak_reserved_; }
  int64_t allocated() const { return allocated_; }  ///< rounded
  const std::vector<SegmentEvent>& segment_events() const { return events_; }
  const std::vector<uint64_t>& event_addresses() const { return event_addresses_; }
  /// Free bytes inside of segments, and the largest block of them.
  int64_t free_bytes() const { return reserved_ - allocated_; }
  int64_t largest_free() const;
  /// Whether a request finds a free block as things are.
  bool finds(int64_t size, int64_t stream, PoolId pool);
  /// Whether the next allocation that finds no block collects garbage.
  bool would_collect() const;
  /// How often everything unused was given back to make room.
  int64_t retries() const { return retries_; }
  /// As a snapshot has it, by address. Streams are numbers of `streams`, which grows as needed.
  AllocatorState state(std::vector<int64_t>& streams) const;

 private:
  struct Piece;
  struct Pool;
  struct Expandable;
  struct Request;

  Pool& pool_for(PoolId id, bool small);
  bool find_free(Request& r);
  Piece* best_free(const Request& r) const;
  bool new_block(Request& r, bool retry);
  bool new_segment(Request& r);
  Piece* find_expandable(Pool& pool, int64_t stream, int64_t size);
  bool new_expandable(Request& r);
  bool map(Piece* unmapped, int64_t size);
  void collect_garbage();
  bool release_available(const Request& r);
  void release_cached();
  void release_pool(Pool& pool);
  void release_segment(Piece* piece);
  void unmap(Piece* piece);
  bool should_split(const Request& r) const;
  Piece* cut(Piece* piece, int64_t at);
  int64_t merge(Piece* into, Piece* from);
  void insert(Piece* piece);
  void return_block(Piece* piece);
  void record(Action action, int64_t size, const Piece& piece);
  bool expandable(PoolId pool) const { return settings_.expandable_segments && !never_expandable_.count(pool); }
  int64_t addresses_of(const Pool& pool) const;
  bool counts_searches() const { return limits_.allowed > 0 && settings_.garbage_collection_threshold > 0; }
  int64_t split_limit() const { return settings_.max_split_size < 0 ? INT64_MAX : settings_.max_split_size; }

  AllocatorSettings settings_;
  Limits limits_;
  std::map<std::pair<PoolId, bool>, std::unique_ptr<Pool>> pools_;  ///< by id and whether it is the small one
  std::vector<PoolId> unused_;                                      ///< in the order in which they are released
  std::set<PoolId> never_expandable_;
  std::unordered_map<uint64_t, Piece*> taken_;
  std::set<uint64_t> pending_;  ///< addresses whose frees were asked for
  std::vector<SegmentEvent> events_;
  std::vector<uint64_t> event_addresses_;
  Addresses addresses_;
  Base base_;
  uint64_t next_address_;
  bool keeps_all_for_pools_ = false;
  int64_t reserved_ = 0, peak_reserved_ = 0, allocated_ = 0, retries_ = 0;
};

/// What a replay is to know besides the recording.
struct ReplayOptions {
  AllocatorModel::Limits limits;  ///< as recorded, where both are 0: what the recording tells (limits_of())
  bool as_recorded = false;  ///< under the recording's own settings: from the state it began with, at its own addresses
  const AllocatorState* begin = nullptr;  ///< state_after(snapshot, trace, 0), where it is at hand
};
/// Replaying a device's recorded allocations through a model.
struct Replay {
  int64_t peak_reserved = 0, peak_allocated = 0;
  /// What is reserved once so many events were replayed, where that changes; within an event its peak stands first.
  std::vector<std::pair<size_t, int64_t>> curve;
  bool failed = false;   ///< the limit was met
  size_t failed_at = 0;  ///< event, counted within the device
  int64_t failed_size = 0;
  std::vector<size_t>
      failures;  ///< events at which it failed; behind one that failed in the recording it goes on, as the program did
  size_t reached = 0;  ///< events that were replayed
  std::vector<AllocatorModel::SegmentEvent> segment_events;
  std::vector<uint64_t> addresses;  ///< of the segment events
  size_t moved = 0;                 ///< as_recorded: allocations that came to lie elsewhere than recorded
  size_t moved_at = 0;              ///< the event of the first of them
  int64_t free_at_failure = 0, largest_free_at_failure = 0;
  AllocatorState end;  ///< as_recorded: what the model holds at last
};
/// What was there before recording began is allocated first (or, as recorded, is where it was). An allocation that
/// fails and had not failed in the recording ends the replay: nobody knows what the program would have done.
Replay replay(const Snapshot& snapshot, size_t trace, const AllocatorSettings& settings,
              const ReplayOptions& options = {});
/// Likewise with a limit of the device.
Replay replay(const Snapshot& snapshot, size_t trace, const AllocatorSettings& settings, int64_t limit);
/// What the recording asked the driver for.
std::vector<AllocatorModel::SegmentEvent> recorded_segment_events(const Snapshot& snapshot, size_t trace);

/// What a recording tells of what its device could give.
struct KnownLimits {
  AllocatorModel::Limits limits;
  int64_t at_least = 0;           ///< most that was reserved at any time
  int64_t allowed_at_least = 0;   ///< most that an allocation compared with what is allowed, and got
  int64_t less_than = 0;          ///< where an allocation did not fit at once; 0: none failed
  int64_t allowed_less_than = 0;  ///< likewise, if it was what is allowed that was in the way
  bool failed = false;            ///< an allocation failed for good, which tells what the driver had left
  bool by_fraction =
      false;  ///< the driver had more free than was refused: set_per_process_memory_fraction() was in the way
};
KnownLimits limits_of(const Snapshot& snapshot, size_t trace);

}  // namespace tenon::snapshot
