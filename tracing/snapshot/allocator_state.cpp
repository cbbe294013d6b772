#include "tracing/snapshot/allocator_state.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "tracing/snapshot/address_map.h"
#include "tracing/snapshot/allocator_settings.h"

// Note [Undoing]
// A dump holds the segments of its own moment only. What they were after event k is found from the end: an allocation
// undone leaves free room, a completed free undone a block whose free is pending, a requested one an active block; a
// segment that was asked for goes, one that was given back comes again; what was mapped is cut out, what was unmapped
// joins its neighbours. Between the taken blocks of a segment lies exactly one free piece, since free neighbours are
// always merged. An event tells what was asked for, not what the block took. In small and in expandable pools that is
// the rounded size, since every rest from 512 bytes on is split off. Elsewhere a rest of up to 1 MiB stays with its
// block, and pieces so small do not exist; so a block reaches to the next boundary that is not more than 1 MiB behind
// its rounded end: the next block, the segment's end, or the address of a block that is known to have begun there in
// its life time. Blocks as large as max_split_size are never split: they are their segment. Where nothing shows that
// boundary and another free piece follows, a block is taken for smaller than it was, by that rest at most.

namespace tenon::snapshot {

PoolsOfEvents::PoolsOfEvents(const Snapshot& s, int64_t device) : snapshot_(&s) {
  if (s.pools_told) return;
  for (const Segment& g : s.segments)
    if (g.device == device && g.pool != PoolId{}) private_segments_.emplace_back(g.address, &g);
  std::sort(private_segments_.begin(), private_segments_.end());
}

PoolId PoolsOfEvents::operator()(size_t event) const {
  const Events& e = snapshot_->events;
  if (snapshot_->pools_told || private_segments_.empty()) {
    const uint32_t pool = e.pool_of(event);
    return pool < snapshot_->pools.size() ? snapshot_->pools[pool] : PoolId{};
  }
  auto it = std::upper_bound(private_segments_.begin(), private_segments_.end(), e.address[event],
                             [](uint64_t a, const auto& s) { return a < s.first; });
  if (it == private_segments_.begin()) return {};
  const Segment& g = *std::prev(it)->second;
  return e.address[event] - g.address < static_cast<uint64_t>(g.total) ? g.pool : PoolId{};
}

namespace {

/// Of millions of numbers, tells most of those that were never added from the few that were.
class Sieve {
 public:
  void add(uint64_t number) { bits_[place(number)] = true; }
  bool may_hold(uint64_t number) const { return bits_[place(number)]; }

 private:
  static constexpr int kBits = 22;
  static size_t place(uint64_t number) { return number * 0x9E3779B97F4A7C15ull >> (64 - kBits); }
  std::vector<bool> bits_ = std::vector<bool>(size_t{1} << kBits);
};

/// The blocks of a device while events are undone, millions of them: by address, and for each no more than where it is
/// told what it is.
class UndoneBlocks {
 public:
  struct Block {
    uint64_t address = 0;
    size_t source = 0;  ///< the event that ended it; of one of the dump, its number there
    bool of_dump = false;
    State state = State::inactive;
    bool there = false;
  };
  /// Whether one was there, which is then no more.
  bool put(Block block) {
    block.there = true;
    if (const uint32_t at = by_address_.find(block.address); at != kNone) {
      blocks_[at] = block;
      return true;
    }
    uint32_t at = static_cast<uint32_t>(blocks_.size());
    if (free_.empty()) {
      blocks_.push_back(block);
    } else {
      at = free_.back();
      free_.pop_back();
      blocks_[at] = block;
    }
    by_address_.put(block.address, at);
    return false;
  }
  /// Whether one was there.
  bool take(uint64_t address) {
    const uint32_t at = by_address_.take(address);
    if (at == kNone) return false;
    blocks_[at].there = false;
    free_.push_back(at);
    return true;
  }
  /// Null where there is none.
  Block* find(uint64_t address) {
    const uint32_t at = by_address_.find(address);
    return at == kNone ? nullptr : &blocks_[at];
  }
  /// Those that are there, by address.
  std::vector<Block> sorted() const {
    std::vector<Block> all;
    std::copy_if(blocks_.begin(), blocks_.end(), std::back_inserter(all), [](const Block& b) { return b.there; });
    std::sort(all.begin(), all.end(), [](const Block& a, const Block& b) { return a.address < b.address; });
    return all;
  }

 private:
  AddressMap by_address_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> free_;
};

class Undoing {
 public:
  Undoing(const Snapshot& s, size_t trace)
      : s_(s), trace_(s.traces.at(trace)), settings_(AllocatorSettings::of(s)), pool_of_(s, trace_.device) {
    for (const Segment& g : s.segments) {
      if (g.device != trace_.device || g.total <= 0) continue;
      segments_[g.address] = g;
      for (size_t b = g.first_block; b < g.first_block + g.blocks; ++b)
        if (s.blocks[b].state != State::inactive) undone_.put({s.blocks[b].address, b, true, s.blocks[b].state});
    }
  }

