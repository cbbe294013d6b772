#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/state.h"

namespace tenon {

// Note [Device pool]
// Memory from a driver takes a hundred times as long as an op, and giving it back waits for the device. So it is taken
// in segments and kept: a segment is a row of blocks, used and free, that join when their neighbours are free. Requests
// below 1 MiB share segments of 2 MiB, those below 10 MiB segments of 20 MiB, larger ones get their own. The smallest
// free block that fits is taken, the lowest address of equals: what a program takes and gives decides where it lies.
// A block is of the stream it was taken on: work of one stream is done in order, so that what it gives back may be
// taken by it again at once. Another stream may read a block only while somebody holds it.
// A pool that keeps nothing asks its source for every block and gives it back at once: a memory checker sees where each
// one ends.

/// Memory of one device. May be used by several threads.
class DevicePool {
 public:
  /// Where segments come from. take() gives null where the driver has no more.
  struct Source {
    virtual ~Source() = default;
    virtual void* take(size_t bytes) = 0;
    virtual void give(void* data) = 0;
    /// What the driver still has; 0 where it does not say.
    virtual size_t free_bytes() = 0;
  };
  struct Stats {
    int64_t live_bytes = 0, peak_bytes = 0;  ///< in blocks that are in use
    int64_t held_bytes = 0;                  ///< in segments
    int64_t segments = 0;
    std::array<int64_t, kCategories> live_of{};  ///< live_bytes by what they were taken for
  };

  DevicePool(std::string device, std::unique_ptr<Source> source, bool keeps = true);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;

  /// At least `bytes` (and at least one), on a boundary of 512. Throws Error that says what was wanted, what is free,
  /// the largest free block and who holds most, after every segment that is free as a whole was given back.
  void* take(size_t bytes, uint16_t stream, Category category);
  void give(void* data);
  Stats stats() const;
  void reset_peak();
  /// Gives segments back that are free as a whole.
  void trim();

 private:
  struct Block;
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  using Free = std::set<Block*, BySize>;

  /// `any`: also one that is much larger than what is wanted.
  Block* take_free(size_t bytes, uint16_t stream, bool small, bool any = false);
  Block* take_segment(size_t bytes, uint16_t stream, bool small);
  void give_segment(Block* block);
  void split(Block* block, size_t bytes);
  void trim_locked();
  [[noreturn]] void refuse(size_t bytes, Category category) const;

  std::string device_;
  std::unique_ptr<Source> source_;
  bool keeps_;
  mutable std::mutex mutex_;
  std::map<std::pair<uint16_t, bool>, Free> free_;  // by stream, and whether of the segments of small blocks
  std::map<void*, std::unique_ptr<Block>> blocks_;  // by address, used and free
  Stats stats_;
};

}  // namespace tenon
