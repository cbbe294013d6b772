// trace steps, idle, overlap, launch, memory: where the time of a step goes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "tracing/analyses/idle.h"

namespace tenon::tracing {
namespace {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Trace;

std::string ns(int64_t v) { return nanoseconds_text(static_cast<double>(v)); }
std::string step_text(const TraceStep& s) { return s.number < 0 ? "all" : std::to_string(s.number); }

const char* kNoGpu = "The trace holds no work of a GPU: it was taken without one, or without ProfilerActivity.CUDA.";

Finding steps(const TraceRequest& r) {
  const Trace& t = r.first();
  auto all = asked_steps(t, r);
  if (all.empty())
    return nothing(r.step >= 0 ? fmt::format("The trace has no ProfilerStep#{}.", r.step)
                               : "The trace holds no events.");
  const GpuTimeline work(t);
  HostWork host = *host_work(t);
  Finding f;
  Table table{"steps",
              {{"step", "STEP", Unit::text},
               {"total_ns", "TIME", Unit::nanoseconds},
               {"cpu_ns", "ON THE CPU", Unit::nanoseconds},
               {"data_ns", "DATA", Unit::nanoseconds},
               {"forward_ns", "FORWARD", Unit::nanoseconds},
               {"backward_ns", "BACKWARD", Unit::nanoseconds},
               {"optimizer_ns", "OPTIMIZER", Unit::nanoseconds},
               {"sync_ns", "WAITING", Unit::nanoseconds},
               {"other_ns", "NO OP", Unit::nanoseconds},
               {"gpu_busy_ns", "GPU BUSY", Unit::nanoseconds},
               {"gpu_share", "OF TIME", Unit::share}},
              {}};
  int64_t sum = 0, cpu_sum = 0, busy_sum = 0, shortest = INT64_MAX, longest = 0;
  std::array<std::pair<const char*, int64_t>, 6> phases{{{"waiting for the GPU", 0},
                                                         {"loading data", 0},
                                                         {"in the optimizer", 0},
                                                         {"in the backward pass", 0},
                                                         {"in the forward pass", 0},
                                                         {"in no op", 0}}};
  for (const TraceStep& s : all) {
    // A moment of the CPU counts once: waiting before data before optimizer before backward before forward.
    Intervals rest{{s.start, s.end}};
    std::array<int64_t, 6> parts{};
    size_t next = 0;
    for (const Intervals* what : {&host.sync, &host.data, &host.optimizer, &host.backward, &host.ops}) {
      parts[next++] = length(intersection(rest, *what));
      rest = difference(rest, *what);
    }
    parts[next] = length(rest);
    for (size_t i = 0; i < parts.size(); ++i) phases[i].second += parts[i];
    const StepWork step = step_work(work, s);
    Intervals busy;
    for (const GpuWork& w : step.work) busy.emplace_back(std::max(w.start, step.begin), w.end);
    const int64_t gpu = length(merged(std::move(busy))), total = step.length();
    sum += total;
    cpu_sum += s.end - s.start;
    busy_sum += gpu;
    shortest = std::min(shortest, total);
    longest = std::max(longest, total);
    if (table.rows.size() < r.top)
      table.add({step_text(s), total, s.end - s.start, parts[1], parts[4], parts[3], parts[2], parts[0], parts[5], gpu,
                 share(gpu, total)},
                {-1, s.start, s.start + total});
  }
  auto top =
      std::max_element(phases.begin(), phases.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  auto count = static_cast<int64_t>(all.size());
  f.facts = {{"step_count", "steps", Unit::count, count},
             {"mean_ns", "mean", Unit::nanoseconds, sum / count},
             {"min_ns", "shortest", Unit::nanoseconds, shortest},
             {"max_ns", "longest", Unit::nanoseconds, longest},
             {"cpu_ns", "on the CPU, mean", Unit::nanoseconds, cpu_sum / count}};
  if (!work.empty()) f.facts.push_back({"gpu_share", "GPU busy", Unit::share, share(busy_sum, sum)});
  const std::string what = all[0].number < 0 ? "The whole trace (it marks no steps)"
                           : count == 1      ? fmt::format("Step {}", all[0].number)
                                             : "A step";
  f.sentence = fmt::format("{} takes {}{}", what, ns(sum / count),
                           count == 1 ? "" : fmt::format(" on average ({} to {})", ns(shortest), ns(longest)));
  const std::string most = fmt::format("{} of {} {}", share_text(share(top->second, cpu_sum)),
                                       cpu_sum < sum ? "its time" : "it", top->first);
  // Where the CPU runs ahead of the GPU, its own time says little about the step's.
  if (cpu_sum < sum - sum / 20)
    f.sentence += fmt::format(". The CPU is done with it after {} and spends {}", ns(cpu_sum / count), most);
  else
    f.sentence += fmt::format(". The CPU spends {}", most);
  f.sentence +=
      work.empty() ? "." : fmt::format("; the GPU is busy for {} of the step.", share_text(share(busy_sum, sum)));
  f.tables.push_back(std::move(table));
  return f;
}

Finding idle(const TraceRequest& r) {
  const Trace& t = r.first();
  const GpuTimeline work(t);
  if (work.empty()) return nothing(kNoGpu);
  if (r.step >= 0 && asked_steps(t, r).empty())
    return nothing(fmt::format("The trace has no ProfilerStep#{}.", r.step));
  const IdleTimes times(t);
  Idle sum;
  using R = GapReason;
  Table table{"steps",
              {{"step", "STEP", Unit::text},
               {"idle_ns", "IDLE", Unit::nanoseconds},
               {"host_ns", "HOST-BOUND", Unit::nanoseconds},
               {"data_ns", "DATA", Unit::nanoseconds},
               {"sync_ns", "SYNC", Unit::nanoseconds},
               {"communication_ns", "COMMUNICATION", Unit::nanoseconds},
               {"queued_ns", "QUEUED", Unit::nanoseconds},
               {"gaps", "GAPS", Unit::count},
               {"longest_ns", "LONGEST", Unit::nanoseconds}},
              {}};
  for (const TraceStep& s : asked_steps(t, r)) {
    const Idle i = times.of(step_work(work, s));
    sum += i;
    if (table.rows.size() < r.top)
      table.add({step_text(s), i.idle, i.time(R::host) + i.time(R::no_op), i.time(R::data), i.time(R::sync),
                 i.time(R::communication), i.queued_time(), i.gaps, i.longest},
                {-1, i.longest_at, i.longest_at + i.longest});
  }
  Finding f;
  f.facts = {{"idle_ns", "idle", Unit::nanoseconds, sum.idle},
             {"busy_ns", "busy", Unit::nanoseconds, sum.busy},
             {"idle_share", "idle share", Unit::share, share(sum.idle, sum.idle + sum.busy)},
             {"host_ns", "host-bound", Unit::nanoseconds, sum.time(R::host) + sum.time(R::no_op)},
             {"data_ns", "data loading", Unit::nanoseconds, sum.time(R::data)},
             {"sync_ns", "synchronisation", Unit::nanoseconds, sum.time(R::sync)},
             {"communication_ns", "communication", Unit::nanoseconds, sum.time(R::communication)},
             {"queued_ns", "launched work waits", Unit::nanoseconds, sum.queued_time()},
             {"longest_ns", "longest gap", Unit::nanoseconds, sum.longest}};
  Table reasons{"reasons",
                {{"reason", "REASON", Unit::text},
                 {"idle_ns", "IDLE", Unit::nanoseconds},
                 {"share", "SHARE", Unit::share},
                 {"longest_ns", "LONGEST", Unit::nanoseconds},
                 {"because", "THE GPU IS IDLE BECAUSE", Unit::text}},
                {}};
  std::array<size_t, kGapReasons> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sum.by[a].time > sum.by[b].time; });
  for (size_t i : order)
    if (const Idle::Sum& of = sum.by[i]; of.time > 0)
      reasons.add({std::string(name(R(i))), of.time, share(of.time, sum.idle), of.longest.to - of.longest.from,
                   std::string(because(R(i)))},
                  of.longest);
  f.tables.push_back(std::move(reasons));
  f.sentence = fmt::format("The GPU was idle for {} of the steps ({}), {} of it because {}.",
                           share_text(share(sum.idle, sum.idle + sum.busy)), ns(sum.idle),
                           share_text(share(sum.by[order[0]].time, sum.idle)), because(R(order[0])));
  f.tables.push_back(std::move(table));
  return f;
}

Finding overlap(const TraceRequest& r) {
  Finding f;
  Table table{"ranks",
              {{"rank", "RANK", Unit::text},
               {"communication_ns", "COMMUNICATION", Unit::nanoseconds},
               {"compute_ns", "COMPUTE", Unit::nanoseconds},
               {"overlap_ns", "BOTH", Unit::nanoseconds},
               {"exposed_ns", "EXPOSED", Unit::nanoseconds},
               {"overlap_share", "HIDDEN", Unit::share}},
              {}};
  int64_t total = 0, hidden = 0;
  for (size_t i = 0; i < r.traces.size(); ++i) {
    const Trace& t = *r.traces[i];
    const GpuTimeline work(t);
    Intervals communication, compute;
    for (const TraceStep& s : asked_steps(t, r))
      for (const GpuWork& w : of_step(t, work, s))
        if (!w.copy)
          (w.communication ? communication : compute).emplace_back(w.start, w.end);  // a copy computes nothing
    communication = merged(std::move(communication));
    compute = merged(std::move(compute));
    int64_t both = length(intersection(communication, compute)), all = length(communication);
    total += all;
    hidden += both;
    table.rows.push_back({t.rank() >= 0 ? std::to_string(t.rank()) : std::to_string(i), all, length(compute), both,
                          all - both, share(both, all)});
  }
  if (total == 0) return nothing("The trace holds no communication between ranks (no NCCL or RCCL kernels).");
  f.facts = {{"communication_ns", "communication", Unit::nanoseconds, total},
             {"exposed_ns", "exposed", Unit::nanoseconds, total - hidden},
             {"overlap_share", "hidden behind compute", Unit::share, share(hidden, total)}};
  f.sentence = fmt::format("{} of {} of communication runs behind compute; {} stand alone and lengthen the step.",
                           share_text(share(hidden, total)), ns(total), ns(total - hidden));
  f.tables.push_back(std::move(table));
  return f;
}

int64_t percentile(std::vector<int64_t>& sorted, double p) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>(p * static_cast<double>(sorted.size() - 1))];
}

