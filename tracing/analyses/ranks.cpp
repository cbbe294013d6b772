// trace ranks: several ranks as one session, with their clocks aligned.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/median.h"
#include "tracing/analyses/activity.h"
#include "tracing/analyses/ranks.h"

// Note [One clock]
// Clocks of machines differ by microseconds to seconds. A collective of a group ends on all its ranks at about the same
// moment, whenever each of them came to it. So the k-th collective of a name on one rank is the k-th of that name on
// every other, and the median over all of them of how much later it ends there is how much that rank's clock is ahead.
// The median does not mind single stragglers.

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::Trace;

namespace {

/// What the libraries that communicate between CPUs run, on threads of their own: "gloo:all_reduce".
bool is_cpu_collective(std::string_view annotation) {
  return annotation.starts_with("gloo:") || annotation.starts_with("mpi:") || annotation.starts_with("ucc:");
}

/// Begins and ends of collectives by name, in order: those of the GPU, or, where it has none, of the CPU.
using Collectives = std::map<std::string, Intervals>;
Collectives collectives(const Trace& t) {
  Collectives all;
  const GpuTimeline gpu(t);
  for (const GpuWork& w : gpu)
    if (w.communication) all[std::string(t.event_name(w.event))].emplace_back(w.start, w.end);
  if (!all.empty()) return all;
  std::vector<bool> wanted(t.names());
  for (uint32_t n = 0; n < t.names(); ++n) wanted[n] = is_cpu_collective(t.text(n));
  for (EventId e = 0; e < t.size(); ++e)
    if (wanted[t.columns().name[e]] && t.kind(e) == EventKind::annotation)
      all[std::string(t.event_name(e))].emplace_back(t.start(e), t.end(e));
  for (auto& [name, list] : all) std::sort(list.begin(), list.end());
  return all;
}

/// The event of a collective; the trace's first one where a rank has none.
EventId event_of(const Trace& t, const std::string* name, int64_t start) {
  const uint32_t text = name ? t.find_name(*name) : traces::kNone;
  EventId first = traces::kNone;
  for (EventId e = 0; e < t.size(); ++e) {
    if (text != traces::kNone && t.columns().name[e] == text && t.start(e) == start) return e;
    if (first == traces::kNone || t.start(e) < t.start(first)) first = e;
  }
  return first;
}

/// Files may say any time: what is too far apart for a number is as far as one goes.
int64_t apart(int64_t a, int64_t a_base, int64_t b, int64_t b_base) {
  const __int128 d = static_cast<__int128>(a) + a_base - b - b_base;
  return static_cast<int64_t>(std::clamp<__int128>(d, INT64_MIN / 4, INT64_MAX / 4));
}

}  // namespace

std::vector<ClockOffset> align_clocks(const std::vector<std::shared_ptr<const Trace>>& traces) {
  std::vector<ClockOffset> offsets(traces.size());
  if (traces.empty()) return offsets;
  const auto first = collectives(*traces[0]);
  for (size_t r = 1; r < traces.size(); ++r) {
    std::vector<int64_t> later;
    for (const auto& [name, ends] : collectives(*traces[r])) {
      auto it = first.find(name);
      // A rank whose recording began later misses the first ones: they are matched from the end.
      if (it == first.end()) continue;
      size_t n = std::min(ends.size(), it->second.size());
      for (size_t k = 1; k <= n; ++k)
        later.push_back(apart(ends[ends.size() - k].second, traces[r]->base(), it->second[it->second.size() - k].second,
                              traces[0]->base()));
    }
    offsets[r].matched = later.size();
    if (later.empty()) continue;
    offsets[r].ahead_ns = median_of(later);
    for (int64_t& v : later) v = std::abs(v - offsets[r].ahead_ns);
    offsets[r].spread_ns = median_of(later);
  }
  return offsets;
}

std::vector<int64_t> shifts_to_first(const std::vector<std::shared_ptr<const Trace>>& traces) {
  constexpr int64_t kYear = int64_t{366} * 24 * 3600 * 1'000'000'000;
  const auto offsets = align_clocks(traces);
  std::vector<int64_t> shifts(traces.size());
  for (size_t i = 1; i < traces.size(); ++i) {
    const Trace &t = *traces[i], &first = *traces[0];
    const bool placed = offsets[i].matched > 0 || (t.base() > 0 && first.base() > 0);
    shifts[i] = apart(0, t.base(), 0, first.base()) - offsets[i].ahead_ns;
    const int64_t away = apart(t.begin(), shifts[i], first.begin(), 0);
    if (!placed || away > kYear || away < -kYear) shifts[i] = apart(first.begin(), 0, t.begin(), 0);
  }
  return shifts;
}

