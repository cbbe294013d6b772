#include "tracing/snapshot/allocator_model.h"

#include "tracing/snapshot/allocator_pools.h"

// Requests and frees; what makes room is in allocator_release.cpp. The names in the comments are those of functions of
// c10/cuda/CUDACachingAllocator.cpp, whose rules are followed as PyTorch 2.1 to 2.15 have them.

namespace tenon::snapshot {
namespace {
// Reserved addresses of an expandable segment where nothing is known of the device. Beyond kMost nothing is given.
constexpr int64_t kAddresses = int64_t{1} << 44, kMost = int64_t{1} << 60;
}  // namespace

AllocatorModel::AllocatorModel(AllocatorSettings settings, Limits limits)
    : settings_(std::move(settings)), limits_(limits), next_address_(uint64_t{1} << 40) {}

AllocatorModel::~AllocatorModel() {
  for (auto& [key, pool] : pools_) {
    for (Piece* p : pool->free) delete p;
    for (Piece* p : pool->unmapped) delete p;
  }
  for (auto& [address, p] : taken_) delete p;
}

AllocatorModel::Pool& AllocatorModel::pool_for(PoolId id, bool small) {
  auto& pool = pools_[{id, small}];
  if (!pool) {
    pool = std::make_unique<Pool>();
    pool->id = id;
    pool->small = small;
  }
  return *pool;
}

void AllocatorModel::record(Action action, int64_t size, const Piece& piece) {
  events_.push_back({action, size, piece.stream});
  event_addresses_.push_back(piece.address);
}

// BlockPool::insert_into_blocks().
void AllocatorModel::insert(Piece* p) {
  p->searches_then = p->pool->searches;
  p->pool->free.insert(p);
}

// malloc(). Nothing is released while a graph is captured, which allocates from a pool whose first number is not 0.
uint64_t AllocatorModel::alloc(int64_t requested, int64_t stream, PoolId id) {
  if (requested > kAddresses / 2) return kFailed;
  Request r;
  r.size = settings_.rounded(std::max<int64_t>(requested, 0));
  r.stream = stream;
  r.pool = &pool_for(id, r.size <= kSmallSize);
  r.expandable = expandable(id);
  bool found = !settings_.ideal && find_free(r);
  if (!found) {
    if (counts_searches()) collect_garbage();
    found = new_block(r, false) || (release_available(r) && new_block(r, false));
    if (!found && id.a == 0 && (id.b == 0 || !keeps_all_for_pools_)) {
      release_cached();
      found = new_block(r, true);
    }
  }
  if (!found) return kFailed;
  Piece* p = r.piece;
  if (should_split(r)) insert(cut(p, r.size));
  p->taken = true;
  p->requested = requested;
  allocated_ += p->size;
  taken_[p->address] = p;
  return p->address;
}

// get_free_block().
bool AllocatorModel::find_free(Request& r) {
  if (counts_searches()) ++r.pool->searches;
  r.piece = best_free(r);
  if (r.piece) r.pool->free.erase(r.piece);
  return r.piece != nullptr;
}
bool AllocatorModel::finds(int64_t size, int64_t stream, PoolId id) {
  if (size < 0 || size > kAddresses / 2) return false;
  const int64_t rounded = settings_.rounded(size);
  return best_free({rounded, stream, &pool_for(id, rounded <= kSmallSize), expandable(id), nullptr}) != nullptr;
}
AllocatorModel::Piece* AllocatorModel::best_free(const Request& r) const {
  const auto& free = r.pool->free;
  Piece key;
  key.stream = r.stream;
  key.size = r.size;
  auto it = free.lower_bound(&key);
  auto there = [&](auto at) { return at != free.end() && (*at)->stream == r.stream; };
  if (!there(it)) return nullptr;
  if ((*it)->expandable) {
    if (r.expandable) {
      // A free block at the edge of what is mapped counts as what it could grow to: the block that would grow least is
      // taken.
      auto could_be = [](const Piece* p) { return p->size + (p->after && !p->after->mapped ? p->after->size : 0); };
      for (auto next = std::next(it); (*it)->expandable && there(next) && could_be(*next) < could_be(*it);) it = next++;
    } else {
      do ++it;
      while (there(it) && (*it)->expandable);
      if (!there(it)) return nullptr;
    }
  }
  const int64_t limit = split_limit();
  const int64_t rounding =
      settings_.max_non_split_rounding < 0 ? settings_.large_segment_size : settings_.max_non_split_rounding;
  if (r.size < limit && (*it)->size >= limit) return nullptr;
  if (r.size >= limit && (*it)->size >= r.size + rounding) return nullptr;
  return *it;
}

// should_split().
bool AllocatorModel::should_split(const Request& r) const {
  const int64_t rest = r.piece->size - r.size;
  if (settings_.ideal) return false;
  if (r.pool->small || r.expandable) return rest >= kMinBlock;
  return r.size < split_limit() && rest > kSmallSize;
}

/// Cuts a piece in two and gives the part behind `at` bytes, which is in no pool yet.
AllocatorModel::Piece* AllocatorModel::cut(Piece* p, int64_t at) {
  auto* rest = new Piece(*p);
  rest->address += static_cast<uint64_t>(at);
  rest->size -= at;
  rest->before = p;
  if (rest->after) rest->after->before = rest;
  p->after = rest;
  p->size = at;
  return rest;
}

// alloc_block(). What is allowed is compared with a whole segment, also where an expandable one would grow by less.
bool AllocatorModel::new_block(Request& r, bool retry) {
  if (retry) ++retries_;
  if (settings_.ideal) return new_segment(r);
  if (limits_.allowed > 0 && reserved_ + settings_.segment_for(r.size) > limits_.allowed) return false;
  return r.expandable ? new_expandable(r) : new_segment(r);
}

bool AllocatorModel::new_segment(Request& r) {
  const int64_t bytes = settings_.ideal ? r.size : settings_.segment_for(r.size);
  if (reserved_ + bytes > (limits_.device > 0 ? limits_.device : kMost)) return false;
  auto* p = new Piece;
  p->stream = r.stream;
  p->size = bytes;
  p->pool = r.pool;
  p->address = addresses_ ? addresses_(Action::segment_alloc, bytes) : 0;
  if (!p->address) {
    p->address = next_address_;
    next_address_ += static_cast<uint64_t>(bytes + kRoundLarge - 1) / kRoundLarge * kRoundLarge + kRoundLarge;
  }
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  if (!settings_.ideal) record(Action::segment_alloc, bytes, *p);
  r.piece = p;
  return true;
}

// ExpandableSegment::ExpandableSegment(): addresses for 1 1/8 of what the device has.
int64_t AllocatorModel::addresses_of(const Pool& pool) const {
  const int64_t grain = pool.small ? kSmallBuffer : settings_.large_segment_size;
  const int64_t all = limits_.device > 0 ? limits_.device + limits_.device / 8 : kAddresses;
  return (all + grain - 1) / grain * grain;
}

// find_expandable_block(): the lowest address from which on free and unmapped pieces are large enough together; else a
// new segment.
AllocatorModel::Piece* AllocatorModel::find_expandable(Pool& pool, int64_t stream, int64_t size) {
  auto usable = [](const Piece* p) { return p && !p->taken; };
  Piece key;
  key.stream = stream;
  for (auto it = pool.unmapped.lower_bound(&key); it != pool.unmapped.end() && (*it)->stream == stream; ++it) {
    Piece* from = usable((*it)->before) ? (*it)->before : *it;
    int64_t bytes = 0;
    for (const Piece* p = from; bytes < size && usable(p); p = p->after) bytes += p->size;
    if (bytes >= size) return from;
  }
  auto* p = new Piece;
  p->stream = stream;
  p->pool = &pool;
  p->mapped = false;
  p->expandable = std::make_shared<Expandable>(Expandable{next_address_});
  p->address = next_address_;
  p->size = addresses_of(pool);
  next_address_ += static_cast<uint64_t>(kAddresses);
  pool.unmapped.insert(p);
  return p;
}

// try_allocate_expandable_block(). What was mapped before a later piece could not be stays mapped, and free.
bool AllocatorModel::new_expandable(Request& r) {
  Piece* p = find_expandable(*r.pool, r.stream, r.size);
  if (!p->mapped && !map(p, std::min(p->size, r.size))) return false;
  while (p->size < r.size) {
    Piece* next = p->after;
    if (!next || !map(next, std::min(r.size - p->size, next->size))) return false;
    p = next;
  }
  r.pool->free.erase(p);
  r.piece = p;
  return true;
}

// map_block() and ExpandableSegment::map(): whole grains, as many as the driver can give at once.
bool AllocatorModel::map(Piece* p, int64_t size) {
  const int64_t grain = p->pool->small ? kSmallBuffer : settings_.large_segment_size;
  const int64_t bytes = std::min((size + grain - 1) / grain * grain, p->size);
  if (reserved_ + bytes > (limits_.device > 0 ? limits_.device : kMost)) return false;
  p->pool->unmapped.erase(p);
  // A segment of which nothing is mapped yet lies where the driver will have put it.
  const uint64_t address = addresses_ ? addresses_(Action::segment_map, bytes) : 0;
  if (address && !p->is_split()) p->address = p->expandable->base = address;
  p->mapped = true;
  if (bytes < p->size) {
    Piece* rest = cut(p, bytes);
    rest->mapped = false;
    p->pool->unmapped.insert(rest);
  }
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  record(Action::segment_map, bytes, *p);
  merge(p, p->before);
  merge(p, p->after);
  insert(p);
  return true;
}

// try_merge_blocks(): `from` lies beside `into`, which takes it over where it is free and mapped likewise. The bytes
// that were merged.
int64_t AllocatorModel::merge(Piece* into, Piece* from) {
  if (!from || from->taken || from->mapped != into->mapped) return 0;
  if (into->before == from) {
    into->address = from->address;
    into->before = from->before;
    if (into->before) into->before->after = into;
  } else {
    into->after = from->after;
    if (into->after) into->after->before = into;
  }
  if (from->mapped)
    from->pool->free.erase(from);
  else
    from->pool->unmapped.erase(from);
  const int64_t bytes = from->size;
  into->size += bytes;
  delete from;
  return bytes;
}

void AllocatorModel::request_free(uint64_t address) {
  auto it = taken_.find(address);
  if (it == taken_.end() || it->second->pending) return;
  it->second->pending = true;
  pending_.insert(address);
}

void AllocatorModel::free(uint64_t address) {
  auto it = taken_.find(address);
  if (it == taken_.end()) return;
  Piece* p = it->second;
  if (p->pending) pending_.erase(address);
  taken_.erase(it);
  return_block(p);
}

// free_block().
void AllocatorModel::return_block(Piece* p) {
  allocated_ -= p->size;
  if (settings_.ideal) {
    reserved_ -= p->size;
    delete p;
    return;
  }
  p->taken = p->pending = false;
  p->requested = 0;
  merge(p, p->before);
  merge(p, p->after);
  insert(p);
}

int64_t AllocatorModel::largest_free() const {
  int64_t most = 0;
  for (const auto& [key, pool] : pools_)
    for (const Piece* p : pool->free) most = std::max(most, p->size);
  return most;
}

// --- from and to the form of a snapshot

void AllocatorModel::begin_with(const AllocatorState& state, const Snapshot& snapshot) {
  next_address_ =
      uint64_t{1} << 56;  // behind all that a driver gives: of equal pieces the one at the lower address is taken
  // Pieces of one expandable segment are taken for one where stream and pool are the same: nothing in a dump tells two
  // of them apart.
  std::map<std::tuple<uint32_t, PoolId, bool>, Piece*> last_of;
  uint64_t covered = 0;
  for (const Segment& g : state.segments) {
    // Segments that overlap are none that an allocator holds: the first one stays.
    if (g.total <= 0 || g.total > kAddresses || g.address < covered ||
        g.address > UINT64_MAX - static_cast<uint64_t>(kAddresses) * 2)
      continue;
    covered = g.address + static_cast<uint64_t>(g.total);
    Pool& pool = pool_for(g.pool, !g.large);
    Piece pattern;
    pattern.stream = g.stream < snapshot.streams.size() ? snapshot.streams[g.stream] : 0;
    pattern.pool = &pool;
    Piece* last = nullptr;
    auto append = [&](uint64_t address, int64_t size) {
      auto* p = new Piece(pattern);
      p->address = address;
      p->size = size;
      p->before = last;
      if (last) last->after = p;
      return last = p;
    };
    auto unmapped = [&](uint64_t address, int64_t size) {
      Piece* p = append(address, size);
      p->mapped = false;
      pool.unmapped.insert(p);
    };
    if (g.expandable) {
      Piece*& end = last_of[{g.stream, g.pool, g.large}];
      if (end) {
        // The tail that was unmapped behind the part before ends where this part begins.
        pattern.expandable = end->expandable;
        uint64_t from = end->address + static_cast<uint64_t>(end->size);
        last = end;
        if (!end->mapped) {
          from = end->address;
          last = end->before;
          pool.unmapped.erase(end);
          if (last) last->after = nullptr;
          delete end;
        }
        end = nullptr;
        if (g.address > from) unmapped(from, static_cast<int64_t>(g.address - from));
      } else {
        uint64_t base = base_ ? std::min(base_(g), g.address) : g.address;
        if (g.address - base >= static_cast<uint64_t>(kAddresses)) base = g.address;
        pattern.expandable = std::make_shared<Expandable>(Expandable{base});
        if (base < g.address) unmapped(base, static_cast<int64_t>(g.address - base));
      }
    }
    uint64_t at = g.address;
    const uint64_t segment_end = g.address + static_cast<uint64_t>(g.total);
    for (size_t b = g.first_block; b < g.first_block + g.blocks; ++b) {
      const Block& block = state.blocks[b];
      if (block.state == State::inactive || block.size <= 0 || block.address < at || block.address >= segment_end ||
          static_cast<uint64_t>(block.size) > segment_end - block.address)
        continue;
      if (taken_.count(block.address)) continue;
      if (block.address > at) insert(append(at, static_cast<int64_t>(block.address - at)));
      Piece* p = append(block.address, block.size);
      p->taken = true;
      p->requested = block.requested;
      taken_[p->address] = p;
      allocated_ += p->size;
      if (block.state == State::pending_free) request_free(p->address);
      at = block.address + static_cast<uint64_t>(block.size);
    }
    if (at < segment_end) insert(append(at, static_cast<int64_t>(segment_end - at)));
    if (g.expandable) {
      // Nothing is behind it where all addresses are mapped; where more is mapped than they should be, the device has
      // more than we know.
      const uint64_t reserved_end = pattern.expandable->base + static_cast<uint64_t>(addresses_of(pool));
      if (reserved_end != segment_end)
        unmapped(segment_end,
                 reserved_end > segment_end ? static_cast<int64_t>(reserved_end - segment_end) : kAddresses);
      last_of[{g.stream, g.pool, g.large}] = last;
    }
    reserved_ += g.total;
  }
  peak_reserved_ = reserved_;
}

AllocatorState AllocatorModel::state(std::vector<int64_t>& streams) const {
  std::vector<const Piece*> mapped;
  for (const auto& [key, pool] : pools_) mapped.insert(mapped.end(), pool->free.begin(), pool->free.end());
  for (const auto& [address, p] : taken_) mapped.push_back(p);
  std::sort(mapped.begin(), mapped.end(), [](const Piece* a, const Piece* b) { return a->address < b->address; });
  AllocatorState out;
  for (const Piece* p : mapped) {
    if (!p->before || !p->before->mapped) {
      Segment g;
      g.address = p->address;
      auto stream = std::find(streams.begin(), streams.end(), p->stream);
      g.stream = static_cast<uint32_t>(stream - streams.begin());
      if (stream == streams.end()) streams.push_back(p->stream);
      g.large = !p->pool->small;
      g.pool = p->pool->id;
      g.expandable = p->expandable != nullptr;
      g.first_block = out.blocks.size();
      out.segments.push_back(g);
    }
    Segment& g = out.segments.back();
    out.blocks.push_back({p->address, p->size, p->requested,
                          p->pending ? State::pending_free
                          : p->taken ? State::active
                                     : State::inactive,
                          kNone});
    g.blocks = out.blocks.size() - g.first_block;
    g.total += p->size;
    if (p->taken) g.active += p->size, g.requested += p->requested;
    if (p->taken && !p->pending) g.allocated += p->size;
  }
  return out;
}

}  // namespace tenon::snapshot
