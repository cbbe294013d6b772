// memory fragmentation, oom, what-if: how the allocator uses what it reserved.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_model.h"

namespace tenon::tracing {
namespace {

using snapshot::Action;
using snapshot::AllocatorSettings;
using snapshot::Block;
using snapshot::Segment;
using snapshot::Snapshot;
using snapshot::State;

std::string bytes(int64_t v) { return bytes_text(static_cast<double>(v)); }
double share(int64_t part, int64_t whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

Finding nothing(std::string sentence) {
  Finding f;
  f.ok = false;
  f.sentence = std::move(sentence);
  return f;
}

/// How the free bytes of a device's segments lie.
struct Space {
  int64_t reserved = 0, taken = 0, free = 0, largest = 0, segments = 0;
  double gaps_squared = 0;
};
struct Held {
  const Segment* segment;
  int64_t free = 0, largest = 0, blockers = 0, blocked_by = 0;
  uint32_t smallest_stack = snapshot::kNone;
};

Space space_of(const Snapshot& s, int64_t device, std::vector<Held>* held = nullptr, std::map<std::pair<uint32_t, bool>, Space>* by_stream = nullptr) {
  Space all;
  for (const Segment& g : s.segments) {
    if (g.device != device) continue;
    Held h{&g};
    int64_t run = 0, smallest = INT64_MAX;
    Space one;
    one.reserved = g.total;
    one.segments = 1;
    auto end_run = [&] {
      one.gaps_squared += static_cast<double>(run) * static_cast<double>(run);
      h.largest = std::max(h.largest, run);
      run = 0;
    };
    for (size_t b = g.first_block; b < g.first_block + g.blocks; ++b) {
      const Block& block = s.blocks[b];
      if (block.state == State::inactive) {
        run += block.size;
        h.free += block.size;
        continue;
      }
      end_run();
      one.taken += block.size;
      ++h.blockers;
      h.blocked_by += block.size;
      if (block.size < smallest) smallest = block.size, h.smallest_stack = block.stack;
    }
    end_run();
    one.free = h.free;
    one.largest = h.largest;
    auto add = [](Space& to, const Space& from) {
      to.reserved += from.reserved, to.taken += from.taken, to.free += from.free, to.segments += from.segments, to.gaps_squared += from.gaps_squared;
      to.largest = std::max(to.largest, from.largest);
    };
    add(all, one);
    if (by_stream) add((*by_stream)[{g.stream, g.large}], one);
    if (held && h.free > 0 && h.blockers > 0) held->push_back(h);
  }
  return all;
}

Finding fragmentation(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  int64_t device = asked_device(s, r.device);
  std::vector<Held> held;
  std::map<std::pair<uint32_t, bool>, Space> by_stream;
  Space all = space_of(s, device, &held, &by_stream);
  if (all.segments == 0) return nothing(fmt::format("The snapshot has no segments of device {}.", device));
  std::stable_sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.free > b.free; });
  Finding f;
  int64_t stuck = 0, blocking = 0;
  for (const Held& h : held) stuck += h.free, blocking += h.blocked_by;
  double score = all.reserved ? 1 - (all.free ? static_cast<double>(all.largest) / static_cast<double>(all.free) : 1) : 0;
  f.facts = {{"reserved_bytes", "reserved", Unit::bytes, all.reserved}, {"free_bytes", "free inside segments", Unit::bytes, all.free}, {"largest_free_bytes", "largest free block", Unit::bytes, all.largest},
             {"fragmentation", "fragmentation", Unit::share, score}, {"stuck_bytes", "free but in segments with a tenant", Unit::bytes, stuck},
             {"gaps_score", "gaps as the viewer counts them", Unit::number, all.gaps_squared / std::max(1.0, static_cast<double>(all.reserved) * static_cast<double>(all.reserved))}};
  if (all.free == 0) f.sentence = fmt::format("All of the {} that are reserved are in use.", bytes(all.reserved));
  else
    f.sentence = fmt::format("{} of {} reserved are free, the largest piece {}; {} cannot be given back because {} of live blocks lie in the same segments{}.", bytes(all.free), bytes(all.reserved), bytes(all.largest), bytes(stuck), bytes(blocking),
                             held.empty() ? "" : fmt::format(", most of it in one that {} holds with {}", s.site(held[0].smallest_stack), bytes(held[0].blocked_by)));
  Table t{"segments", {{"address", "SEGMENT", Unit::text}, {"total_bytes", "SIZE", Unit::bytes}, {"free_bytes", "FREE", Unit::bytes}, {"largest_bytes", "LARGEST PIECE", Unit::bytes}, {"blocks", "LIVE BLOCKS", Unit::count},
                       {"held_bytes", "HELD BY", Unit::bytes}, {"site", "SMALLEST OF THEM", Unit::text}}, {}};
  for (const Held& h : held)
    if (t.rows.size() < r.top) t.rows.push_back({fmt::format("0x{:x}", h.segment->address), h.segment->total, h.free, h.largest, h.blockers, h.blocked_by, s.site(h.smallest_stack)});
  f.tables.push_back(std::move(t));
  Table streams{"pools", {{"stream", "STREAM", Unit::text}, {"pool", "POOL", Unit::text}, {"segments", "SEGMENTS", Unit::count}, {"reserved_bytes", "RESERVED", Unit::bytes}, {"free_bytes", "FREE", Unit::bytes}, {"largest_bytes", "LARGEST PIECE", Unit::bytes}}, {}};
  for (const auto& [key, sp] : by_stream)
    streams.rows.push_back({std::to_string(key.first < s.streams.size() ? s.streams[key.first] : 0), std::string(key.second ? "large" : "small"), sp.segments, sp.reserved, sp.free, sp.largest});
  f.tables.push_back(std::move(streams));
  return f;
}

/// What the failed allocation met: from the last out-of-memory event of a device.
struct Failure {
  bool found = false;
  size_t event = 0;
  int64_t wanted = 0, driver_free = 0, limit = 0;
};
Failure failure_of(const Snapshot& s, size_t trace) {
  Failure f;
  const auto& t = s.traces[trace];
  int64_t reserved_after = 0;  // changes behind the failure, to undo
  for (size_t i = t.end; i-- > t.begin;) {
    Action a = s.events.action[i];
    if (a == Action::oom) {
      f.found = true;
      f.event = i - t.begin;
      f.wanted = s.events.size[i];
      f.driver_free = static_cast<int64_t>(s.events.address[i]);
      break;
    }
    if (a == Action::segment_alloc || a == Action::segment_map) reserved_after += s.events.size[i];
    if (a == Action::segment_free || a == Action::segment_unmap) reserved_after -= s.events.size[i];
  }
  int64_t reserved = 0;
  for (const Segment& g : s.segments)
    if (g.device == t.device) reserved += g.total;
  f.limit = reserved - reserved_after + f.driver_free;
  return f;
}

Finding what_if(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return nothing("The snapshot holds no recorded events to replay: call torch.cuda.memory._record_memory_history() first.");
  Failure failure = failure_of(s, trace);
  int64_t limit = r.limit ? r.limit : failure.found ? failure.limit : 0;
  const AllocatorSettings own = AllocatorSettings::of(s);
  std::vector<std::pair<std::string, AllocatorSettings>> tries{{"as recorded: " + own.text(), own}};
  std::vector<std::string> wanted = r.settings;
  if (wanted.empty())
    wanted = {"", "expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:512", "roundup_power2_divisions:8", "ideal"};  // a threshold does nothing by itself
  for (const std::string& text : wanted) {
    AllocatorSettings a = AllocatorSettings::parse(text);
    if (a.text() != own.text()) tries.emplace_back(a.text(), a);
  }
  Finding f;
  Table t{"settings", {{"settings", "SETTINGS", Unit::text}, {"peak_reserved_bytes", "PEAK RESERVED", Unit::bytes}, {"against_recorded", "AGAINST RECORDED", Unit::share}, {"wasted_bytes", "ABOVE WHAT IS ALIVE", Unit::bytes},
                       {"segments", "CALLS TO THE DRIVER", Unit::count}, {"verdict", "OUT OF MEMORY", Unit::text}}, {}};
  int64_t first = 0, best = INT64_MAX;
  std::string best_name, saved_by;
  bool failed_own = false;
  for (size_t i = 0; i < tries.size(); ++i) {
    auto replay = snapshot::replay(s, trace, tries[i].second, limit);
    // The allocation that failed was never recorded as one: it comes at its place, after what had happened until then.
    bool failed = replay.failed;
    if (i == 0) first = replay.peak_reserved, failed_own = failed;
    if (!tries[i].second.ideal && !failed && replay.peak_reserved < best) best = replay.peak_reserved, best_name = tries[i].first;
    if (i > 0 && !tries[i].second.ideal && !failed && saved_by.empty()) saved_by = tries[i].first;
    t.rows.push_back({tries[i].first, replay.peak_reserved, share(replay.peak_reserved, std::max<int64_t>(1, first)), replay.peak_reserved - replay.peak_allocated, static_cast<int64_t>(replay.segment_events.size()),
                      std::string(limit == 0 ? "no limit known" : failed ? fmt::format("yes, {} at event {}", bytes(replay.failed_size), replay.failed_at) : "no")});
  }
  f.facts = {{"limit_bytes", "the device can give", Unit::bytes, limit}, {"recorded_peak_bytes", "peak as recorded", Unit::bytes, first}, {"events", "events replayed", Unit::count, static_cast<int64_t>(s.traces[trace].end - s.traces[trace].begin)}};
  if (failed_own && !saved_by.empty()) f.sentence = fmt::format("The failure would have been avoided with {}.", saved_by);
  else if (failed_own) f.sentence = "No setting of the allocator would have avoided the failure: what is alive does not fit.";
  else if (best < first) f.sentence = fmt::format("{} would have reserved {} at its peak instead of {} ({} less).", best_name, bytes(best), bytes(first), share_text(1 - share(best, first)));
  else f.sentence = fmt::format("No other setting reserves less than the {} that were reserved at the peak.", bytes(first));
  f.tables.push_back(std::move(t));
  return f;
}

Finding oom(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return nothing("The snapshot holds no recorded events.");
  Failure failure = failure_of(s, trace);
  if (!failure.found) return nothing(fmt::format("No allocation of device {} failed while it was recorded.", s.traces[trace].device));
  Space space = space_of(s, s.traces[trace].device);
  snapshot::Timeline timeline(s, trace);
  auto alive = owners(s, timeline, timeline.live(failure.event));
  int64_t live = 0;
  for (const Owner& o : alive) live += o.bytes;
  const bool fits_in_sum = space.free >= failure.wanted, fits_at_all = live + failure.wanted <= failure.limit;
  Finding f;
  std::string why;
  std::string advice;
  if (fits_in_sum && space.largest < failure.wanted) {
    why = fmt::format("the allocator had {} of its own free, but in pieces: the largest is {}", bytes(space.free), bytes(space.largest));
    SnapshotRequest again = r;
    again.settings = {"expandable_segments:True", "max_split_size_mb:128"};
    again.limit = failure.limit;
    Finding tried = what_if(again);
    advice = tried.sentence.starts_with("The failure would") ? tried.sentence : "Other settings would not have helped here; free what holds the segments (`memory fragmentation` names it).";
  } else if (fits_at_all) {
    why = fmt::format("{} of the {} that the device has were reserved but not in use ({} free inside of segments, {} free at the driver)", bytes(space.reserved - live), bytes(failure.limit), bytes(space.free), bytes(failure.driver_free));
    advice = "See `memory what-if` for settings that keep less aside.";
  } else {
    why = fmt::format("{} were alive, and {} more do not fit into {}", bytes(live), bytes(failure.wanted), bytes(failure.limit));
    advice = "No allocator setting helps: use a smaller batch, activation checkpointing, a lower precision, or free what is listed below.";
  }
  f.sentence = fmt::format("An allocation of {} failed at event {} because {}. Most is held by {} ({}). {}", bytes(failure.wanted), count_text(static_cast<int64_t>(failure.event)), why, alive.empty() ? "nobody" : alive[0].site, alive.empty() ? "0 bytes" : bytes(alive[0].bytes), advice);
  f.facts = {{"wanted_bytes", "asked for", Unit::bytes, failure.wanted}, {"driver_free_bytes", "free at the driver", Unit::bytes, failure.driver_free}, {"reserved_bytes", "reserved", Unit::bytes, space.reserved},
             {"live_bytes", "alive", Unit::bytes, live}, {"free_bytes", "free inside of segments", Unit::bytes, space.free}, {"largest_free_bytes", "largest free piece", Unit::bytes, space.largest},
             {"limit_bytes", "the device can give", Unit::bytes, failure.limit}, {"fragmented", "fragmented", Unit::text, std::string(fits_in_sum && space.largest < failure.wanted ? "yes" : "no")},
             {"asked_by", "asked for by", Unit::text, s.site(s.events.stack[s.traces[trace].begin + failure.event])}};
  Table t{"owners", {{"site", "ALLOCATED BY", Unit::text}, {"bytes", "BYTES", Unit::bytes}, {"share", "SHARE", Unit::share}, {"count", "BLOCKS", Unit::count}}, {}};
  for (const Owner& o : alive)
    if (t.rows.size() < r.top) t.rows.push_back({o.site, o.bytes, share(o.bytes, live), o.count});
  f.tables.push_back(std::move(t));
  return f;
}

const bool registered = register_snapshot_analysis({"fragmentation", "free memory that cannot be used, and what lies in its way", 1, 1, fragmentation}) && register_snapshot_analysis({"oom", "why an allocation failed", 1, 1, oom}) &&
                        register_snapshot_analysis({"what-if", "the recorded allocations under other allocator settings", 1, 1, what_if});

}  // namespace
}  // namespace tenon::tracing
