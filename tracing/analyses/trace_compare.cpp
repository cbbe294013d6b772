// trace diff A B: why a step of B takes longer (or shorter) than one of A.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tracing/analyses/activity.h"

// Note [What a difference is made of]
// The critical path cuts a step's length into pieces that follow each other, so the sums of the pieces by name differ by exactly what the
// steps differ by: those are the items. But when work grows, the path may also come to run over other work that was there before, and its
// items grow with it. What grew is told by the work itself: all time of a name per step, on the path or not. Items are ranked by that.

namespace tenon::tracing {
namespace {

using trace::EventId;
using trace::Kind;
using trace::kNone;
using trace::Trace;

struct Sums {
  double step = 0;                      ///< mean length
  size_t steps = 0;
  std::map<std::string, double> path;   ///< per step, by name of the piece
  std::map<std::string, double> work;   ///< per step, all of it, by the same names
  std::map<std::string, double> calls;
};

Sums sums_of(const Trace& t, const TraceRequest& r) {
  Sums s;
  auto all = asked_steps(t, r);
  auto work = gpu_work(t);
  std::vector<EventId> parent = parents(t);
  std::vector<int64_t> self(t.size());
  for (EventId e = 0; e < t.size(); ++e) {
    self[e] += t.duration(e);
    if (parent[e] != kNone) self[parent[e]] -= std::min(t.end(e), t.end(parent[e])) - t.start(e);
  }
  for (const TraceStep& step : all) {
    auto mine = of_step(t, work, step);
    for (const PathPiece& p : critical_path(t, mine, step)) s.path[piece_name(t, p)] += static_cast<double>(p.to - p.from);
    for (const GpuWork& w : mine) {
      std::string name(t.event_name(w.event));
      s.work[name] += static_cast<double>(w.end - w.start);
      ++s.calls[name];
    }
    for (const auto& lane : t.lanes()) {
      if (t.rows()[lane.row].gpu) continue;  // backward runs on a thread of its own
      auto [first, last] = t.range(static_cast<uint32_t>(&lane - t.lanes().data()), step.start, step.end);
      for (EventId e = first; e < last; ++e) {
        if (t.start(e) < step.start || t.duration(e) == 0) continue;
        Kind k = t.kind(e);
        bool waits = k == Kind::runtime && (is_sync_call(t.event_name(e)) || is_copy_call(t.event_name(e)));
        std::string name = t.event_name(e).starts_with("ProfilerStep#") ? "no op on the CPU" : std::string(t.event_name(e)) + (waits ? " (waiting)" : " (CPU)");
        s.work[name] += waits ? 0 : static_cast<double>(std::max<int64_t>(0, self[e]));
        ++s.calls[name];
      }
    }
    s.step += static_cast<double>(step.end - step.start);
  }
  s.steps = all.size();
  double n = static_cast<double>(std::max<size_t>(1, s.steps));
  s.step /= n;
  for (auto* m : {&s.path, &s.work, &s.calls})
    for (auto& [name, v] : *m) v /= n;
  return s;
}

double at(const std::map<std::string, double>& m, const std::string& name) {
  auto it = m.find(name);
  return it == m.end() ? 0 : it->second;
}

Finding diff(const TraceRequest& r) {
  Finding f;
  const Sums a = sums_of(*r.traces[0], r), b = sums_of(*r.traces[1], r);
  if (a.steps == 0 || b.steps == 0) {
    f.ok = false;
    f.sentence = fmt::format("There is no step to compare in {}.", a.steps == 0 ? "A" : "B");
    return f;
  }
  struct Item {
    std::string name;
    double delta = 0, work = 0, a = 0, b = 0, calls_a = 0, calls_b = 0;
  };
  std::map<std::string, Item> items;
  auto add = [&](const std::map<std::string, double>& names) {
    for (const auto& [name, ignored] : names) items[name].name = name;
  };
  add(a.path), add(b.path), add(a.work), add(b.work);
  std::vector<Item> list;
  for (auto& [name, i] : items) {
    i.delta = at(b.path, name) - at(a.path, name);
    i.work = at(b.work, name) - at(a.work, name);
    i.a = at(a.work, name), i.b = at(b.work, name);
    i.calls_a = at(a.calls, name), i.calls_b = at(b.calls, name);
    if (i.delta != 0 || i.work != 0) list.push_back(i);
  }
  const double change = b.step - a.step;
  // Work that grew as the step did comes first; without such work, what the path has more of.
  auto weight = [&](const Item& i) { return change >= 0 ? i.work : -i.work; };
  std::stable_sort(list.begin(), list.end(), [&](const Item& x, const Item& y) {
    double p = weight(x), q = weight(y);
    if (p != q) return p > q;
    return change >= 0 ? x.delta > y.delta : x.delta < y.delta;
  });
  double sum = 0;
  for (const Item& i : list) sum += i.delta;
  const std::string more = change >= 0 ? "longer" : "shorter";
  double relative = a.step > 0 ? std::abs(change) / a.step : 0;
  if (relative < 0.005) {
    f.sentence = fmt::format("The steps of A and B take the same time: {} and {}.", nanoseconds_text(a.step), nanoseconds_text(b.step));
  } else {
    f.sentence = fmt::format("A step of B takes {} {} than one of A ({} against {}, {}).", nanoseconds_text(std::abs(change)), more, nanoseconds_text(b.step), nanoseconds_text(a.step), share_text(relative));
    if (!list.empty() && weight(list[0]) > 0) {
      const Item& top = list[0];
      f.sentence += fmt::format(" {} accounts for {}: {} a step instead of {}", top.name.substr(0, 80), nanoseconds_text(std::abs(top.work)), nanoseconds_text(top.b), nanoseconds_text(top.a));
      f.sentence += top.calls_a != top.calls_b ? fmt::format(", {:.4g} calls instead of {:.4g}.", top.calls_b, top.calls_a) : ".";
    }
  }
  f.facts = {{"a_ns", "a step of A", Unit::nanoseconds, a.step}, {"b_ns", "a step of B", Unit::nanoseconds, b.step}, {"change_ns", "difference", Unit::nanoseconds, change}, {"items_ns", "sum of the items", Unit::nanoseconds, sum},
             {"a_steps", "steps of A", Unit::count, static_cast<int64_t>(a.steps)}, {"b_steps", "steps of B", Unit::count, static_cast<int64_t>(b.steps)}};
  Table table{"items", {{"name", "WHAT", Unit::text}, {"delta_ns", "OF THE DIFFERENCE", Unit::nanoseconds}, {"work_ns", "ITSELF", Unit::nanoseconds}, {"a_ns", "IN A", Unit::nanoseconds}, {"b_ns", "IN B", Unit::nanoseconds},
                        {"a_calls", "CALLS A", Unit::number}, {"b_calls", "CALLS B", Unit::number}}, {}};
  double shown = 0;
  for (const Item& i : list) {
    if (table.rows.size() == r.top) break;
    shown += i.delta;
    table.rows.push_back({i.name, i.delta, i.work, i.a, i.b, i.calls_a, i.calls_b});
  }
  if (list.size() > r.top) table.rows.push_back({fmt::format("{} more", list.size() - r.top), sum - shown, 0.0, 0.0, 0.0, 0.0, 0.0});
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered = register_trace_analysis({"diff", "why a step of B takes longer or shorter than one of A", 2, 2, diff});

}  // namespace
}  // namespace tenon::tracing
