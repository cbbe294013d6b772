#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// What PYTORCH_CUDA_ALLOC_CONF sets, with PyTorch's defaults.
struct AllocatorSettings {
  bool expandable_segments = false;
  int64_t max_split_size = -1;                     ///< bytes; blocks as large as that are neither split nor used for less; -1: none
  int64_t roundup_power2_divisions = 0;            ///< of every size; 0: sizes are rounded to 512 only
  std::map<int64_t, int64_t> roundup_by_megabyte;  ///< divisions of sizes from so many MiB on ("1:4,256:8")
  double garbage_collection_threshold = 0;         ///< share of the limit above which unused segments are freed first; 0: off
  bool ideal = false;                              ///< an allocator without waste: what is reserved is what is alive

  /// As in the variable: "expandable_segments:True,max_split_size_mb:128". Throws Error (usage) naming the unknown or wrong part.
  static AllocatorSettings parse(const std::string& text);
  /// Those that a snapshot says it was taken under.
  static AllocatorSettings of(const Snapshot& snapshot);
  std::string text() const;
};

/// A model of PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp): which segments it asks the driver for and gives back,
/// for allocations and frees in their order. Addresses are the model's own. One device. The rules and their places in that file:
/// round_size, get_allocation_size, get_free_block, should_split, try_merge_blocks, release_cached_blocks,
/// release_available_cached_blocks, garbage_collect_cached_blocks, and for expandable segments try_allocate_expandable_block, map_block
/// and unmap_block.
class AllocatorModel {
 public:
  /// `limit`: bytes that the device can give in all; 0: no limit.
  explicit AllocatorModel(AllocatorSettings settings, int64_t limit = 0);
  ~AllocatorModel();

  /// What the driver was asked for, as a recording would have it.
  struct SegmentEvent {
    Action action;  ///< segment_alloc, segment_free, segment_map, segment_unmap
    int64_t size;
    int64_t stream;
    bool operator==(const SegmentEvent&) const = default;
  };
  static constexpr uint64_t kFailed = 0;
  /// The block's address, or kFailed where the limit does not allow it (out of memory).
  uint64_t alloc(int64_t size, int64_t stream);
  void free(uint64_t address);
  /// Gives back every segment without a tenant, as torch.cuda.empty_cache().
  void empty_cache();

  int64_t reserved() const { return reserved_; }
  int64_t peak_reserved() const { return peak_reserved_; }
  int64_t allocated() const { return allocated_; }  ///< rounded
  const std::vector<SegmentEvent>& segment_events() const { return events_; }
  /// Free bytes inside of segments, and the largest block of them.
  int64_t free_bytes() const { return reserved_ - allocated_; }
  int64_t largest_free() const;
  /// As a snapshot has it, for looking at what the model would have held.
  std::vector<Segment> segments(std::vector<Block>& blocks) const;

 private:
  struct Piece;
  struct Less {
    bool operator()(const Piece* a, const Piece* b) const;
  };
  using Pool = std::set<Piece*, Less>;
  struct Expandable;

  int64_t rounded(int64_t size) const;
  Piece* find_free(Pool& pool, int64_t stream, int64_t size);
  Piece* new_segment(bool small, int64_t stream, int64_t size);
  Piece* new_expandable(bool small, int64_t stream, int64_t size);
  bool collect_garbage();
  bool release_oversized(int64_t wanted, int64_t stream);
  void release_all();
  void release(Piece* piece);
  void unmap(Piece* piece);
  bool should_split(const Piece& piece, int64_t size) const;
  void merge(Piece* into, Piece* from);
  Pool& pool_of(const Piece& piece) { return piece_small(piece) ? small_ : large_; }
  static bool piece_small(const Piece& piece);
  bool oversized(int64_t size) const { return settings_.max_split_size >= 0 && size >= settings_.max_split_size; }
  bool room_for(int64_t bytes) const { return limit_ == 0 || reserved_ + bytes <= limit_; }

  AllocatorSettings settings_;
  int64_t limit_;
  Pool small_, large_;
  std::unordered_map<uint64_t, Piece*> taken_;
  std::vector<std::unique_ptr<Expandable>> expandables_;
  std::vector<SegmentEvent> events_;
  uint64_t next_address_;
  uint64_t large_calls_ = 0;  ///< requests to the large pool; a block's age is what came since it was free
  int64_t reserved_ = 0, peak_reserved_ = 0, allocated_ = 0;
};

/// Replaying a device's recorded allocations through a model.
struct Replay {
  int64_t peak_reserved = 0, peak_allocated = 0;
  bool failed = false;            ///< the limit was met
  size_t failed_at = 0;           ///< event, counted within the device
  int64_t failed_size = 0;
  std::vector<AllocatorModel::SegmentEvent> segment_events;
  int64_t free_at_failure = 0, largest_free_at_failure = 0;
};
/// What was there before recording began is allocated first. A failed allocation ends the replay.
Replay replay(const Snapshot& snapshot, size_t trace, const AllocatorSettings& settings, int64_t limit = 0);

}  // namespace tenon::snapshot
