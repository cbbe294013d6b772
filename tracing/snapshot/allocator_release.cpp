// What the allocator model gives back to the driver, and when.
#include "tracing/snapshot/allocator_pools.h"

namespace tenon::snapshot {

// garbage_collect_cached_blocks(): the segments of the large pool that were unused for longer than the mean, until the
// total is below the threshold. Only where set_per_process_memory_fraction() limits the process.
void AllocatorModel::collect_garbage() {
  const auto threshold =
      static_cast<int64_t>(settings_.garbage_collection_threshold * static_cast<double>(limits_.allowed));
  if (reserved_ <= threshold) return;
  const int64_t target = reserved_ - threshold;
  Pool& pool = pool_for({}, false);
  auto age = [&pool](const Piece* p) { return static_cast<int64_t>(pool.searches - p->searches_then); };
  int64_t total_age = 0, freeable = 0, freed = 0;
  for (const Piece* p : pool.free)
    if (!p->is_split()) total_age += age(p), ++freeable;
  for (bool any = true; any && freed < target && freeable > 0;) {
    const double mean = static_cast<double>(total_age) / static_cast<double>(freeable);
    any = false;
    for (auto it = pool.free.begin(); it != pool.free.end();) {
      Piece* p = *it++;
      if (p->is_split() || p->expandable || static_cast<double>(age(p)) < mean) continue;
      any = true;
      freed += p->size;
      total_age -= age(p);
      --freeable;
      release_segment(p);
    }
  }
}

bool AllocatorModel::would_collect() const {
  if (!counts_searches() ||
      reserved_ <= static_cast<int64_t>(settings_.garbage_collection_threshold * static_cast<double>(limits_.allowed)))
    return false;
  auto it = pools_.find({PoolId{}, false});
  return it != pools_.end() && std::any_of(it->second->free.begin(), it->second->free.end(),
                                           [](const Piece* p) { return !p->is_split() && !p->expandable; });
}

// release_available_cached_blocks(): with limited splitting, one oversized block that is large enough, or several from
// the largest on.
bool AllocatorModel::release_available(const Request& r) {
  if (settings_.max_split_size < 0) return false;
  auto& free = r.pool->free;
  Piece key;
  key.stream = r.stream;
  key.size = std::max(r.size, settings_.max_split_size);
  auto it = free.lower_bound(&key);
  if (it != free.end() && (*it)->stream == r.stream && !(*it)->expandable) {
    release_segment(*it);
    return true;
  }
  if (it == free.begin()) return false;
  int64_t freed = 0;
  --it;
  while (freed < key.size && (*it)->size >= settings_.max_split_size && (*it)->stream == r.stream) {
    auto here = it;
    const bool first = here == free.begin();
    if (!first) --it;
    if (!(*here)->expandable) {
      freed += (*here)->size;
      release_segment(*here);
    }
    if (first) break;
  }
  return freed >= key.size;
}

// release_cached_blocks(): after waiting for what other streams still use (synchronize_and_free_events()).
void AllocatorModel::release_cached() {
  while (!pending_.empty()) free(*pending_.begin());
  release_pool(pool_for({}, false));
  release_pool(pool_for({}, true));
  for (PoolId id : unused_) {
    release_pool(pool_for(id, true));
    release_pool(pool_for(id, false));
  }
}
void AllocatorModel::set_unused(PoolId pool) {
  std::erase(unused_, pool);
  unused_.push_back(pool);
}
void AllocatorModel::empty_cache() { release_cached(); }
void AllocatorModel::release(PoolId id) {
  const bool everybodys = id == PoolId{};
  release_pool(pool_for(id, !everybodys));
  release_pool(pool_for(id, everybodys));
}

// release_blocks(): whole segments without a tenant; of expandable ones, what is free.
void AllocatorModel::release_pool(Pool& pool) {
  std::vector<Piece*> expandable;  // unmapping changes the pool
  for (auto it = pool.free.begin(); it != pool.free.end();) {
    Piece* p = *it++;
    if (p->expandable)
      expandable.push_back(p);
    else if (!p->is_split())
      release_segment(p);
  }
  for (Piece* p : expandable) {
    unmap(p);
    if (p->is_split()) continue;
    pool.unmapped.erase(p);  // release_expandable_segment()
    delete p;
  }
}

// release_block().
void AllocatorModel::release_segment(Piece* p) {
  reserved_ -= p->size;
  record(Action::segment_free, p->size, *p);
  p->pool->free.erase(p);
  // A block that is split would leave neighbours behind; the allocator never comes here with one.
  if (p->before) p->before->after = p->after;
  if (p->after) p->after->before = p->before;
  delete p;
}

// unmap_block() and ExpandableSegment::unmap(): of a free run, the whole grains.
void AllocatorModel::unmap(Piece* p) {
  const auto grain = static_cast<uint64_t>(p->pool->small ? kSmallBuffer : settings_.large_segment_size);
  const uint64_t base = p->expandable->base, offset = p->address - base;
  const uint64_t from = (offset + grain - 1) / grain * grain,
                 to = (offset + static_cast<uint64_t>(p->size)) / grain * grain;
  if (to <= from) return;
  Pool& pool = *p->pool;
  pool.free.erase(p);
  // The piece itself stays the one that becomes unmapped; what is left of it on either side are new ones.
  if (from > offset) {
    auto* front = new Piece(*p);
    front->size = static_cast<int64_t>(from - offset);
    front->after = p;
    if (front->before) front->before->after = front;
    p->before = front;
    p->address += from - offset;
    p->size -= front->size;
    insert(front);
  }
  const auto bytes = static_cast<int64_t>(to - from);
  if (p->size > bytes) insert(cut(p, bytes));
  p->mapped = false;
  reserved_ -= bytes;
  record(Action::segment_unmap, bytes, *p);
  merge(p, p->before);
  merge(p, p->after);
  pool.unmapped.insert(p);
}

}  // namespace tenon::snapshot
