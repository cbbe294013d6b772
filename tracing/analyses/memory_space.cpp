// memory fragmentation: how the allocator uses what it reserved.
#include "tracing/analyses/memory_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_settings.h"

namespace tenon::tracing {

using snapshot::AllocatorState;
using snapshot::Block;
using snapshot::Segment;
using snapshot::Snapshot;
using snapshot::State;

void Space::add(const Space& o) {
  reserved += o.reserved, taken += o.taken, free += o.free, segments += o.segments, waiting += o.waiting,
      returnable += o.returnable, kept += o.kept, gaps_squared += o.gaps_squared;
  largest = std::max(largest, o.largest);
}

SpaceOf space_of(const AllocatorState& state) {
  SpaceOf out;
  for (const Segment& g : state.segments) {
    Held h{g};
    Space one;
    one.reserved = g.total;
    one.segments = 1;
    // Of an expandable segment whole grains go back to the driver, whoever lives beside them; of others only the whole.
    const auto grain = static_cast<uint64_t>(g.large ? int64_t{20} << 20 : snapshot::kSmallBuffer);
    int64_t smallest = INT64_MAX;
    uint64_t at = g.address, end = g.address;
    auto end_run = [&] {
      const auto run = static_cast<int64_t>(end - at);
      one.gaps_squared += static_cast<double>(run) * static_cast<double>(run);
      h.largest = std::max(h.largest, run);
      if (g.expandable) {
        const uint64_t from = (at - g.address + grain - 1) / grain * grain, to = (end - g.address) / grain * grain;
        if (to > from) h.returnable += static_cast<int64_t>(to - from);
      }
    };
    for (size_t b = g.first_block; b < g.first_block + g.blocks; ++b) {
      const Block& block = state.blocks[b];
      const auto size = static_cast<uint64_t>(std::max<int64_t>(0, block.size));
      end += size;
      if (block.state == State::inactive) {
        h.free += block.size;
        continue;
      }
      end -= size;
      end_run();
      at = end += size;
      one.taken += block.size;
      if (block.state == State::pending_free) one.waiting += block.size;
      ++h.blockers;
      h.blocked_by += block.size;
      if (block.size < smallest) smallest = block.size, h.smallest_stack = block.stack;
    }
    end_run();
    if (!g.expandable && h.blockers == 0) h.returnable = h.free;
    if (g.pool != snapshot::PoolId{}) one.kept = h.free, h.returnable = 0;
    one.free = h.free;
    one.largest = h.largest;
    one.returnable = h.returnable;
    out.all.add(one);
    out.pools[{g.stream, g.large, g.pool}].add(one);
    if (h.free > h.returnable && one.kept == 0) out.held.push_back(h);
  }
  std::stable_sort(out.held.begin(), out.held.end(),
                   [](const Held& a, const Held& b) { return a.free - a.returnable > b.free - b.returnable; });
  return out;
}

std::string pool_text(const PoolKey& pool, const Snapshot& s) {
  const int64_t stream = pool.stream < s.streams.size() ? s.streams[pool.stream] : 0;
  return fmt::format("the {} pool of stream {}{}", pool.large ? "large" : "small",
                     stream == 0 ? "0" : fmt::format("0x{:x}", static_cast<uint64_t>(stream)),
                     pool.id == snapshot::PoolId{} ? ""
                     : pool.id.a                   ? " of a CUDA graph"
                                                   : " of a MemPool");
}

namespace {

Finding fragmentation(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  const int64_t device = asked_device(s, r.device);
  AllocatorState state;
  std::string when;
  Finding f;
  if (r.at >= 0) {
    const size_t trace = asked_trace(s, r.device);
    const size_t events = trace == std::string::npos ? 0 : s.traces[trace].end - s.traces[trace].begin;
    if (static_cast<size_t>(r.at) >= events) {
      f.ok = false;
      f.sentence = fmt::format("The recording has {} events of device {}; there is no event {}.",
                               count_text(static_cast<int64_t>(events)), device, count_text(r.at));
      return f;
    }
    state = snapshot::state_after(s, trace, static_cast<size_t>(r.at) + 1);
    when = fmt::format("After event {}, ", count_text(r.at));
  } else {
    state = snapshot::state_at_end(s, device);
  }
  const SpaceOf space = space_of(state);
  const Space& all = space.all;
  if (all.segments == 0) {
    f.ok = false;
    f.sentence =
        fmt::format("{} no segments of device {}.", when.empty() ? "The snapshot has" : when + "there were", device);
    return f;
  }
  const int64_t stuck = all.free - all.returnable - all.kept;
  int64_t blocking = 0;
  for (const Held& h : space.held) blocking += h.blocked_by;
  const double score = all.free ? 1 - static_cast<double>(all.largest) / static_cast<double>(all.free) : 0;
  f.facts = {{"reserved_bytes", "reserved", Unit::bytes, all.reserved},
             {"free_bytes", "free inside segments", Unit::bytes, all.free},
             {"largest_free_bytes", "largest free block", Unit::bytes, all.largest},
             {"fragmentation", "fragmentation", Unit::share, score},
             {"stuck_bytes", "free but in segments with a tenant", Unit::bytes, stuck},
             {"returnable_bytes", "what empty_cache() gives back", Unit::bytes, all.returnable},
             {"gaps_score", "gaps as the viewer counts them", Unit::number,
              all.gaps_squared / std::max(1.0, static_cast<double>(all.reserved) * static_cast<double>(all.reserved))}};
  if (all.waiting)
    f.facts.push_back({"waiting_bytes", "freed, but waiting for another stream", Unit::bytes, all.waiting});
  if (all.kept) f.facts.push_back({"kept_bytes", "free in pools of graphs and MemPools", Unit::bytes, all.kept});
  const std::string kept =
      all.kept ? fmt::format("{} {} kept for CUDA graphs or MemPools", stuck ? ";" : ",", bytes_text(all.kept)) : "";
  if (all.free == 0)
    f.sentence = fmt::format("{}{} of the {} that are reserved are in use.", when, when.empty() ? "All" : "all",
                             bytes_text(all.reserved));
  else if (stuck == 0)
    f.sentence =
        fmt::format("{}{} of {} reserved are free, the largest piece {}; torch.cuda.empty_cache() gives {} back{}.",
                    when, bytes_text(all.free), bytes_text(all.reserved), bytes_text(all.largest),
                    all.kept ? bytes_text(all.returnable) : std::string("all of it"), kept);
  else
    f.sentence = fmt::format(
        "{}{} of {} reserved are free, the largest piece {}; {} cannot be given back because {} of live blocks lie in "
        "the same segments, most of it in one "
        "where {} holds its smallest block ({} are live there){}.",
        when, bytes_text(all.free), bytes_text(all.reserved), bytes_text(all.largest), bytes_text(stuck),
        bytes_text(blocking), s.site(space.held[0].smallest_stack), bytes_text(space.held[0].blocked_by), kept);
  Table t{"segments",
          {{"address", "SEGMENT", Unit::text},
           {"total_bytes", "SIZE", Unit::bytes},
           {"free_bytes", "FREE", Unit::bytes},
           {"largest_bytes", "LARGEST PIECE", Unit::bytes},
           {"blocks", "LIVE BLOCKS", Unit::count},
           {"held_bytes", "HELD BY", Unit::bytes},
           {"site", "SMALLEST OF THEM", Unit::text}},
          {}};
  for (const Held& h : space.held)
    if (t.rows.size() < r.top)
      t.add({fmt::format("0x{:x}", h.segment.address), h.segment.total, h.free, h.largest, h.blockers, h.blocked_by,
             s.site(h.smallest_stack)},
            Sight::at(s.site(h.smallest_stack)));
  f.tables.push_back(std::move(t));
  Table pools{"pools",
              {{"stream", "STREAM", Unit::text},
               {"pool", "POOL", Unit::text},
               {"segments", "SEGMENTS", Unit::count},
               {"reserved_bytes", "RESERVED", Unit::bytes},
               {"free_bytes", "FREE", Unit::bytes},
               {"largest_bytes", "LARGEST PIECE", Unit::bytes}},
              {}};
  for (const auto& [key, sp] : space.pools)
    pools.rows.push_back(
        {std::to_string(key.stream < s.streams.size() ? s.streams[key.stream] : 0),
         fmt::format("{}{}", key.large ? "large" : "small",
                     key.id == snapshot::PoolId{} ? "" : fmt::format(" of ({}, {})", key.id.a, key.id.b)),
         sp.segments, sp.reserved, sp.free, sp.largest});
  f.tables.push_back(std::move(pools));
  return f;
}

const bool registered_memory_space = register_snapshot_analysis(
    {"fragmentation", "free memory that cannot be used, and what lies in its way (after an event: --at N)", 1, 1,
     fragmentation});

}  // namespace
}  // namespace tenon::tracing