  AllocatorState after(size_t events) {
    const size_t from = trace_.begin + std::min(events, trace_.end - trace_.begin);
    for (size_t i = trace_.end; i-- > from;) undo(i);
    for (const UndoneBlocks::Block& b : undone_.sorted()) blocks_.emplace_hint(blocks_.end(), b.address, known(b));
    look_back(from);
    return tiled();
  }

 private:
  struct Known {
    Block block;
    size_t died = 0;        ///< event that ended it
    bool exact = false;     ///< its size is the dump's
    uint64_t boundary = 0;  ///< where it ended, if something showed it
  };
  Known known(const UndoneBlocks::Block& b) const {
    const Events& e = s_.events;
    Known k{b.of_dump ? s_.blocks[b.source]
                      : Block{b.address, 0, std::clamp<int64_t>(e.size[b.source], 0, int64_t{1} << 50), State::inactive,
                              e.stack[b.source]},
            b.of_dump ? trace_.end : b.source, b.of_dump};
    k.block.state = b.state;
    return k;
  }
  uint64_t rounded_end(const Known& k) const {
    return k.block.address + static_cast<uint64_t>(settings_.rounded(k.block.requested));
  }
  Segment* containing(uint64_t address) {
    auto it = segments_.upper_bound(address);
    if (it == segments_.begin()) return nullptr;
    Segment& g = std::prev(it)->second;
    return address - g.address < static_cast<uint64_t>(g.total) ? &g : nullptr;
  }

  void undo(size_t i) {
    const Events& e = s_.events;
    const uint64_t address = e.address[i];
    switch (e.action[i]) {
      case Action::alloc:
        doubts_ += !undone_.take(address);
        break;
      case Action::free_completed:
      case Action::free:
        doubts_ += undone_.put({address, i, false, e.action[i] == Action::free ? State::active : State::pending_free});
        break;
      case Action::free_requested:
        if (UndoneBlocks::Block* block = undone_.find(address))
          block->state = State::active;
        else
          ++doubts_;
        break;
      case Action::segment_alloc:
        doubts_ += segments_.erase(address) == 0;
        break;
      case Action::segment_free:
        add(i, false);
        break;
      case Action::segment_map:
        carve(address, e.size[i]);
        break;
      case Action::segment_unmap:
        add(i, true);
        break;
      default:
        break;
    }
  }

  void carve(uint64_t address, int64_t size) {
    Segment* g = containing(address);
    if (!g || size <= 0 || address + static_cast<uint64_t>(size) > g->address + static_cast<uint64_t>(g->total)) {
      ++doubts_;
      return;
    }
    Segment behind = *g;
    behind.address = address + static_cast<uint64_t>(size);
    behind.total = static_cast<int64_t>(g->address + static_cast<uint64_t>(g->total) - behind.address);
    g->total = static_cast<int64_t>(address - g->address);
    if (g->total == 0) segments_.erase(g->address);
    if (behind.total > 0) segments_[behind.address] = behind;
  }

  void add(size_t i, bool mapped) {
    const Events& e = s_.events;
    Segment g;
    g.device = trace_.device;
    g.address = e.address[i];
    g.total = std::clamp<int64_t>(e.size[i], 0, int64_t{1} << 50);
    g.stream = e.stream[i];
    g.pool = pool_of_(i);
    g.expandable = mapped;
    g.large = g.total > kSmallBuffer;
    if (g.total == 0 || segments_.count(g.address)) {
      ++doubts_;
      return;
    }
    if (!mapped) {
      segments_[g.address] = g;
      return;
    }
    g.large = pool_is_large(i);
    auto joins = [&](const Segment& o) {
      return o.expandable && o.stream == g.stream && o.pool == g.pool && o.large == g.large;
    };
    auto next = segments_.find(g.address + static_cast<uint64_t>(g.total));
    auto before = segments_.lower_bound(g.address);
    const bool has_before =
        before != segments_.begin() &&
        std::prev(before)->second.address + static_cast<uint64_t>(std::prev(before)->second.total) == g.address &&
        joins(std::prev(before)->second);
    const bool has_next = next != segments_.end() && joins(next->second);
    if (has_next) {
      g.total += next->second.total;
      segments_.erase(next);
    }
    if (has_before)
      std::prev(segments_.lower_bound(g.address))->second.total += g.total;
    else
      segments_[g.address] = g;
  }

  /// Whether what was unmapped belonged to the pool of large blocks: the grains in which it had been mapped tell.
  bool pool_is_large(size_t unmap) {
    const Events& e = s_.events;
    if (!maps_known_) {
      maps_known_ = true;
      for (size_t i = trace_.begin; i < trace_.end; ++i)
        if (e.action[i] == Action::segment_map)
          maps_[e.address[i]] = e.size[i] > kSmallBuffer || settings_.large_segment_size <= kSmallBuffer;
    }
    auto it = maps_.lower_bound(e.address[unmap]);
    if (it != maps_.end() && it->first - e.address[unmap] < static_cast<uint64_t>(e.size[unmap])) return it->second;
    return e.size[unmap] % settings_.large_segment_size == 0;
  }

