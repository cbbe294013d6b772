#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// What PYTORCH_CUDA_ALLOC_CONF sets, with PyTorch's defaults (c10/core/AllocatorConfig.h).
struct AllocatorSettings {
  bool expandable_segments = false;
  int64_t max_split_size = -1;  ///< bytes; blocks as large as that are neither split nor used for less; -1: none
  int64_t max_non_split_rounding =
      -1;  ///< bytes by which a block that is not split may be larger than asked for; -1: a large segment's
  int64_t large_segment_size = 20 << 20;  ///< of segments for requests between 1 and 10 MiB
  /// Divisions of the powers of two from 1, 2, 4 ... 32768 MiB on, for sizes in that interval (the first: also all
  /// below); 0, 1: sizes are rounded to 512 bytes only.
  std::array<int64_t, 16> roundup_power2_divisions{};
  double garbage_collection_threshold =
      0;               ///< share of the allowed memory above which unused segments are freed first; 0: off
  bool ideal = false;  ///< an allocator without waste: what is reserved is what is alive

  /// As in the variable: "expandable_segments:True,max_split_size_mb:128". Throws Error (usage) naming the unknown or
  /// wrong part.
  static AllocatorSettings parse(const std::string& text);
  /// Those that a snapshot says it was taken under.
  static AllocatorSettings of(const Snapshot& snapshot);
  std::string text() const;

  /// round_size(): what a request takes.
  int64_t rounded(int64_t size) const;
  /// get_allocation_size(): the segment that is asked for where a request of that (rounded) size finds no block.
  int64_t segment_for(int64_t size) const;
  /// Whether two settings are the same to the model.
  bool operator==(const AllocatorSettings&) const = default;
};

/// The parts of such a text, "max_split_size_mb" and "128": their order is kept, nothing is checked. A list in brackets
/// holds commas of its own.
std::vector<std::pair<std::string, std::string>> setting_parts(const std::string& text);

// Note [The model's numbers]
// Those of CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc, kRoundLarge. Requests up
// to 1 MiB are served from segments of 2 MiB; larger ones from segments of 20 MiB, or from 10 MiB on from a segment of
// their own size, rounded up to 2 MiB. Pools are per stream: a block is found by (stream, size, address), the smallest
// that is large enough.
inline constexpr int64_t kMinBlock = 512, kSmallSize = 1 << 20, kSmallBuffer = 2 << 20, kMinLargeAlloc = 10 << 20,
                         kRoundLarge = 2 << 20;

}  // namespace tenon::snapshot
