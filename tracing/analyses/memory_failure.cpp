// memory oom: why an allocation failed.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/memory_space.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_model.h"

namespace tenon::tracing {
namespace {

using snapshot::Action;
using snapshot::AllocatorSettings;
using snapshot::AllocatorState;
using snapshot::KnownLimits;
using snapshot::Snapshot;

/// The last failure of a device, and what the allocator held when it came.
struct Failure {
  bool found = false;
  size_t event = 0;
  int64_t wanted = 0, driver_free = 0, limit = 0;
  PoolKey pool;
  AllocatorState state;
};
Failure failure_of(const Snapshot& s, size_t trace) {
  Failure f;
  const auto& t = s.traces[trace];
  for (size_t i = t.end; i-- > t.begin;) {
    if (s.events.action[i] != Action::oom) continue;
    f.found = true;
    f.event = i - t.begin;
    f.wanted = s.events.size[i];
    f.driver_free = static_cast<int64_t>(std::min<uint64_t>(s.events.address[i], uint64_t{1} << 60));
    f.pool = {s.events.stream[i], f.wanted > snapshot::kSmallSize, snapshot::PoolsOfEvents(s, t.device)(i)};
    f.state = snapshot::state_after(s, trace, f.event);
    for (const auto& g : f.state.segments) f.limit += g.total;
    f.limit += f.driver_free;
    return f;
  }
  return f;
}

/// Why it failed, and what to do about it.
struct Reason {
  std::string why, advice;
  bool fragmented = false;
};
Reason reason_of(const Snapshot& s, size_t trace, const Failure& failure, const SpaceOf& space, int64_t live) {
  const auto in_pool = space.pools.find(failure.pool);
  const Space mine = in_pool == space.pools.end() ? Space{} : in_pool->second;
  const KnownLimits known = snapshot::limits_of(s, trace);
  const AllocatorSettings settings = AllocatorSettings::of(s);
  const int64_t segment = settings.segment_for(failure.wanted), grain = settings.large_segment_size;
  const bool driver_could = (settings.expandable_segments ? (failure.wanted + 2 * grain - 1) / grain * grain
                                                          : segment) <= failure.driver_free;
  auto other_settings = [&]() -> std::string {
    for (const char* text : {"expandable_segments:True", "max_split_size_mb:128"}) {
      if (AllocatorSettings::parse(text) == settings) continue;
      const auto tried = snapshot::replay(s, trace, AllocatorSettings::parse(text), {known.limits, false, nullptr});
      if (tried.reached > failure.event &&
          std::find(tried.failures.begin(), tried.failures.end(), failure.event) == tried.failures.end())
        return fmt::format("It would have been avoided with {}.", text);
    }
    return "Neither expandable segments nor a limit to splitting would have helped; free what holds the segments "
           "(`memory fragmentation --at` names it).";
  };
  Reason out;
  if (driver_could) {
    out.why = fmt::format(
        "the process may not have more: the driver still had {}, but {} were reserved, and "
        "torch.cuda.set_per_process_memory_fraction() allows less than {}",
        bytes_text(failure.driver_free), bytes_text(space.all.reserved), bytes_text(space.all.reserved + segment));
    out.advice = live + failure.wanted <= known.limits.allowed
                     ? other_settings()
                     : "Allow a larger fraction, or free what is listed below.";
  } else if (mine.largest >= failure.wanted) {
    out.why = fmt::format("the allocator had a free piece of {} but max_split_size_mb forbids to split it",
                          bytes_text(mine.largest));
    out.advice = "Try a larger max_split_size_mb.";
  } else if (mine.free >= failure.wanted) {
    out.fragmented = true;
    out.why = fmt::format("the allocator had {} of its own free in {}, but in pieces: the largest is {}",
                          bytes_text(mine.free), pool_text(failure.pool, s), bytes_text(mine.largest));
    out.advice = other_settings();
  } else if (space.all.free >= failure.wanted) {
    out.why = fmt::format(
        "{} of what was reserved were free, but only {} of them in {}; the rest belongs to other streams and pools",
        bytes_text(space.all.free), bytes_text(mine.free), pool_text(failure.pool, s));
    out.advice = other_settings();
  } else if (live + failure.wanted <= failure.limit) {
    out.why = fmt::format(
        "{} of the {} that the device has were not in use, but apart from each other ({} free inside of segments, {} "
        "at the driver)",
        bytes_text(failure.limit - space.all.taken), bytes_text(failure.limit), bytes_text(space.all.free),
        bytes_text(failure.driver_free));
    out.advice = other_settings();
  } else {
    out.why = fmt::format("{} were alive, and {} more do not fit into {}", bytes_text(live), bytes_text(failure.wanted),
                          bytes_text(failure.limit));
    out.advice =
        "No allocator setting helps: use a smaller batch, activation checkpointing, a lower precision, or free what is "
        "listed below.";
  }
  return out;
}

Finding oom(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  const size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return nothing("The snapshot holds no recorded events.");
  const Failure failure = failure_of(s, trace);
  if (!failure.found)
    return nothing(fmt::format("No allocation of device {} failed while it was recorded.", s.traces[trace].device));
  const SpaceOf space = space_of(failure.state);
  snapshot::Timeline timeline(s, trace);
  const auto alive = owners(s, timeline, timeline.live(failure.event));
  int64_t live = 0;
  for (const Owner& o : alive) live += o.bytes;
  const Reason reason = reason_of(s, trace, failure, space, live);
  const auto in_pool = space.pools.find(failure.pool);
  Finding f;
  f.sentence = fmt::format("An allocation of {} failed at event {} because {}. Most is held by {} ({}). {}",
                           bytes_text(failure.wanted), count_text(static_cast<int64_t>(failure.event)), reason.why,
                           alive.empty() ? "nobody" : alive[0].site,
                           alive.empty() ? "0 bytes" : bytes_text(alive[0].bytes), reason.advice);
  f.facts = {{"event", "event", Unit::count, static_cast<int64_t>(failure.event)},
             {"wanted_bytes", "asked for", Unit::bytes, failure.wanted},
             {"driver_free_bytes", "free at the driver", Unit::bytes, failure.driver_free},
             {"reserved_bytes", "reserved", Unit::bytes, space.all.reserved},
             {"live_bytes", "alive", Unit::bytes, live},
             {"free_bytes", "free inside of segments", Unit::bytes, space.all.free},
             {"largest_free_bytes", "largest free piece", Unit::bytes, space.all.largest},
             {"pool_free_bytes", "free where it could be used", Unit::bytes,
              in_pool == space.pools.end() ? 0 : in_pool->second.free},
             {"pool_largest_bytes", "largest piece there", Unit::bytes,
              in_pool == space.pools.end() ? 0 : in_pool->second.largest},
             {"limit_bytes", "the device can give", Unit::bytes, failure.limit},
             {"fragmented", "fragmented", Unit::text, std::string(reason.fragmented ? "yes" : "no")},
             {"asked_by", "asked for by", Unit::text, s.site(s.events.stack[s.traces[trace].begin + failure.event])}};
  if (space.all.waiting)
    f.facts.push_back({"waiting_bytes", "freed, but waiting for another stream", Unit::bytes, space.all.waiting});
  Table t{"owners",
          {{"site", "ALLOCATED BY", Unit::text},
           {"bytes", "BYTES", Unit::bytes},
           {"share", "SHARE", Unit::share},
           {"count", "BLOCKS", Unit::count}},
          {}};
  for (const Owner& o : alive)
    if (t.rows.size() < r.top) t.add({o.site, o.bytes, share(o.bytes, live), o.count}, Sight::at(o.site));
  f.tables.push_back(std::move(t));
  return f;
}

const bool registered_memory_failure = register_snapshot_analysis({"oom", "why an allocation failed", 1, 1, oom});

}  // namespace
}  // namespace tenon::tracing