  /// Goes through all events for what they tell of the blocks that are there: who allocated them, and where they ended.
  void look_back(size_t from) {
    const Events& e = s_.events;
    constexpr int kGrain = 16;
    Sieve begins, ends;
    for (const auto& [address, k] : blocks_) {
      begins.add(address);
      if (k.exact) continue;
      const uint64_t end = rounded_end(k);
      for (uint64_t grain = end >> kGrain; grain <= (end + static_cast<uint64_t>(kSmallSize)) >> kGrain; ++grain)
        ends.add(grain);
    }
    auto boundary = [&](uint64_t at, size_t i) {
      if (!ends.may_hold(at >> kGrain)) return;
      auto it = blocks_.lower_bound(at);
      if (it == blocks_.begin()) return;
      Known& k = std::prev(it)->second;
      if (k.exact || i >= k.died || at - rounded_end(k) > static_cast<uint64_t>(kSmallSize))
        return;  // also where it lies before the end
      if (!k.boundary || at < k.boundary) k.boundary = at;
    };
    for (size_t i = trace_.begin; i < trace_.end; ++i) {
      const bool born = e.action[i] == Action::alloc;
      if (!born && e.action[i] != Action::free_completed && e.action[i] != Action::free) continue;
      boundary(e.address[i], i);
      if (!born || i >= from || !begins.may_hold(e.address[i])) continue;
      auto it = blocks_.find(e.address[i]);
      if (it == blocks_.end()) continue;
      it->second.boundary = 0;
      it->second.block.stack = e.stack[i];
    }
  }

  AllocatorState tiled() {
    AllocatorState out;
    out.doubts = doubts_;
    auto it = blocks_.begin();
    for (auto& [address, segment] : segments_) {
      Segment g = segment;
      const uint64_t end = g.address + static_cast<uint64_t>(g.total);
      g.allocated = g.active = g.requested = 0;
      g.first_block = out.blocks.size();
      uint64_t at = g.address;
      auto free_until = [&](uint64_t to) {
        if (to > at) out.blocks.push_back({at, static_cast<int64_t>(to - at), 0, State::inactive, kNone});
      };
      while (it != blocks_.end() && it->first < at) ++it, ++out.doubts;  // in no segment
      for (; it != blocks_.end() && it->first < end; ++it) {
        Known& k = it->second;
        auto next = std::next(it);
        const uint64_t room = next != blocks_.end() && next->first < end ? next->first : end;
        free_until(k.block.address);
        if (!k.exact) k.block.size = static_cast<int64_t>(end_of(k, g, room) - k.block.address);
        k.block.size = std::min<int64_t>(k.block.size, static_cast<int64_t>(room - k.block.address));
        at = k.block.address + static_cast<uint64_t>(k.block.size);
        g.active += k.block.size;
        g.requested += k.block.requested;
        if (k.block.state == State::active) g.allocated += k.block.size;
        out.blocks.push_back(k.block);
      }
      free_until(end);
      g.blocks = out.blocks.size() - g.first_block;
      out.segments.push_back(g);
    }
    return out;
  }

  uint64_t end_of(const Known& k, const Segment& g, uint64_t room) const {
    const int64_t size = settings_.rounded(k.block.requested);
    const uint64_t end = k.block.address + static_cast<uint64_t>(size);
    if (g.expandable || !g.large || end >= room) return end;
    if (settings_.max_split_size >= 0 && size >= settings_.max_split_size) return room;
    if (room - end <= static_cast<uint64_t>(kSmallSize)) return room;
    return k.boundary ? std::max(end, k.boundary) : end;
  }

  const Snapshot& s_;
  const DeviceTrace& trace_;
  AllocatorSettings settings_;
  PoolsOfEvents pool_of_;
  std::map<uint64_t, Segment> segments_;
  UndoneBlocks undone_;
  std::map<uint64_t, Known> blocks_;  ///< those that are left
  std::map<uint64_t, bool> maps_;
  bool maps_known_ = false;
  size_t doubts_ = 0;
};

}  // namespace

AllocatorState state_after(const Snapshot& snapshot, size_t trace, size_t events) {
  return Undoing(snapshot, trace).after(events);
}

AllocatorState state_at_end(const Snapshot& s, int64_t device) {
  AllocatorState out;
  for (const Segment& g : s.segments) {
    if (g.device != device) continue;
    Segment copy = g;
    copy.first_block = out.blocks.size();
    out.blocks.insert(out.blocks.end(), s.blocks.begin() + static_cast<long>(g.first_block),
                      s.blocks.begin() + static_cast<long>(g.first_block + g.blocks));
    out.segments.push_back(copy);
  }
  std::sort(out.segments.begin(), out.segments.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
  return out;
}

}  // namespace tenon::snapshot