Finding launch(const TraceRequest& r) {
  const Trace& t = r.first();
  const GpuTimeline work(t);
  if (work.empty()) return nothing(kNoGpu);
  if (r.step >= 0 && asked_steps(t, r).empty())
    return nothing(fmt::format("The trace has no ProfilerStep#{}.", r.step));
  std::vector<int64_t> delays, calls;
  std::vector<std::pair<int64_t, int>> changes;
  int64_t small = 0, linked = 0;
  for (const TraceStep& s : asked_steps(t, r))
    for (const GpuWork& w : of_step(t, work, s)) {
      if (w.launch == kNone || t.kind(w.launch) != EventKind::runtime)
        continue;  // an op in its call's place says nothing of the queue
      ++linked;
      delays.push_back(std::max<int64_t>(0, w.start - t.start(w.launch)));
      calls.push_back(t.duration(w.launch));
      small += w.end - w.start < t.duration(w.launch);
      changes.emplace_back(t.start(w.launch), 1);
      changes.emplace_back(w.start, -1);
    }
  if (linked == 0) return nothing("No kernel of the trace is linked with the call that launched it.");
  std::sort(delays.begin(), delays.end());
  std::sort(calls.begin(), calls.end());
  std::sort(changes.begin(), changes.end());
  int64_t queue = 0, deepest = 0, empty_ns = 0;
  double weighted = 0;  // times of a damaged file may be any apart
  for (size_t i = 0; i < changes.size(); ++i) {
    queue += changes[i].second;
    deepest = std::max(deepest, queue);
    if (i + 1 < changes.size()) {
      int64_t d = changes[i + 1].first - changes[i].first;
      weighted += static_cast<double>(queue) * static_cast<double>(d);
      if (queue <= 0) empty_ns += d;
    }
  }
  int64_t span = std::max<int64_t>(1, changes.back().first - changes.front().first);
  Finding f;
  f.facts = {{"launches", "launches", Unit::count, linked},
             {"median_delay_ns", "delay, median", Unit::nanoseconds, percentile(delays, 0.5)},
             {"p99_delay_ns", "delay, 99 %", Unit::nanoseconds, percentile(delays, 0.99)},
             {"median_call_ns", "call, median", Unit::nanoseconds, percentile(calls, 0.5)},
             {"queue_mean", "queue, mean", Unit::number, weighted / static_cast<double>(span)},
             {"queue_max", "queue, longest", Unit::count, deepest},
             {"queue_empty_share", "queue empty", Unit::share, share(empty_ns, span)},
             {"shorter_than_call", "kernels shorter than their call", Unit::count, small}};
  f.sentence = fmt::format(
      "A kernel starts {} after its call (median), and the queue is empty for {} of the time; {} of {} kernels run "
      "shorter than the call that launches them{}.",
      ns(percentile(delays, 0.5)), share_text(share(empty_ns, span)), count_text(small), count_text(linked),
      share(small, linked) > 0.5 ? ": fusing them (torch.compile) or capturing them in a CUDA graph would help" : "");
  Table table{"delays",
              {{"percentile", "SHARE OF LAUNCHES", Unit::share},
               {"delay_ns", "START WITHIN", Unit::nanoseconds},
               {"call_ns", "CALL TAKES", Unit::nanoseconds}},
              {}};
  for (double p : {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0})
    table.rows.push_back({p, percentile(delays, p), percentile(calls, p)});
  f.tables.push_back(std::move(table));
  return f;
}

