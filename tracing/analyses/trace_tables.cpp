// trace info, kernels: what is in a trace, counted and summed.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tracing/analyses/event_names.h"
#include "tracing/analyses/trace_analysis.h"

namespace tenon::tracing {
namespace {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Trace;

Finding trace_info(const TraceRequest& r) {
  const Trace& t = r.first();
  Finding f;
  uint64_t repairs = 0;
  for (const auto& m : t.repairs()) repairs += m.count;
  int64_t span = t.size() ? t.finish() - t.begin() : 0;
  int64_t steps = 0;
  for (const TraceStep& s : trace_steps(t)) steps += s.number >= 0;
  size_t rows_used = 0, gpu_rows = 0;
  for (const auto& row : t.rows()) rows_used += row.events > 0, gpu_rows += row.gpu && row.events;
  f.sentence = fmt::format("{} events over {} on {} rows ({} of a GPU){}{}.",
                           count_text(static_cast<int64_t>(t.size())), nanoseconds_text(static_cast<double>(span)),
                           rows_used, gpu_rows, t.rank() >= 0 ? fmt::format(", rank {}", t.rank()) : "",
                           t.truncated() ? "; the file ends before its time, what it holds is here" : "");
  f.facts = {
      {"events", "events", Unit::count, static_cast<int64_t>(t.size())},
      {"span_ns", "span", Unit::nanoseconds, span},
      {"launches", "launches linked", Unit::count, static_cast<int64_t>(t.launches().size())},
      {"forward_backward", "forward-backward pairs", Unit::count, static_cast<int64_t>(t.forward_backward().size())},
      {"memory_events", "memory events", Unit::count, static_cast<int64_t>(t.memory().size())},
      {"counters", "counters", Unit::count, static_cast<int64_t>(t.counters().size())},
      {"step_count", "steps", Unit::count, steps},
      {"bytes", "text", Unit::bytes, static_cast<int64_t>(t.source_bytes())},
      {"truncated", "truncated", Unit::text, std::string(t.truncated() ? "yes" : "no")},
      {"from_cache", "from the saved store", Unit::text, std::string(t.from_cache() ? "yes" : "no")}};
  Table categories{"categories",
                   {{"category", "CATEGORY", Unit::text},
                    {"kind", "IS", Unit::text},
                    {"events", "EVENTS", Unit::count},
                    {"total_ns", "TOTAL", Unit::nanoseconds}},
                   {}};
  std::vector<int64_t> sums(t.categories().size());
  for (EventId e = 0; e < t.size(); ++e) sums[t.columns().category[e]] += t.duration(e);
  for (size_t c = 0; c < t.categories().size(); ++c)
    if (t.categories()[c].events)
      categories.rows.push_back({t.categories()[c].name, std::string(name(t.categories()[c].kind)),
                                 static_cast<int64_t>(t.categories()[c].events), sums[c]});
  std::stable_sort(categories.rows.begin(), categories.rows.end(),
                   [](const auto& a, const auto& b) { return std::get<int64_t>(a[2]) > std::get<int64_t>(b[2]); });
  f.tables.push_back(std::move(categories));
  Table rows{
      "rows", {{"row", "ROW", Unit::text}, {"events", "EVENTS", Unit::count}, {"lanes", "LANES", Unit::count}}, {}};
  for (const auto& row : t.rows())
    if (row.events && rows.rows.size() < r.top)
      rows.rows.push_back({row.label(), static_cast<int64_t>(row.events), static_cast<int64_t>(row.lanes)});
  f.tables.push_back(std::move(rows));
  Table mended{"repairs",
               {{"kind", "REPAIRED OR SKIPPED", Unit::text},
                {"count", "COUNT", Unit::count},
                {"first_byte", "FIRST AT BYTE", Unit::count}},
               {}};
  for (const auto& m : t.repairs())
    mended.rows.push_back({m.kind, static_cast<int64_t>(m.count), static_cast<int64_t>(m.first_byte)});
  f.tables.push_back(std::move(mended));
  return f;
}

/// What has one name.
struct KernelGroup {
  uint32_t name = 0;
  uint16_t category = 0;
  int64_t calls = 0, total = 0, shortest = INT64_MAX, longest = 0;
  EventId longest_event = kNone;
};

std::vector<KernelGroup> sorted_kernels(std::vector<KernelGroup> groups) {
  std::erase_if(groups, [](const KernelGroup& g) { return g.calls == 0; });
  std::sort(groups.begin(), groups.end(), [](const KernelGroup& a, const KernelGroup& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return groups;
}

/// The steps whose events count; with a number asked for, those of that number.
std::vector<TraceStep> wanted_steps(const Trace& t, const TraceRequest& r) {
  std::vector<TraceStep> steps;
  if (r.step >= 0) steps = trace_steps(t);
  std::erase_if(steps, [&](const TraceStep& s) { return s.number != r.step; });
  return steps;
}

bool wanted(const Trace& t, const TraceRequest& r, EventId e, const std::vector<TraceStep>& steps) {
  if (r.step < 0) return true;
  // Work on the GPU belongs to the step of its launch.
  EventId call = on_gpu(t.kind(e)) ? t.launch_of(e) : e;
  int64_t at = t.start(call == kNone ? e : call);
  return !steps.empty() && at >= steps[0].start && at < steps[0].end;
}

Finding kernels(const TraceRequest& r) {
  const Trace& t = r.first();
  std::vector<KernelGroup> groups(t.names());
  const auto steps = wanted_steps(t, r);
  int64_t total = 0, count = 0;
  for (EventId e = 0; e < t.size(); ++e) {
    if (!on_gpu(t.kind(e)) || !wanted(t, r, e, steps)) continue;
    KernelGroup& g = groups[t.columns().name[e]];
    int64_t d = t.duration(e);
    g.name = t.columns().name[e];
    g.category = t.columns().category[e];
    ++g.calls;
    g.total += d;
    g.shortest = std::min(g.shortest, d);
    if (d > g.longest || g.longest_event == kNone) g.longest_event = e;
    g.longest = std::max(g.longest, d);
    total += d;
    ++count;
  }
  auto all = sorted_kernels(std::move(groups));
  Finding f;
  f.facts = {{"kernel_count", "kernels and copies", Unit::count, count},
             {"names", "names", Unit::count, static_cast<int64_t>(all.size())},
             {"total_ns", "GPU time", Unit::nanoseconds, total}};
  if (all.empty()) {
    f.ok = false;
    f.sentence = r.step >= 0
                     ? fmt::format("ProfilerStep#{} launched no work of a GPU, or the trace does not have it.", r.step)
                     : "The trace holds no work of a GPU: it was taken without one, or without ProfilerActivity.CUDA.";
    return f;
  }
  size_t most = 0;
  for (int64_t sum = 0; most < all.size() && sum * 10 < total * 8; ++most) sum += all[most].total;
  f.sentence =
      fmt::format("{} of {} kernels make up 80 % of {} of GPU time; the largest, {}, is {}.", most, all.size(),
                  nanoseconds_text(static_cast<double>(total)), short_name(t.text(all[0].name)),
                  share_text(static_cast<double>(all[0].total) / static_cast<double>(std::max<int64_t>(1, total))));
  Table table{"kernels",
              {{"name", "KERNEL", Unit::text},
               {"category", "CATEGORY", Unit::text},
               {"calls", "CALLS", Unit::count},
               {"total_ns", "TOTAL", Unit::nanoseconds},
               {"share", "SHARE", Unit::share},
               {"mean_ns", "MEAN", Unit::nanoseconds},
               {"min_ns", "MIN", Unit::nanoseconds},
               {"max_ns", "MAX", Unit::nanoseconds}},
              {}};
  for (const KernelGroup& g : all) {
    if (table.rows.size() == r.top) break;
    table.add({std::string(t.text(g.name)), t.categories()[g.category].name, g.calls, g.total, share(g.total, total),
               g.total / g.calls, g.shortest, g.longest},
              Sight::of(g.longest_event));
  }
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_trace_tables =
    register_trace_analysis({"info", "what is in a trace, and what was repaired or skipped in it", 1, 1, trace_info}) &&
    register_trace_analysis({"kernels", "the kernels, copies and fills of the GPU by time", 1, 1, kernels});

}  // namespace
}  // namespace tenon::tracing
