#include "tracing/analyses/trace_analysis.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::tracing {

using traces::EventId;
using traces::kNone;
using traces::Lane;
using traces::Trace;

namespace {
Registry<TraceAnalysis>& trace_analysis_registry() {
  static auto& all = *new Registry<TraceAnalysis>("analysis of traces");
  return all;
}
}  // namespace

bool register_trace_analysis(TraceAnalysis a, Place place) {
  return trace_analysis_registry().add(std::move(a), place);
}
const Registry<TraceAnalysis>& trace_analyses() { return trace_analysis_registry(); }

std::vector<EventId> parents(const Trace& t) {
  std::vector<EventId> all(t.size(), kNone);
  const auto& lanes = t.lanes();
  for (size_t l = 1; l < lanes.size(); ++l) {
    if (lanes[l].depth == 0) continue;
    const Lane& outer = lanes[l - 1];
    EventId o = outer.begin;
    for (EventId e = lanes[l].begin; e < lanes[l].end; ++e) {
      while (o + 1 < outer.end && t.start(o + 1) <= t.start(e)) ++o;
      if (o < outer.end && t.start(o) <= t.start(e)) all[e] = o;
    }
  }
  return all;
}

bool recorded_by_tenon(const Trace& trace) {
  return std::any_of(trace.rows().begin(), trace.rows().end(), [](const auto& row) { return row.process == "tenon"; });
}

std::vector<TraceStep> trace_steps(const Trace& t) {
  std::vector<TraceStep> steps;
  std::vector<bool> is_step(t.names());
  bool any = false;
  for (uint32_t n = 0; n < t.names(); ++n)
    if (t.text(n).starts_with("ProfilerStep#")) any = is_step[n] = true;
  for (uint32_t l = 0; any && l < t.lanes().size(); ++l) {
    const Lane& lane = t.lanes()[l];
    if (t.rows()[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      if (!is_step[t.columns().name[e]] || t.duration(e) == 0 || t.kind(e) == traces::EventKind::gpu_annotation)
        continue;
      steps.push_back(
          {std::strtoll(std::string(t.event_name(e).substr(13)).c_str(), nullptr, 10), t.start(e), t.end(e), lane.row});
    }
  }
  std::sort(steps.begin(), steps.end(), [](const TraceStep& a, const TraceStep& b) { return a.start < b.start; });
  if (steps.empty() && t.size()) {
    // Row 0 is often one that only names the process: the busiest thread of the CPU stands for the whole.
    uint32_t busiest = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < t.rows().size(); ++i)
      if (!t.rows()[i].gpu && t.rows()[i].events > most) most = t.rows()[i].events, busiest = i;
    steps.push_back({-1, t.begin(), t.finish(), busiest});
  }
  return steps;
}

int64_t union_length(std::vector<std::pair<int64_t, int64_t>>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t total = 0, reached = INT64_MIN;
  for (auto [from, to] : intervals) {
    from = std::max(from, reached);
    if (to <= from) continue;
    total += to - from;
    reached = to;
  }
  return total;
}

}  // namespace tenon::tracing
