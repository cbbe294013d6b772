#include "tracing/snapshot/allocator_model.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

// Note [The model's numbers]
// kMinBlockSize 512, kSmallSize 1 MiB, kSmallBuffer 2 MiB, kLargeBuffer 20 MiB, kMinLargeAlloc 10 MiB, kRoundLarge 2 MiB are those of
// c10/core/AllocatorConfig.h and CUDACachingAllocator.cpp. Requests up to 1 MiB are served from segments of 2 MiB; larger ones from segments
// of 20 MiB, or from 10 MiB on from a segment of their own size, rounded up to 2 MiB. Pools are per stream: a block is found by (stream,
// size, address), the smallest that is large enough.

namespace tenon::snapshot {
namespace {
constexpr int64_t kMinBlock = 512, kSmallSize = 1 << 20, kSmallBuffer = 2 << 20, kLargeBuffer = 20 << 20, kMinLargeAlloc = 10 << 20, kRoundLarge = 2 << 20;
}

/// A run of bytes of a segment: taken or free, with its neighbours. In an expandable segment also a run that is not mapped.
struct AllocatorModel::Piece {
  int64_t stream = 0, size = 0;
  uint64_t address = 0;
  Piece *before = nullptr, *after = nullptr;
  Expandable* expandable = nullptr;
  bool small = false, taken = false, mapped = true;
  uint64_t gc_base = 0;  ///< calls of the large pool when it came into it
};

struct AllocatorModel::Expandable {
  int64_t stream = 0;
  bool small = false;
  Piece* first = nullptr;
};

bool AllocatorModel::Less::operator()(const Piece* a, const Piece* b) const {
  if (a->stream != b->stream) return a->stream < b->stream;
  if (a->size != b->size) return a->size < b->size;
  return a->address < b->address;
}

bool AllocatorModel::piece_small(const Piece& p) { return p.small; }

AllocatorModel::AllocatorModel(AllocatorSettings settings, int64_t limit) : settings_(std::move(settings)), limit_(limit), next_address_(uint64_t{1} << 40) {}

AllocatorModel::~AllocatorModel() {
  std::vector<Piece*> all;
  auto collect = [&](Piece* p) {
    while (p->before) p = p->before;
    for (; p; p = p->after) all.push_back(p);
  };
  std::set<Piece*> heads;
  auto head = [&](Piece* p) {
    while (p->before) p = p->before;
    heads.insert(p);
  };
  for (Pool* pool : {&small_, &large_})
    for (Piece* p : *pool) head(p);
  for (auto& [address, p] : taken_) head(p);
  for (auto& e : expandables_)
    if (e->first) head(e->first);
  for (Piece* h : heads) collect(h);
  for (Piece* p : all) delete p;
}

// round_size() and roundup_power2_next_division().
int64_t AllocatorModel::rounded(int64_t size) const {
  if (size < kMinBlock) return kMinBlock;
  int64_t divisions = settings_.roundup_power2_divisions;
  for (auto [from, d] : settings_.roundup_by_megabyte)
    if (size >= from << 20) divisions = d;
  if (divisions > 1 && size > kMinBlock * divisions) {
    if (std::has_single_bit(static_cast<uint64_t>(size))) return size;
    auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)));
    int64_t step = floor / divisions;
    if (step == 0) return floor << 1;
    int64_t cut = size & ~(step - 1);
    return cut == size ? size : cut + step;
  }
  return (size + kMinBlock - 1) / kMinBlock * kMinBlock;
}

bool AllocatorModel::should_split(const Piece& p, int64_t size) const {
  int64_t rest = p.size - size;
  if (p.small || settings_.expandable_segments) return rest >= kMinBlock;
  return (settings_.max_split_size < 0 || size < settings_.max_split_size) && rest > kSmallSize;
}