Finding memory(const TraceRequest& r) {
  const Trace& t = r.first();
  if (t.memory().empty()) return nothing("The trace holds no memory events: record it with profile_memory=True.");
  struct Device {
    int64_t events = 0, peak = 0, peak_at = 0, first = -1, last = 0, reserved = 0, allocated = 0, freed = 0;
  };
  std::map<std::pair<int, int>, Device> devices;
  for (const traces::MemoryEvent& m : t.memory()) {
    Device& d = devices[{m.device_type, m.device}];
    ++d.events;
    (m.bytes >= 0 ? d.allocated : d.freed) += std::abs(m.bytes);
    d.reserved = std::max(d.reserved, m.reserved);
    int64_t now = m.allocated >= 0 ? m.allocated : d.last + m.bytes;
    if (d.events == 1) d.first = now;
    d.last = now;
    if (now > d.peak) d.peak = now, d.peak_at = m.time;
  }
  Finding f;
  Table table{"devices",
              {{"device", "DEVICE", Unit::text},
               {"events", "EVENTS", Unit::count},
               {"peak_bytes", "PEAK", Unit::bytes},
               {"peak_after_ns", "AFTER", Unit::nanoseconds},
               {"first_bytes", "AT THE START", Unit::bytes},
               {"last_bytes", "AT THE END", Unit::bytes},
               {"reserved_bytes", "RESERVED", Unit::bytes},
               {"allocated_bytes", "TAKEN IN ALL", Unit::bytes}},
              {}};
  auto label = [](const std::pair<int, int>& d) {
    return d.first == 0 ? std::string("CPU") : fmt::format("GPU {}", d.second);
  };
  auto top = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.first != 0, a.second.peak) < std::pair(b.first.first != 0, b.second.peak);
  });
  for (const auto& [id, d] : devices)
    table.rows.push_back(
        {label(id), d.events, d.peak, d.peak_at - t.begin(), d.first, d.last, d.reserved, d.allocated});
  const Device& d = top->second;
  f.facts = {{"peak_bytes", "peak", Unit::bytes, d.peak}, {"growth_bytes", "growth", Unit::bytes, d.last - d.first}};
  f.sentence =
      fmt::format("{} holds {} at its peak, {} after the trace begins{}; from start to end it {} by {}.",
                  label(top->first), bytes_text(static_cast<double>(d.peak)), ns(d.peak_at - t.begin()),
                  d.reserved > 0 ? fmt::format(", of {} reserved", bytes_text(static_cast<double>(d.reserved))) : "",
                  d.last >= d.first ? "grows" : "shrinks", bytes_text(static_cast<double>(std::abs(d.last - d.first))));
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_trace_time =
    register_trace_analysis({"steps", "the time of each step by phase", 1, 1, steps}) &&
    register_trace_analysis({"idle", "gaps of the GPU by reason", 1, 1, idle}) &&
    register_trace_analysis({"overlap", "communication against computation, by rank", 1, 100000, overlap}) &&
    register_trace_analysis({"launch", "delays of launches and the length of the queue", 1, 1, launch}) &&
    register_trace_analysis({"memory", "memory over time, from the events of profile_memory", 1, 1, memory});

}  // namespace
}  // namespace tenon::tracing
