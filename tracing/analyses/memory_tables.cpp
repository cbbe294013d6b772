// memory info, peak, live, leaks, diff: who holds memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tracing/analyses/snapshot_analysis.h"

namespace tenon::tracing {
namespace {

using snapshot::Action;
using snapshot::Snapshot;
using snapshot::State;
using snapshot::Timeline;

const char* kNoEvents =
    "The snapshot holds no recorded events: call torch.cuda.memory._record_memory_history() before what is to be seen.";

Table owner_table(const std::string& name, const Snapshot& s, const std::vector<Owner>& all, size_t top) {
  int64_t total = 0;
  for (const Owner& o : all) total += o.bytes;
  Table t{name,
          {{"site", "ALLOCATED BY", Unit::text},
           {"bytes", "BYTES", Unit::bytes},
           {"share", "SHARE", Unit::share},
           {"count", "BLOCKS", Unit::count},
           {"stack", "CALLED FROM", Unit::text}},
          {}};
  for (const Owner& o : all) {
    if (t.rows.size() == top) break;
    std::string stack;
    int shown = 0;
    for (const std::string& line : s.callers(o.stack)) {
      if (shown == 3) break;
      stack += (stack.empty() ? "" : " < ") + line;
      ++shown;
    }
    t.add({o.site, o.bytes, share(o.bytes, total), o.count, stack}, Sight::at(o.site));
  }
  return t;
}

Finding memory_info(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  struct Device {
    int64_t segments = 0, reserved = 0, active = 0, allocated_blocks = 0, pending = 0, events = 0, peak = 0;
  };
  std::map<int64_t, Device> devices;
  int64_t reserved = 0, active = 0, segments = 0, events = 0;
  for (const auto& g : s.segments) {
    Device& d = devices[g.device];
    const bool counts = g.device != snapshot::kHost;  // pinned memory of the host is none of a device
    ++d.segments;
    d.reserved += g.total;
    if (counts) reserved += g.total, ++segments;
    for (size_t b = g.first_block; b < g.first_block + g.blocks; ++b) {
      if (s.blocks[b].state == State::active)
        d.active += s.blocks[b].size, ++d.allocated_blocks, active += counts ? s.blocks[b].size : 0;
      if (s.blocks[b].state == State::pending_free) d.pending += s.blocks[b].size;
    }
  }
  uint64_t unknown = 0;
  std::map<std::string, int64_t> actions;
  for (size_t i = 0; i < s.traces.size(); ++i) {
    Device& d = devices[s.traces[i].device];
    d.events += static_cast<int64_t>(s.traces[i].end - s.traces[i].begin);
    if (s.traces[i].end == s.traces[i].begin) continue;
    Timeline t(s, i);
    d.peak = std::max(d.peak, t.peak_bytes());
    if (s.traces[i].device == snapshot::kHost) continue;
    unknown += t.unknown_frees();
    events += static_cast<int64_t>(s.traces[i].end - s.traces[i].begin);
    for (size_t k = s.traces[i].begin; k < s.traces[i].end; ++k) ++actions[name(s.events.action[k])];
  }
  Finding f;
  f.sentence = fmt::format(
      "{} reserved in {} segments, {} of it allocated; {} recorded events{}{}.", bytes_text(reserved), segments,
      bytes_text(active), count_text(events),
      unknown ? fmt::format(", which do not reach back to the beginning ({} frees of blocks from before)", unknown)
              : "",
      s.truncated ? "; the file ends before its time, what it holds is here" : "");
  f.facts = {{"segments", "segments", Unit::count, segments},
             {"reserved_bytes", "reserved", Unit::bytes, reserved},
             {"active_bytes", "allocated", Unit::bytes, active},
             {"blocks", "blocks", Unit::count, static_cast<int64_t>(s.blocks.size())},
             {"events", "events", Unit::count, events},
             {"stacks", "stacks", Unit::count, static_cast<int64_t>(s.stacks())},
             {"out_of_memory", "out of memory", Unit::count, actions["oom"]},
             {"allocs", "allocations", Unit::count, actions["alloc"]},
             {"frees", "frees", Unit::count, actions["free_completed"] + actions["free"]},
             {"annotations", "annotations", Unit::count, static_cast<int64_t>(s.annotations.size())},
             {"protocol", "pickle protocol", Unit::count, static_cast<int64_t>(s.protocol)},
             {"truncated", "truncated", Unit::text, std::string(s.truncated ? "yes" : "no")},
             {"from_cache", "from the saved store", Unit::text, std::string(s.from_cache() ? "yes" : "no")}};
  Table table{"devices",
              {{"device", "DEVICE", Unit::text},
               {"segments", "SEGMENTS", Unit::count},
               {"reserved_bytes", "RESERVED", Unit::bytes},
               {"active_bytes", "ALLOCATED", Unit::bytes},
               {"pending_bytes", "PENDING", Unit::bytes},
               {"events", "EVENTS", Unit::count},
               {"peak_bytes", "PEAK RECORDED", Unit::bytes}},
              {}};
  for (const auto& [id, d] : devices)
    if (d.segments || d.events)
      table.rows.push_back({id == snapshot::kHost ? std::string("host (pinned)") : std::to_string(id), d.segments,
                            d.reserved, d.active, d.pending, d.events, d.peak});
  f.tables.push_back(std::move(table));
  Table what{"actions", {{"action", "EVENT", Unit::text}, {"count", "COUNT", Unit::count}}, {}};
  for (const auto& [action, count] : actions)
    if (count) what.rows.push_back({action, count});
  f.tables.push_back(std::move(what));
  Table settings{"settings", {{"setting", "ALLOCATOR SETTING", Unit::text}, {"value", "VALUE", Unit::text}}, {}};
  for (const auto& [k, v] : s.settings) settings.rows.push_back({k, v});
  f.tables.push_back(std::move(settings));
  return f;
}

Finding blocks_at(const SnapshotRequest& r, bool at_peak) {
  const Snapshot& s = r.first();
  size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) {
    // Without events, what is alive is what the segments say.
    int64_t device = asked_device(s, r.device);
    auto all = block_owners(s, device);
    if (all.empty() || at_peak) return nothing(kNoEvents);
    Finding f;
    int64_t total = 0;
    for (const Owner& o : all) total += o.bytes;
    f.sentence = fmt::format("{} are allocated on device {} (the snapshot holds no history); most, {}, by {}.",
                             bytes_text(total), device, bytes_text(all[0].bytes), all[0].site);
    f.facts = {{"bytes", "alive", Unit::bytes, total}};
    f.tables.push_back(owner_table("owners", s, all, r.top));
    return f;
  }
  Timeline t(s, trace);
  size_t at = at_peak ? t.peak() : r.at < 0 ? t.events() - 1 : static_cast<size_t>(r.at);
  if (at >= t.events())
    return nothing(fmt::format("The trace of device {} has {} events; there is no event {}.", s.traces[trace].device,
                               count_text(static_cast<int64_t>(t.events())), at));
  auto live = t.live(at);
  auto all = owners(s, t, live);
  int64_t total = 0, before = 0;
  for (uint32_t id : live) {
    total += t.element(id).bytes;
    if (t.element(id).before) before += t.element(id).bytes;
  }
  Finding f;
  int64_t time = s.events.time_us[s.traces[trace].begin + at], start = s.events.time_us[s.traces[trace].begin];
  f.sentence =
      fmt::format("{} {} of {}{}, {} are alive in {} block{}", at_peak ? "At its peak, after event" : "After event",
                  count_text(static_cast<int64_t>(at)), count_text(static_cast<int64_t>(t.events())),
                  time >= 0 && start >= 0
                      ? fmt::format(" ({} after the first)", nanoseconds_text(static_cast<double>(time - start) * 1000))
                      : "",
                  bytes_text(total), count_text(static_cast<int64_t>(live.size())), live.size() == 1 ? "" : "s");
  f.sentence += all.empty() ? "."
                            : fmt::format("; most of it, {} ({}), was allocated by {}.", bytes_text(all[0].bytes),
                                          share_text(share(all[0].bytes, total)), all[0].site);
  f.facts = {{"event", "event", Unit::count, static_cast<int64_t>(at)},
             {"bytes", at_peak ? "peak" : "alive", Unit::bytes, total},
             {"blocks", "blocks", Unit::count, static_cast<int64_t>(live.size())},
             {"before_bytes", "from before the recording", Unit::bytes, before},
             {"device", "device", Unit::count, s.traces[trace].device}};
  f.tables.push_back(owner_table("owners", s, all, r.top));
  return f;
}
Finding peak(const SnapshotRequest& r) { return blocks_at(r, true); }
Finding live(const SnapshotRequest& r) { return blocks_at(r, false); }

Finding grown(const SnapshotRequest& r, bool only_growth) {
  const Snapshot &a = *r.snapshots[0], &b = *r.snapshots[1];
  int64_t device = asked_device(b, r.device);
  std::map<std::string, std::pair<Owner, Owner>> sites;
  int64_t total_a = 0, total_b = 0;
  auto blocks = [&](const Snapshot& s) {
    auto all = block_owners(s, device);
    if (!all.empty()) return all;
    size_t trace = asked_trace(s, device);
    if (trace == std::string::npos) return all;
    Timeline t(s, trace);
    return owners(s, t, t.live(t.events() - 1));
  };
  for (const Owner& o : blocks(a)) sites[o.site].first = o, total_a += o.bytes;
  for (const Owner& o : blocks(b)) sites[o.site].second = o, total_b += o.bytes;
  std::vector<std::pair<std::string, std::pair<Owner, Owner>>> list;
  for (auto& [site, pair] : sites) {
    int64_t d = pair.second.bytes - pair.first.bytes;
    if (only_growth ? d > 0 && pair.second.count > pair.first.count : d != 0) list.emplace_back(site, pair);
  }
  auto delta = [](const auto& x) { return x.second.second.bytes - x.second.first.bytes; };
  std::stable_sort(list.begin(), list.end(),
                   [&](const auto& x, const auto& y) { return std::abs(delta(x)) > std::abs(delta(y)); });
  Finding f;
  f.facts = {{"a_bytes", "alive in A", Unit::bytes, total_a},
             {"b_bytes", "alive in B", Unit::bytes, total_b},
             {"change_bytes", "difference", Unit::bytes, total_b - total_a},
             {"site_count", "places that differ", Unit::count, static_cast<int64_t>(list.size())}};
  if (list.empty()) {
    f.sentence = only_growth ? "Nothing grew from A to B." : "A and B hold the same memory by the same places.";
  } else {
    f.sentence =
        fmt::format("B holds {} {} than A ({} against {}); {} is {} of it: {} blocks instead of {}.",
                    bytes_text(std::abs(total_b - total_a)), total_b >= total_a ? "more" : "less", bytes_text(total_b),
                    bytes_text(total_a), list[0].first, bytes_text(std::abs(delta(list[0]))),
                    count_text(list[0].second.second.count), count_text(list[0].second.first.count));
  }
  Table t{only_growth ? "leaks" : "sites",
          {{"site", "ALLOCATED BY", Unit::text},
           {"change_bytes", "DIFFERENCE", Unit::bytes},
           {"a_bytes", "IN A", Unit::bytes},
           {"b_bytes", "IN B", Unit::bytes},
           {"a_count", "BLOCKS A", Unit::count},
           {"b_count", "BLOCKS B", Unit::count}},
          {}};
  for (const auto& [site, pair] : list)
    if (t.rows.size() < r.top)
      t.add({site, pair.second.bytes - pair.first.bytes, pair.first.bytes, pair.second.bytes, pair.first.count,
             pair.second.count},
            pair.first.count ? Sight::at(site) : Sight(), pair.second.count ? Sight::at(site) : Sight());
  f.tables.push_back(std::move(t));
  return f;
}
Finding memory_diff(const SnapshotRequest& r) { return grown(r, false); }

Finding leaks(const SnapshotRequest& r) {
  if (r.snapshots.size() == 2) return grown(r, true);
  const Snapshot& s = r.first();
  size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return nothing(kNoEvents);
  size_t looked = 0;
  auto all = find_leaks(s, trace, &looked);
  Finding f;
  int64_t kept = 0;
  for (const Leak& l : all) kept += l.bytes;
  f.facts = {{"leak_count", "places", Unit::count, static_cast<int64_t>(all.size())},
             {"kept_bytes", "kept", Unit::bytes, kept},
             {"windows", "stretches looked at", Unit::count, static_cast<int64_t>(looked)}};
  f.sentence = all.empty() ? fmt::format(
                                 "No place keeps more and more memory: in {} stretches of the recording, what grows "
                                 "stops or is freed again.",
                                 looked)
                           : fmt::format(
                                 "{} leaks: it keeps {} in {} blocks, {} more in each of {} stretches of the "
                                 "recording; look for a list, a global or a graph that holds what it makes (a loss "
                                 "that is summed without .item() or .detach(), a hook, a closure).",
                                 all[0].site, bytes_text(all[0].bytes), count_text(all[0].count),
                                 bytes_text(all[0].bytes_per_window), looked);
  Table t{"leaks",
          {{"site", "ALLOCATED BY", Unit::text},
           {"bytes", "KEPT", Unit::bytes},
           {"count", "BLOCKS", Unit::count},
           {"slope_bytes", "A STRETCH", Unit::bytes},
           {"windows", "STRETCHES WITH SURVIVORS", Unit::count},
           {"stack", "CALLED FROM", Unit::text}},
          {}};
  for (const Leak& l : all) {
    if (t.rows.size() == r.top) break;
    std::string stack;
    for (const std::string& line : s.callers(l.stack))
      if (stack.size() < 200) stack += (stack.empty() ? "" : " < ") + line;
    t.add({l.site, l.bytes, l.count, l.bytes_per_window, static_cast<int64_t>(l.windows), stack}, Sight::at(l.site));
  }
  f.tables.push_back(std::move(t));
  return f;
}

const bool registered_memory_tables =
    register_snapshot_analysis({"info", "what is in a memory snapshot", 1, 1, memory_info}) &&
    register_snapshot_analysis({"peak", "who was alive when most memory was, by stack", 1, 1, peak}) &&
    register_snapshot_analysis({"live", "who is alive after an event (--at N), by stack", 1, 1, live}) &&
    register_snapshot_analysis(
        {"leaks", "places that keep more and more: step by step, or from one snapshot to the next", 1, 2, leaks}) &&
    register_snapshot_analysis({"diff", "what B holds more or less than A, by stack", 2, 2, memory_diff});

}  // namespace
}  // namespace tenon::tracing
