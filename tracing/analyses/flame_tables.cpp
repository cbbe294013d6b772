// trace stacks, memory stacks: the flame graph as rows, by what each path holds itself.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/flame.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"

namespace tenon::tracing {
namespace {

/// Nodes by what they hold themselves, the largest first; no more than `top`.
std::vector<uint32_t> heaviest(const Flame& flame, size_t top) {
  std::vector<uint32_t> nodes;
  for (uint32_t i = 1; i < flame.nodes().size(); ++i)
    if (flame.nodes()[i].self > 0) nodes.push_back(i);
  const size_t kept = std::min(top, nodes.size());
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(kept), nodes.end(),
                    [&](uint32_t a, uint32_t b) {
                      const auto &x = flame.nodes()[a], &y = flame.nodes()[b];
                      return x.self != y.self ? x.self > y.self : a < b;
                    });
  nodes.resize(kept);
  return nodes;
}

Table stack_table(const Flame& flame, size_t top, const char* below, const char* count) {
  Table t{"stacks",
          {{"name", "NAME", Unit::text},
           {"self", "IN ITSELF", flame.unit()},
           {"total", "WITH WHAT IT CALLS", flame.unit()},
           {"share", "SHARE", Unit::share},
           {"count", count, Unit::count},
           {"path", below, Unit::text, true}},
          {}};
  for (const uint32_t node : heaviest(flame, top)) {
    const Flame::Node& n = flame.nodes()[node];
    t.add({flame.text(node), n.self, n.total, share(n.self, flame.nodes()[0].total), n.count, flame.path(n.parent)},
          n.longest != traces::kNone ? Sight::of(n.longest) : Sight::at(flame.text(node)));
  }
  return t;
}

Finding trace_stacks(const TraceRequest& r) {
  const traces::Trace& trace = r.first();
  FlamePart part;
  if (r.step >= 0) {
    bool found = false;
    for (const TraceStep& s : trace_steps(trace))
      if (s.number == r.step) part.from = s.start, part.to = s.end, found = true;
    if (!found) return nothing(fmt::format("There is no ProfilerStep#{} in the trace.", r.step));
  }
  const Flame flame = flame_of(trace, part);
  if (flame.empty()) return nothing("The trace holds no event that takes time.");
  Finding f;
  const uint32_t most = heaviest(flame, 1).empty() ? 0 : heaviest(flame, 1)[0];
  f.sentence = fmt::format("Of {} on all threads and streams most, {} ({}), passes in {} itself{}.",
                           nanoseconds_text(static_cast<double>(flame.nodes()[0].total)),
                           nanoseconds_text(static_cast<double>(flame.nodes()[most].self)),
                           share_text(share(flame.nodes()[most].self, flame.nodes()[0].total)), flame.text(most),
                           flame.nodes()[most].parent ? ", below " + flame.path(flame.nodes()[most].parent) : "");
  f.facts = {{"total_ns", "time of all rows", Unit::nanoseconds, flame.nodes()[0].total},
             {"paths", "paths", Unit::count, static_cast<int64_t>(flame.nodes().size() - 1)},
             {"deepest", "deepest", Unit::count, static_cast<int64_t>(flame.deepest())}};
  f.tables.push_back(stack_table(flame, r.top, "BELOW", "EVENTS"));
  return f;
}

Finding memory_stacks(const SnapshotRequest& r) {
  const snapshot::Snapshot& s = r.first();
  const size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return nothing("The snapshot holds no recorded events.");
  const snapshot::Timeline timeline(s, trace);
  const size_t at = r.at < 0 ? timeline.peak() : static_cast<size_t>(r.at);
  if (at >= timeline.events())
    return nothing(fmt::format("The trace of device {} has {} events; there is no event {}.", s.traces[trace].device,
                               count_text(static_cast<int64_t>(timeline.events())), at));
  const Flame flame = flame_of(s, timeline, at);
  if (flame.empty()) return nothing(fmt::format("Nothing is alive after event {}.", at));
  Finding f;
  const uint32_t most = heaviest(flame, 1).empty() ? 0 : heaviest(flame, 1)[0];
  f.sentence = fmt::format("After event {}{}, {} are alive; most of one stack, {} ({}), is held by {}{}.",
                           count_text(static_cast<int64_t>(at)), r.at < 0 ? ", the peak" : "",
                           bytes_text(flame.nodes()[0].total), bytes_text(flame.nodes()[most].self),
                           share_text(share(flame.nodes()[most].self, flame.nodes()[0].total)), flame.text(most),
                           flame.nodes()[most].parent ? ", called from " + flame.text(flame.nodes()[most].parent) : "");
  f.facts = {{"event", "event", Unit::count, static_cast<int64_t>(at)},
             {"bytes", "alive", Unit::bytes, flame.nodes()[0].total},
             {"paths", "paths", Unit::count, static_cast<int64_t>(flame.nodes().size() - 1)}};
  f.tables.push_back(stack_table(flame, r.top, "CALLED FROM", "BLOCKS"));
  return f;
}

const bool registered_stacks =
    register_trace_analysis(
        {"stacks", "who called whom: time by call path, as of a flame graph", 1, 1, trace_stacks}) &&
    register_snapshot_analysis(
        {"stacks", "who called whom: what is alive at the peak, or after --at N, by stack", 1, 1, memory_stacks});

}  // namespace
}  // namespace tenon::tracing
