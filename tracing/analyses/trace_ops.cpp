// trace ops: the ops of the CPU and the annotations around them, as torch's key_averages() counts them.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tracing/analyses/event_names.h"
#include "tracing/analyses/trace_analysis.h"

// Note [As key_averages() counts]
// The columns mean what they mean in torch's own table, so that the two can be held against each other
// (tests/tracing/torch_traces_test.cpp does):
// - calls: an op that does nothing but call an op of its own name (aten::sum another overload of itself) is one call
//   with it;
// - total: the lengths of these calls;
// - self: what of the total lies in no other op, annotation or call of the runtime; Python's functions between them
//   make no difference.
// Four things differ. Newer versions of torch (2.15 does, 2.5 does not) take the time of Python's functions out of
// self, which then no row has. Files of PyTorch before 2.4 have whole microseconds: lengths differ by up to one a call,
// and torch, which wants an op to end no later than what it lies in, loses some of the nesting, where here a
// microsecond too much is rounding. A slice that ends on another thread than it began on (what waits in TorchScript,
// collectives of gloo) has no self time for torch; a file does not tell, and here it has. And torch's table holds
// annotations among the ops: here they have one of their own.

namespace tenon::tracing {
namespace {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Trace;

/// What has one name.
struct OpGroup {
  int64_t calls = 0, total = 0, self = 0, longest = 0, gpu = 0;
  EventId longest_event = kNone;
};
using OpGroups = std::unordered_map<std::string_view, OpGroup>;

bool is_call(EventKind k) { return k == EventKind::cpu_op || k == EventKind::annotation || k == EventKind::runtime; }

/// Ops, annotations and calls of the runtime as they lie in each other, whatever Python functions lie between.
struct OpTree {
  std::vector<EventId> parent;
  std::vector<int64_t> self;
  std::vector<char> again;  ///< all that the parent does, under the same name
};

OpTree call_tree(const Trace& t) {
  constexpr int64_t rounding = 1000;  // of files in whole microseconds
  OpTree tree;
  const std::vector<EventId> around = parents(t);
  // An event's number is larger than that of what it lies in, so one pass from the front finds the nearest call around
  // each.
  std::vector<EventId> nearest(t.size(), kNone);
  std::vector<uint32_t> children(t.size());
  tree.self.resize(t.size());
  tree.again.resize(t.size());
  for (EventId e = 0; e < t.size(); ++e) {
    if (around[e] != kNone) nearest[e] = is_call(t.kind(around[e])) ? around[e] : nearest[around[e]];
    if (is_call(t.kind(e))) tree.self[e] = t.duration(e);
  }
  tree.parent = nearest;
  for (EventId e = 0; e < t.size(); ++e) {
    if (!is_call(t.kind(e))) continue;
    EventId p = nearest[e];
    while (p != kNone && t.end(p) + rounding < t.end(e)) p = nearest[p];  // what only overlaps is no part of it
    tree.parent[e] = p;
    if (p == kNone) continue;
    ++children[p];
    tree.self[p] -= std::min(t.end(e), t.end(p)) - t.start(e);
  }
  for (EventId e = 0; e < t.size(); ++e) {
    EventId p = tree.parent[e];
    // In whole microseconds a call of no length seems to lie in the one that follows it.
    tree.again[e] = is_call(t.kind(e)) && p != kNone && children[p] == 1 && t.duration(e) > 0 &&
                    t.kind(p) == t.kind(e) && t.columns().name[p] == t.columns().name[e];
  }
  return tree;
}

std::vector<std::pair<std::string_view, OpGroup>> sorted_groups(const OpGroups& groups, int64_t OpGroup::*by) {
  std::vector<std::pair<std::string_view, OpGroup>> all(groups.begin(), groups.end());
  std::erase_if(all, [](const auto& g) { return g.second.calls == 0; });
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return a.second.*by != b.second.*by ? a.second.*by > b.second.*by : a.first < b.first;
  });
  return all;
}

