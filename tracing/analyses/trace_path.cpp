// trace critical-path: the chain of events that a step's length is made of.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tracing/analyses/critical_path.h"

namespace tenon::tracing {
namespace {

using traces::kNone;
using traces::Trace;
using Piece = PathPiece::What;

/// All pieces of one name.
struct PathGroup {
  Piece what;
  uint32_t name;  ///< of the trace; kNone where the piece has none
  int64_t time = 0, pieces = 0;
  Sight longest;
};

Finding path(const TraceRequest& r) {
  const Trace& t = r.first();
  Finding f;
  const auto all = asked_steps(t, r);
  if (all.empty())
    return nothing(r.step >= 0 ? fmt::format("The trace has no ProfilerStep#{}.", r.step)
                               : "The trace holds no events.");
  const GpuTimeline gpu(t);
  // The step of middle length stands for the others, unless one was named.
  std::vector<std::pair<int64_t, size_t>> lengths;
  for (size_t i = 0; i < all.size(); ++i) lengths.emplace_back(step_work(gpu, all[i]).length(), i);
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<long>(lengths.size() / 2), lengths.end());
  const StepWork step = step_work(gpu, all[lengths[lengths.size() / 2].second]);
  const CriticalPaths paths(t, gpu);
  std::vector<PathGroup> groups;
  std::unordered_map<uint64_t, size_t> place;
  int64_t on_gpu = 0, on_cpu = 0;
  for (const PathPiece& p : paths.of(step)) {
    Piece what = paths.is_no_op(p) ? Piece::nothing : p.what;
    const bool named = what == Piece::gpu || what == Piece::cpu || what == Piece::wait;
    const uint32_t name = named ? t.columns().name[p.event] : kNone;
    auto [it, fresh] = place.emplace(uint64_t{name} << 8 | static_cast<uint64_t>(what), groups.size());
    if (fresh) groups.push_back({what, name});
    PathGroup& g = groups[it->second];
    g.time += p.to - p.from;
    if (p.to - p.from > g.longest.to - g.longest.from) g.longest = {named ? int64_t{p.event} : -1, p.from, p.to};
    ++g.pieces;
    if (what == Piece::gpu) on_gpu += p.to - p.from;
    if (what == Piece::cpu || what == Piece::nothing) on_cpu += p.to - p.from;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const PathGroup& a, const PathGroup& b) { return a.time > b.time; });
  auto ns = [](int64_t v) { return nanoseconds_text(static_cast<double>(v)); };
  auto share = [&](int64_t v) {
    return step.length() > 0 ? static_cast<double>(v) / static_cast<double>(step.length()) : 0;
  };
  auto name_of = [&](const PathGroup& g) {
    return piece_name(g.what, g.name == kNone ? std::string_view() : t.text(g.name));
  };
  const std::string which = step.step.number < 0 ? "the whole trace" : fmt::format("step {}", step.step.number);
  f.facts = {{"step", "step", Unit::text, step.step.number < 0 ? "all" : std::to_string(step.step.number)},
             {"total_ns", "length", Unit::nanoseconds, step.length()},
             {"gpu_ns", "on the GPU", Unit::nanoseconds, on_gpu},
             {"cpu_ns", "on the CPU", Unit::nanoseconds, on_cpu},
             {"between_ns", "between the two", Unit::nanoseconds, step.length() - on_gpu - on_cpu}};
  f.sentence = fmt::format("The chain of events that makes {} last {} runs {}", which, ns(step.length()),
                           gpu.empty() ? "on the CPU alone"
                                       : fmt::format("for {} on the GPU and for {} on the CPU",
                                                     share_text(share(on_gpu)), share_text(share(on_cpu))));
  f.sentence += groups.empty() ? "."
                               : fmt::format("; its largest part is {} with {} ({}).", short_name(name_of(groups[0])),
                                             ns(groups[0].time), share_text(share(groups[0].time)));
  Table table{"path",
              {{"name", "WHAT", Unit::text},
               {"total_ns", "TIME", Unit::nanoseconds},
               {"share", "SHARE", Unit::share},
               {"pieces", "PIECES", Unit::count}},
              {}};
  for (const PathGroup& g : groups)
    if (table.rows.size() < r.top) table.add({name_of(g), g.time, share(g.time), g.pieces}, g.longest);
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_trace_path =
    register_trace_analysis({"critical-path", "the chain of events that a step's length is made of", 1, 1, path});

}  // namespace
}  // namespace tenon::tracing