// get_free_block().
AllocatorModel::Piece* AllocatorModel::find_free(Pool& pool, int64_t stream, int64_t size) {
  Piece key;
  key.stream = stream;
  key.size = size;
  auto it = pool.lower_bound(&key);
  if (it == pool.end() || (*it)->stream != stream) return nullptr;
  if ((*it)->expandable) {
    // A free block at the edge of what is mapped counts as what it could grow to: the block that would grow least is taken.
    auto could_be = [](const Piece* p) { return p->after && !p->after->mapped ? p->size + p->after->size : p->size; };
    auto next = it;
    for (++next; (*it)->after && !(*it)->after->mapped && next != pool.end() && (*next)->stream == stream && could_be(*next) < could_be(*it); ++next) it = next;
  }
  Piece* p = *it;
  if (settings_.max_split_size >= 0) {
    if (size < settings_.max_split_size && p->size >= settings_.max_split_size) return nullptr;
    if (size >= settings_.max_split_size && p->size >= size + kLargeBuffer) return nullptr;
  }
  pool.erase(it);
  return p;
}

AllocatorModel::Piece* AllocatorModel::new_segment(bool small, int64_t stream, int64_t size) {
  int64_t bytes = small ? kSmallBuffer : size < kMinLargeAlloc ? kLargeBuffer : (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
  if (!room_for(bytes)) return nullptr;
  auto* p = new Piece;
  p->stream = stream;
  p->size = bytes;
  p->address = next_address_;
  p->small = small;
  next_address_ += static_cast<uint64_t>(bytes) + (uint64_t{1} << 21);
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  events_.push_back({Action::segment_alloc, bytes, stream});
  return p;
}

// try_allocate_expandable_block(): one segment of addresses a stream and pool, mapped piece by piece.
AllocatorModel::Piece* AllocatorModel::new_expandable(bool small, int64_t stream, int64_t size) {
  const int64_t grain = small ? kSmallBuffer : kLargeBuffer;
  Pool& pool = small ? small_ : large_;
  Piece* candidate = nullptr;
  for (auto& e : expandables_) {
    if (e->stream != stream || e->small != small) continue;
    // find_expandable_block(): the first unmapped run that, with the free block before it, is large enough.
    for (Piece* p = e->first; p; p = p->after) {
      if (p->mapped) continue;
      int64_t have = p->size + (p->before && !p->before->taken && p->before->mapped ? p->before->size : 0);
      if (have >= size) {
        candidate = p;
        break;
      }
    }
    if (candidate) break;
  }
  if (!candidate) {
    auto e = std::make_unique<Expandable>();
    e->stream = stream;
    e->small = small;
    candidate = new Piece;
    candidate->stream = stream;
    candidate->small = small;
    candidate->mapped = false;
    candidate->expandable = e.get();
    candidate->size = int64_t{1} << 41;  // addresses cost nothing
    candidate->address = next_address_;
    next_address_ += uint64_t{1} << 41;
    e->first = candidate;
    expandables_.push_back(std::move(e));
  }
  if (candidate->before && candidate->before->mapped && !candidate->before->taken) pool.erase(candidate->before);
  auto map = [&](Piece* unmapped, int64_t bytes) {
    int64_t step = std::min((bytes + grain - 1) / grain * grain, unmapped->size);
    if (!room_for(step)) return false;
    if (step < unmapped->size) {
      auto* rest = new Piece(*unmapped);
      rest->address += static_cast<uint64_t>(step);
      rest->size -= step;
      rest->before = unmapped;
      if (rest->after) rest->after->before = rest;
      unmapped->after = rest;
      unmapped->size = step;
    }
    unmapped->mapped = true;
    reserved_ += step;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
    events_.push_back({Action::segment_map, step, stream});
    return true;
  };
  Piece* free_before = candidate->before && candidate->before->mapped && !candidate->before->taken ? candidate->before : nullptr;
  int64_t missing = size - (free_before ? free_before->size : 0);
  if (!map(candidate, missing)) {
    if (free_before) pool.insert(free_before);
    return nullptr;
  }
  if (free_before) merge(candidate, free_before);
  // map_block() merges with both neighbours.
  if (Piece* next = candidate->after; next && next->mapped && !next->taken) {
    pool.erase(next);
    merge(candidate, next);
  }
  return candidate;
}

// `from` lies beside `into` and is free: `into` takes it over.
void AllocatorModel::merge(Piece* into, Piece* from) {
  if (into->before == from) {
    into->address = from->address;
    into->before = from->before;
    if (into->before) into->before->after = into;
    if (into->expandable && into->expandable->first == from) into->expandable->first = into;
  } else {
    into->after = from->after;
    if (into->after) into->after->before = into;
  }
  into->size += from->size;
  delete from;
}

// release_block(): a whole segment without tenants goes back to the driver.
void AllocatorModel::release(Piece* p) {
  reserved_ -= p->size;
  events_.push_back({Action::segment_free, p->size, p->stream});
  pool_of(*p).erase(p);
  delete p;
}

// unmap_block(): of a free run, the whole grains.
void AllocatorModel::unmap(Piece* p) {
  const int64_t grain = p->small ? kSmallBuffer : kLargeBuffer;
  uint64_t base = p->expandable->first->address;
  uint64_t from = base + (p->address - base + static_cast<uint64_t>(grain) - 1) / static_cast<uint64_t>(grain) * static_cast<uint64_t>(grain);
  uint64_t to = base + (p->address + static_cast<uint64_t>(p->size) - base) / static_cast<uint64_t>(grain) * static_cast<uint64_t>(grain);
  if (to <= from) return;
  Pool& pool = pool_of(*p);
  pool.erase(p);
  auto cut = [&](Piece* whole, uint64_t at) {  // splits, giving the part behind
    auto* rest = new Piece(*whole);
    rest->address = at;
    rest->size = whole->size - static_cast<int64_t>(at - whole->address);
    rest->before = whole;
    if (rest->after) rest->after->before = rest;
    whole->after = rest;
    whole->size = static_cast<int64_t>(at - whole->address);
    return rest;
  };
  Piece* middle = p;
  if (from > p->address) {
    middle = cut(p, from);
    pool.insert(p);
  }
  if (to < middle->address + static_cast<uint64_t>(middle->size)) pool.insert(cut(middle, to));
  middle->mapped = false;
  reserved_ -= middle->size;
  events_.push_back({Action::segment_unmap, middle->size, middle->stream});
  if (middle->after && !middle->after->mapped) merge(middle, middle->after);
  if (middle->before && !middle->before->mapped) merge(middle, middle->before);
}

// garbage_collect_cached_blocks(): the segments that were unused for longest, until the total is below the threshold.
bool AllocatorModel::collect_garbage() {
  if (settings_.garbage_collection_threshold <= 0 || limit_ == 0) return false;
  const auto threshold = static_cast<int64_t>(settings_.garbage_collection_threshold * static_cast<double>(limit_));
  if (reserved_ <= threshold) return false;
  const int64_t target = reserved_ - threshold;
  int64_t freed = 0;
  auto age = [this](const Piece* p) { return static_cast<double>(large_calls_ - p->gc_base); };
  double total_age = 0;
  int64_t freeable = 0;
  for (Piece* p : large_)
    if (!p->before && !p->after && !p->expandable) total_age += age(p), ++freeable;
  bool any = true;
  while (freed < target && any && freeable > 0) {
    any = false;
    double mean_age = total_age / static_cast<double>(freeable);
    for (auto it = large_.begin(); it != large_.end();) {
      Piece* p = *it++;
      if (p->before || p->after || p->expandable || age(p) < mean_age) continue;
      any = true;
      freed += p->size;
      total_age -= age(p);
      --freeable;
      release(p);
    }
  }
  return freed > 0;
}

// release_available_cached_blocks(): oversized blocks, when splitting is limited.
bool AllocatorModel::release_oversized(int64_t wanted, int64_t stream) {
  // PyTorch looks into the pool of the request; the small one holds nothing so large.
  if (settings_.max_split_size < 0 || wanted <= kSmallSize) return false;
  Piece key;
  key.stream = stream;
  key.size = std::max(wanted, settings_.max_split_size);
  auto whole = [](const Piece* p) { return !p->before && !p->after && !p->expandable; };
  auto it = large_.lower_bound(&key);
  if (it == large_.end() || (*it)->stream != stream) {
    // No single one is enough: several of the largest, from the largest on.
    if (it == large_.begin()) return false;
    int64_t freed = 0;
    --it;
    std::vector<Piece*> some;
    for (;; --it) {
      if ((*it)->stream != stream || (*it)->size < settings_.max_split_size) break;
      if (whole(*it)) {
        freed += (*it)->size;
        some.push_back(*it);
      }
      if (freed >= key.size || it == large_.begin()) break;
    }
    for (Piece* p : some) release(p);
    return freed >= key.size;
  }
  if (!whole(*it)) return false;
  release(*it);
  return true;
}

// release_cached_blocks().
void AllocatorModel::release_all() {
  for (Pool* pool : {&large_, &small_}) {
    std::vector<Piece*> whole, runs;
    for (Piece* p : *pool) {
      if (p->expandable) runs.push_back(p);
      else if (!p->before && !p->after) whole.push_back(p);
    }
    for (Piece* p : runs) unmap(p);
    for (Piece* p : whole) release(p);
  }
}
void AllocatorModel::empty_cache() { release_all(); }

uint64_t AllocatorModel::alloc(int64_t requested, int64_t stream) {
  const int64_t size = rounded(requested);
  if (settings_.ideal) {
    if (!room_for(size)) return kFailed;
    auto* p = new Piece;
    p->size = size;
    p->address = next_address_;
    p->taken = true;
    next_address_ += static_cast<uint64_t>(size);
    reserved_ += size;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
    allocated_ += size;
    taken_[p->address] = p;
    return p->address;
  }
  const bool small = size <= kSmallSize;
  Pool& pool = small ? small_ : large_;
  if (settings_.garbage_collection_threshold > 0)
    if (!small) ++large_calls_;
  Piece* p = find_free(pool, stream, size);
  auto fresh = [&] { return settings_.expandable_segments ? new_expandable(small, stream, size) : new_segment(small, stream, size); };
  if (!p) {
    collect_garbage();
    p = fresh();
    if (!p && release_oversized(size, stream)) p = fresh();
    if (!p) {
      release_all();
      p = fresh();
    }
  }
  if (!p) return kFailed;
  if (should_split(*p, size)) {
    auto* rest = new Piece(*p);
    rest->address += static_cast<uint64_t>(size);
    rest->size -= size;
    rest->before = p;
    rest->taken = false;
    if (rest->after) rest->after->before = rest;
    p->after = rest;
    p->size = size;
    rest->gc_base = large_calls_;
    pool.insert(rest);
  }
  p->taken = true;
  allocated_ += p->size;
  taken_[p->address] = p;
  return p->address;
}

// free_block() and try_merge_blocks().
void AllocatorModel::free(uint64_t address) {
  auto it = taken_.find(address);
  if (it == taken_.end()) return;
  Piece* p = it->second;
  taken_.erase(it);
  allocated_ -= p->size;
  if (settings_.ideal) {
    reserved_ -= p->size;
    delete p;
    return;
  }
  p->taken = false;
  Pool& pool = pool_of(*p);
  for (Piece* side : {p->before, p->after}) {
    if (!side || side->taken || !side->mapped) continue;
    pool.erase(side);
    merge(p, side);
  }
  p->gc_base = large_calls_;
  pool.insert(p);
}

int64_t AllocatorModel::largest_free() const {
  int64_t most = 0;
  for (const Pool* pool : {&small_, &large_})
    for (const Piece* p : *pool) most = std::max(most, p->size);
  return most;
}

std::vector<Segment> AllocatorModel::segments(std::vector<Block>& blocks) const {
  std::vector<Segment> out;
  std::set<const Piece*> heads;
  auto head = [&](const Piece* p) {
    while (p->before) p = p->before;
    heads.insert(p);
  };
  for (const Pool* pool : {&small_, &large_})
    for (const Piece* p : *pool) head(p);
  for (const auto& [address, p] : taken_) head(p);
  for (const Piece* h : heads) {
    Segment s;
    s.address = h->address;
    s.large = !h->small;
    s.expandable = h->expandable != nullptr;
    s.first_block = blocks.size();
    for (const Piece* p = h; p; p = p->after) {
      if (!p->mapped) continue;
      blocks.push_back({p->address, p->size, p->taken ? p->size : 0, p->taken ? State::active : State::inactive, kNone});
      s.total += p->size;
      if (p->taken) s.allocated += p->size, s.active += p->size, s.requested += p->size;
    }
    s.blocks = blocks.size() - s.first_block;
    out.push_back(s);
  }
  return out;
}

}  // namespace tenon::snapshot