Finding ops(const TraceRequest& r) {
  const Trace& t = r.first();
  const OpTree tree = call_tree(t);
  const std::vector<TraceStep> steps = trace_steps(t);
  const auto step = std::find_if(steps.begin(), steps.end(), [&](const TraceStep& s) { return s.number == r.step; });
  auto wanted = [&](EventId e) {
    return r.step < 0 || (step != steps.end() && t.start(e) >= step->start && t.start(e) < step->end);
  };
  OpGroups by_op, by_annotation;
  std::vector<OpGroup*> of_name[2];  // of ops and of annotations, by the number of the name
  for (auto& groups : of_name) groups.resize(t.names());
  const auto group_of = [&](EventId e) -> OpGroup& {
    const bool op = t.kind(e) == EventKind::cpu_op;
    OpGroup*& known = of_name[op][t.columns().name[e]];
    if (!known) known = &(op ? by_op : by_annotation)[without_step_number(t.event_name(e))];
    return *known;
  };
  int64_t total_self = 0, gpu_total = 0;
  for (EventId e = 0; e < t.size(); ++e) {
    const EventKind k = t.kind(e);
    if ((k != EventKind::cpu_op && k != EventKind::annotation) || !wanted(e)) continue;
    OpGroup& g = group_of(e);
    const int64_t self = std::max<int64_t>(0, tree.self[e]);
    g.self += self;
    if (k == EventKind::cpu_op) total_self += self;
    if (tree.again[e]) continue;
    ++g.calls;
    g.total += t.duration(e);
    if (t.duration(e) > g.longest || g.longest_event == kNone) g.longest_event = e;
    g.longest = std::max(g.longest, t.duration(e));
  }
  // Work of the GPU goes to the innermost op around its launch.
  for (const traces::Link& l : t.launches()) {
    EventId op = l.from;
    while (op != kNone && t.kind(op) != EventKind::cpu_op) op = tree.parent[op];
    if (op == kNone || !wanted(op)) continue;
    group_of(op).gpu += t.duration(l.to);
    gpu_total += t.duration(l.to);
  }
  auto all = sorted_groups(by_op, gpu_total > 0 ? &OpGroup::gpu : &OpGroup::self);
  Finding f;
  f.facts = {{"op_count", "ops", Unit::count, static_cast<int64_t>(all.size())},
             {"self_ns", "CPU time", Unit::nanoseconds, total_self},
             {"gpu_ns", "GPU time", Unit::nanoseconds, gpu_total}};
  if (all.empty()) {
    f.ok = false;
    f.sentence = r.step >= 0
                     ? fmt::format("ProfilerStep#{} holds no ops of the CPU, or the trace does not have it.", r.step)
                     : "The trace holds no ops of the CPU.";
    return f;
  }
  const auto& [name, top] = all[0];
  f.sentence = gpu_total > 0 ? fmt::format("{} launches the most work: {} of {} on the GPU.", name,
                                           nanoseconds_text(static_cast<double>(top.gpu)),
                                           nanoseconds_text(static_cast<double>(gpu_total)))
                             : fmt::format("{} takes the most time itself: {} of {} on the CPU.", name,
                                           nanoseconds_text(static_cast<double>(top.self)),
                                           nanoseconds_text(static_cast<double>(total_self)));
  auto table_of = [&](const char* key, const char* title,
                      const std::vector<std::pair<std::string_view, OpGroup>>& groups) {
    Table table{key,
                {{"name", title, Unit::text},
                 {"calls", "CALLS", Unit::count},
                 {"self_ns", "SELF CPU", Unit::nanoseconds},
                 {"total_ns", "TOTAL CPU", Unit::nanoseconds},
                 {"mean_ns", "MEAN", Unit::nanoseconds},
                 {"max_ns", "MAX", Unit::nanoseconds},
                 {"gpu_ns", "GPU", Unit::nanoseconds}},
                {}};
    for (const auto& [n, g] : groups) {
      if (table.rows.size() == r.top) break;
      table.add({std::string(n), g.calls, g.self, g.total, g.total / g.calls, g.longest, g.gpu},
                Sight::of(g.longest_event));
    }
    return table;
  };
  f.tables.push_back(table_of("ops", "OP", all));
  auto annotations = sorted_groups(by_annotation, &OpGroup::total);
  if (!annotations.empty()) {
    f.tables.push_back(table_of("annotations", "ANNOTATION", annotations));
    f.tables.back().columns.pop_back();  // what they launched is their ops' work
    for (auto& row : f.tables.back().rows) row.pop_back();
  }
  return f;
}

const bool registered_trace_ops =
    register_trace_analysis({"ops", "the ops of the CPU by their own time and by what they launched", 1, 1, ops});

}  // namespace
}  // namespace tenon::tracing