namespace {

Finding ranks(const TraceRequest& r) {
  auto offsets = align_clocks(r.traces);
  Finding f;
  Table table{"ranks",
              {{"rank", "RANK", Unit::text},
               {"file", "FILE", Unit::text},
               {"events", "EVENTS", Unit::count},
               {"ahead_ns", "CLOCK AHEAD", Unit::nanoseconds},
               {"spread_ns", "+-", Unit::nanoseconds},
               {"matched", "COLLECTIVES", Unit::count},
               {"step_ns", "A STEP", Unit::nanoseconds},
               {"busy_ns", "COMPUTE A STEP", Unit::nanoseconds},
               {"communication_ns", "COMMUNICATION", Unit::nanoseconds},
               {"late_ns", "LATE BY", Unit::nanoseconds}},
              {}};
  std::vector<double> late(r.traces.size());
  std::vector<size_t> waits(r.traces.size());
  struct Latest {  // the collective to which a rank came latest
    const std::string* name = nullptr;
    int64_t late = -1, start = 0;
  };
  std::vector<Latest> latest(r.traces.size());
  // Who comes last to a collective keeps the others waiting.
  std::vector<Collectives> all;
  for (const auto& t : r.traces) all.push_back(collectives(*t));
  for (const auto& [name, list] : all[0]) {
    size_t n = list.size();
    for (const auto& c : all) n = c.count(name) ? std::min(n, c.at(name).size()) : 0;
    for (size_t k = 1; k <= n; ++k) {
      // Against the first trace's, on its clock.
      const int64_t origin = list[list.size() - k].first;
      int64_t earliest = INT64_MAX;
      std::vector<int64_t> begins;
      for (size_t i = 0; i < all.size(); ++i) {
        const auto& mine = all[i].at(name);
        begins.push_back(apart(mine[mine.size() - k].first, r.traces[i]->base(), origin, r.traces[0]->base()) -
                         offsets[i].ahead_ns);
        earliest = std::min(earliest, begins.back());
      }
      for (size_t i = 0; i < all.size(); ++i) {
        late[i] += static_cast<double>(begins[i] - earliest);
        ++waits[i];
        if (begins[i] - earliest <= latest[i].late) continue;
        const auto& mine = all[i].at(name);
        latest[i] = {&name, begins[i] - earliest, mine[mine.size() - k].first};
      }
    }
  }
  size_t worst = 0;
  int64_t skew = 0;
  for (size_t i = 0; i < r.traces.size(); ++i) {
    const Trace& t = *r.traces[i];
    auto steps = asked_steps(t, r);
    const GpuTimeline work(t);
    int64_t total = 0;
    Intervals compute, communication;
    for (const TraceStep& s : steps) {
      total += s.end - s.start;
      for (const GpuWork& w : of_step(t, work, s))
        if (!w.copy) (w.communication ? communication : compute).emplace_back(w.start, w.end);
    }
    if (work.empty()) {  // trained on the CPU
      Intervals whole;
      for (const TraceStep& s : steps) whole.emplace_back(s.start, s.end);
      whole = merged(std::move(whole));
      for (const auto& [name, list] : all[i]) communication.insert(communication.end(), list.begin(), list.end());
      communication = intersection(merged(std::move(communication)), whole);
      compute = intersection(host_work(t)->ops, whole);
    }
    auto n = static_cast<int64_t>(std::max<size_t>(1, steps.size()));
    if (waits[i]) late[i] /= static_cast<double>(waits[i]);
    if (late[i] > late[worst]) worst = i;
    skew = std::max(skew, std::abs(offsets[i].ahead_ns));
    std::string file = t.path().substr(t.path().find_last_of('/') + 1);
    const EventId seen = event_of(t, latest[i].name, latest[i].start);
    table.add({t.rank() >= 0 ? std::to_string(t.rank()) : fmt::format("({})", i), file, static_cast<int64_t>(t.size()),
               offsets[i].ahead_ns, offsets[i].spread_ns, static_cast<int64_t>(offsets[i].matched), total / n,
               length(merged(std::move(compute))) / n, length(merged(std::move(communication))) / n, late[i]},
              seen == traces::kNone ? Sight{} : Sight::in_trace(static_cast<int64_t>(i), seen));
  }
  bool aligned = false;
  for (const ClockOffset& o : offsets) aligned |= o.matched > 0;
  f.facts = {{"rank_count", "ranks", Unit::count, static_cast<int64_t>(r.traces.size())},
             {"skew_ns", "largest skew of clocks", Unit::nanoseconds, skew}};
  auto label = [&](size_t i) {
    return r.traces[i]->rank() >= 0 ? fmt::format("Rank {}", r.traces[i]->rank()) : fmt::format("Trace {}", i);
  };
  if (!aligned)
    f.sentence =
        fmt::format("{} traces; they share no collectives, so their clocks could not be aligned.", r.traces.size());
  else
    f.sentence = fmt::format(
        "{} ranks, their clocks up to {} apart (estimated from collectives they share). {} comes last to them, {} "
        "after the first on average: the others wait for it.",
        r.traces.size(), nanoseconds_text(static_cast<double>(skew)), label(worst), nanoseconds_text(late[worst]));
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_ranks =
    register_trace_analysis({"ranks", "several ranks as one session: skew of clocks, stragglers", 2, 100000, ranks});

}  // namespace
}  // namespace tenon::tracing
