#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/memory_image.h"
#include "tracing/record/heap_block.h"

namespace tenon::tracing {

/// A walk along the addresses that stand in memory, nearest first: see Note [Who holds a tensor].
class PointerWalk {
 public:
  /// Where a way begins.
  struct Root {
    MemorySpan span;
    const StaticMemory* of = nullptr;  ///< the variables that it is; null: an object
    uint64_t object = 0;               ///< its address
    int distance = 0;                  ///< from where one begins: of roots that are asked later, more
  };
  /// A block that was come to.
  struct Stop {
    MemorySpan block;    ///< of a root: what it spans
    uint64_t slot = 0;   ///< the address of the word that leads here
    uint64_t value = 0;  ///< that word
    int from = -1;       ///< the stop that it stands in; -1: this is a root
    int root = 0;
    int kind = 0;  ///< what is known to stand there, by the block it was come from; 0: nothing
    int distance = 0;
    bool done = false;   ///< it was looked into, so ways may lead on from it
    bool again = false;  ///< it is to be looked into once more
  };
  /// A part of a block where addresses may stand, and the kind of what they lead to.
  struct Part {
    MemorySpan span;
    int leads_to = 0;
    int step = 0;  ///< what is known to be an address takes one no further
  };
  static constexpr int kTarget = -1;
  /// The parts of a block; none: it may be anything, and every word is looked at. What an object leaves unused may
  /// still have the words of one that stood there before.
  using Parts = std::function<std::vector<Part>(const Stop& at, const HeapBlock& block)>;

  struct Ends {
    std::vector<uint64_t> targets;    ///< addresses of storages, whose blocks are not looked into
    std::vector<MemorySpan> skipped;  ///< where nothing is looked at
  };

  /// Only parts that lead to kTarget come to a target: whatever holds it is known. `before`: of a time when none of the
  /// targets was taken. Both images are needed for as long as the walk is asked.
  PointerWalk(const MemoryImage& image, const MemoryImage& before, std::vector<Root> roots, const Ends& ends,
              Parts parts);

  /// The way to a target, from its root on; the last stop is the target. Empty where there is none.
  std::vector<Stop> way_to(uint64_t target) const;
  /// The ways to every word that leads to the beginning of a tensor's header; the last stop of each is the header.
  std::vector<std::vector<Stop>> ways_to_tensor(uint64_t header) const;
  const Root& root(const Stop& s) const { return roots_[static_cast<size_t>(s.root)]; }

 private:
  void look_into(int stop);
  void look_over(int stop, const Part& part);
  void look_at(uint64_t slot, uint64_t value, int stop, const Part& part);
  void come_to(int stop);
  std::vector<Stop> way_from_root(Stop last) const;

  bool is_left_over(uint64_t slot, uint64_t value, const HeapBlock* header) const;

  const MemoryImage &image_, &before_;
  std::vector<Root> roots_;
  std::vector<MemorySpan> skipped_;
  Parts parts_;
  std::vector<Stop> stops_;
  std::vector<std::vector<int>> ahead_;                       ///< stops to look into, by their distance
  std::unordered_map<uint64_t, std::vector<Stop>> words_of_;  ///< that lead to a tensor's header
  std::unordered_map<uint64_t, int> by_block_;                ///< by the block's beginning
  std::unordered_map<uint64_t, Stop> targets_;                ///< the nearest way to each; from < 0: none yet
};

}  // namespace tenon::tracing
