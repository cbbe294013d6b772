#pragma once
#include <algorithm>
#include <set>

#include "tracing/snapshot/allocator_model.h"

// The parts of the model's pools, for its own source files.
namespace tenon::snapshot {

/// A reserved range of addresses of which some is mapped (ExpandableSegment).
struct AllocatorModel::Expandable {
  uint64_t base = 0;
};

/// A run of bytes of a segment: taken or free, with its neighbours (Block). In an expandable segment also a run that is
/// not mapped.
struct AllocatorModel::Piece {
  int64_t stream = 0, size = 0;
  uint64_t address = 0;
  Piece *before = nullptr, *after = nullptr;
  std::shared_ptr<Expandable> expandable;
  Pool* pool = nullptr;
  bool taken = false, pending = false, mapped = true;
  int64_t requested = 0;
  uint64_t searches_then = 0;  ///< of its pool when it came into it: its age is what came since
  bool is_split() const { return before || after; }
};

/// The free pieces of one pool (BlockPool), of all streams.
struct AllocatorModel::Pool {
  struct BySize {
    bool operator()(const Piece* a, const Piece* b) const {
      if (a->stream != b->stream) return static_cast<uint64_t>(a->stream) < static_cast<uint64_t>(b->stream);
      if (a->size != b->size) return a->size < b->size;
      return a->address < b->address;
    }
  };
  struct ByAddress {
    bool operator()(const Piece* a, const Piece* b) const {
      if (a->stream != b->stream) return static_cast<uint64_t>(a->stream) < static_cast<uint64_t>(b->stream);
      return a->address < b->address;
    }
  };
  PoolId id;
  bool small = false;
  std::set<Piece*, BySize> free;
  std::set<Piece*, ByAddress> unmapped;
  uint64_t searches = 0;
};

/// One allocation on its way.
struct AllocatorModel::Request {
  int64_t size = 0, stream = 0;  ///< rounded
  Pool* pool = nullptr;
  bool expandable = false;
  Piece* piece = nullptr;  ///< what was found
};

}  // namespace tenon::snapshot
