// trace overview: all of a trace at one glance.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/overview.h"
#include "tracing/analyses/together.h"

namespace tenon::tracing {
namespace {

/// The table of another analysis, with these of its columns.
std::vector<Table> part_of(const char* analysis, const std::vector<std::string>& columns, const TraceRequest& r) {
  std::vector<Table> parts;
  const Finding from = trace_analyses().at(analysis).run(r);
  for (const Table& whole : from.tables) {
    if (!from.ok || whole.name != analysis) continue;
    Table t{whole.name, {}, {}, whole.sights};
    t.rows.resize(whole.rows.size());
    for (size_t c = 0; c < whole.columns.size(); ++c) {
      if (std::find(columns.begin(), columns.end(), whole.columns[c].name) == columns.end()) continue;
      t.columns.push_back(whole.columns[c]);
      for (size_t row = 0; row < whole.rows.size(); ++row) t.rows[row].push_back(whole.rows[row][c]);
    }
    parts.push_back(std::move(t));
  }
  return parts;
}

Table advice_table(const Overview& o) {
  Table table{"recommendations",
              {{"about", "ABOUT", Unit::text},
               {"figure", "FIGURE", Unit::share},
               {"threshold", "TOLD FROM", Unit::share},
               {"try", "TRY", Unit::text},
               {"seen", "SEEN", Unit::text, true}},
              {}};
  for (const Advice& a : o.advice) table.add({a.about, a.figure, a.threshold, a.try_this, a.seen}, a.sight);
  return table;
}

Table parts_table(const Overview& o) {
  Table table{"parts",
              {{"part", "PART", Unit::text},
               {"per_step_ns", "A STEP", Unit::nanoseconds},
               {"total_ns", "TOTAL", Unit::nanoseconds},
               {"share", "SHARE", Unit::share}},
              {}};
  for (const StepPart p : step_parts(o.gpu)) {
    // Where most of it is.
    const StepTimes* most = nullptr;
    for (const StepTimes& s : o.steps)
      if (!most || s.parts[p] > most->parts[p]) most = &s;
    const bool any = most && most->parts[p] > 0;
    table.add({std::string(name_of(p).head), o.sum[p] / static_cast<int64_t>(o.steps.size()), o.sum[p], o.share_of(p)},
              any ? Sight{-1, most->begin, most->end, {}} : Sight{});
  }
  return table;
}

Table steps_table(const Overview& o, size_t top) {
  Table table{"steps", {{"step", "STEP", Unit::text}, {"total_ns", "TIME", Unit::nanoseconds}}, {}};
  for (const StepPart p : step_parts(o.gpu)) {
    std::string head = name_of(p).head;
    for (char& c : head)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    table.columns.push_back({std::string(name_of(p).name) + "_ns", head, Unit::nanoseconds});
  }
  for (const StepTimes& s : o.steps) {
    if (table.rows.size() == top) break;
    std::vector<Cell> row{s.step.number < 0 ? std::string("all") : std::to_string(s.step.number), s.end - s.begin};
    for (const StepPart p : step_parts(o.gpu)) row.emplace_back(s.parts[p]);
    table.add(std::move(row), {-1, s.begin, s.end, {}});
  }
  return table;
}

Table configuration_table(const Overview& o) {
  Table table{"configuration", {{"what", "WHAT", Unit::text}, {"value", "VALUE", Unit::text}}, {}};
  for (const auto& [what, value] : o.configuration) table.rows.push_back({what, value});
  return table;
}

Finding overview(const TraceRequest& r) {
  const auto o = overview_of(r);
  if (!o)
    return nothing(r.step >= 0 ? fmt::format("The trace has no ProfilerStep#{}.", r.step)
                               : "The trace holds no events.");
  return overview_finding(*o, r);
}

const bool registered_trace_overview = register_trace_analysis(
    {"overview", "steps by part, occupancy, the largest kernels and ops, and what to try", 1, 1, overview});

}  // namespace

Finding overview_finding(const Overview& o, const TraceRequest& r) {
  Finding f;
  f.sentence = o.sentence;
  const auto count = static_cast<int64_t>(o.steps.size());
  f.facts = {{"step_count", "steps", Unit::count, count},
             {"mean_ns", "a step", Unit::nanoseconds, o.sum.length() / count}};
  if (o.warm_up >= 0) f.facts.push_back({"warm_up_step", "warms up, left out", Unit::count, o.warm_up});
  f.facts.push_back({"data_share", "data loading", Unit::share, o.share_of(StepPart::data)});
  if (o.gpu) {
    if (o.gpu_busy) f.facts.push_back({"gpu_busy_share", "GPU busy", Unit::share, *o.gpu_busy});
    if (o.fill.occupancy_told)
      f.facts.push_back({"occupancy", "est. achieved occupancy", Unit::share, o.fill.occupancy});
    // Of all of the steps' time, as the profiler's own page has it.
    if (o.fill.blocks_told)
      f.facts.push_back(
          {"sm_efficiency", "est. SM efficiency", Unit::share, o.fill.full * o.share_of(StepPart::kernel)});
    f.facts.push_back({"kernels_per_step", "kernels a step", Unit::count, o.kernels / count});
    if (o.fill.kernels > 0 && o.fill.looked_at < o.kernels)
      f.facts.push_back({"kernels_read", "occupancy is of kernels", Unit::count, o.fill.looked_at});
  }
  f.facts.push_back({"recommendation_count", "recommendations", Unit::count, static_cast<int64_t>(o.advice.size())});
  f.tables = {advice_table(o), parts_table(o), steps_table(o, r.top)};
  std::vector<Table> kernels, ops;
  together(
      [&] {
        kernels = part_of("kernels", {"name", "calls", "total_ns", "share", "mean_ns"}, r);
      },
      [&] {
        ops = part_of("ops", {"name", "calls", "self_ns", "total_ns", o.gpu ? "gpu_ns" : "mean_ns"}, r);
      });
  for (auto* tables : {&kernels, &ops})
    for (Table& table : *tables) f.tables.push_back(std::move(table));
  f.tables.push_back(configuration_table(o));
  return f;
}

}  // namespace tenon::tracing
