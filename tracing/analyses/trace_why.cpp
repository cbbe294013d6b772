// trace why: one sentence on what bounds a step, and what to try.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/activity.h"

namespace tenon::tracing {
namespace {

using trace::Trace;

struct Cause {
  const char* name;   ///< for programs
  const char* bound;  ///< "data-bound"
  int64_t time;       ///< of the steps that would go if this were free
  std::string what, try_this;
};

double share(int64_t part, int64_t whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

Finding why(const TraceRequest& r) {
  const Trace& t = r.first();
  auto steps = asked_steps(t, r);
  Finding f;
  if (steps.empty()) {
    f.ok = false;
    f.sentence = r.step >= 0 ? fmt::format("The trace has no ProfilerStep#{}.", r.step) : "The trace holds no events.";
    return f;
  }
  auto work = gpu_work(t);
  HostWork host = host_work(t);
  Idle idle;
  int64_t total = 0, exposed_copies = 0, exposed_communication = 0, compute = 0, data = 0, sync = 0;
  size_t kernels = 0;
  for (const TraceStep& s : steps) {
    const StepWork step = step_work(work, s);
    const auto& mine = step.work;
    kernels += mine.size();
    total += step.length();
    Idle i = idle_of(t, step, host);
    idle.host += i.host, idle.data += i.data, idle.sync += i.sync, idle.communication += i.communication, idle.other += i.other, idle.idle += i.idle, idle.busy += i.busy;
    Intervals kernel, copy, communication;
    for (const GpuWork& w : mine) (w.communication ? communication : w.copy ? copy : kernel).emplace_back(w.start, w.end);
    kernel = merged(std::move(kernel));
    communication = merged(std::move(communication));
    compute += length(kernel);
    Intervals bare_communication = difference(communication, kernel);
    exposed_communication += length(bare_communication);
    exposed_copies += length(difference(difference(merged(std::move(copy)), kernel), bare_communication));
    data += length(clipped(host.data, s.start, s.end));
    sync += length(clipped(host.sync, s.start, s.end));
  }
  auto count = static_cast<int64_t>(steps.size());
  auto per_step = [&](int64_t v) { return nanoseconds_text(static_cast<double>(v) / static_cast<double>(count)); };
  std::vector<Cause> causes;
  if (work.empty()) {
    causes = {{"data", "data-bound", data, fmt::format("the CPU loads data for {} of each step", per_step(data)), "use more DataLoader workers, prefetch, or cheaper transforms"},
              {"compute", "compute-bound", total - data, fmt::format("ops on the CPU take {} of each step", per_step(total - data)), "look at `trace ops` for the largest, and use a larger batch or more threads"}};
  } else {
    const double calls = static_cast<double>(kernels) / static_cast<double>(count);
    causes = {{"data", "data-bound", idle.data, fmt::format("the GPU waits {} a step while the CPU loads data", per_step(idle.data)), "use more DataLoader workers, pin_memory with prefetching, or cheaper transforms"},
              {"host", "host-bound", idle.host, fmt::format("the GPU waits {} a step for the CPU to launch {:.0f} kernels", per_step(idle.host), calls), "use a larger batch, torch.compile, CUDA graphs, or fewer small ops"},
              {"sync", "bound by synchronisation", idle.sync, fmt::format("the GPU stands still for {} a step after the CPU has waited for it", per_step(idle.sync)),
               "avoid .item(), .cpu(), print() and boolean tests of tensors inside the step; read the loss every so many steps"},
              {"communication", "bound by communication", exposed_communication + idle.communication,
               fmt::format("{} a step of communication has no computation beside it", per_step(exposed_communication + idle.communication)),
               "overlap it (larger buckets, gradient_as_bucket_view, FSDP prefetch), accumulate gradients, or send lower precision"},
              {"copy", "bound by memory copies", exposed_copies, fmt::format("copies take {} a step with no kernel beside them", per_step(exposed_copies)),
               "keep data on the GPU, pin host memory and copy with non_blocking=True on a stream of their own"},
              {"compute", "compute-bound", compute, fmt::format("kernels keep the GPU busy for {} of each step's {}", per_step(compute), per_step(total)),
               "look at `trace kernels` for the largest; lower precision, fused or better kernels are what is left"}};
    // Kernels bound a step unless something that could be had for nothing takes a quarter of it.
    int64_t avoidable = 0;
    for (const Cause& c : causes)
      if (c.name != std::string("compute")) avoidable = std::max(avoidable, c.time);
    if (share(avoidable, total) >= 0.25)
      for (Cause& c : causes)
        if (c.name == std::string("compute")) c.time = std::min(c.time, avoidable - 1);
  }
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.time > b.time; });
  const Cause& first = causes[0];
  f.sentence = fmt::format("The step is {}: {} ({} of {}); try this: {}.", first.bound, first.what, share_text(share(first.time, total)), per_step(total), first.try_this);
  f.facts = {{"cause", "cause", Unit::text, std::string(first.name)}, {"step_ns", "a step", Unit::nanoseconds, total / count}, {"share", "share", Unit::share, share(first.time, total)}, {"steps", "steps", Unit::count, count},
             {"gpu_busy_share", "GPU busy", Unit::share, share(idle.busy, total)}};
  Table table{"causes", {{"cause", "CAUSE", Unit::text}, {"per_step_ns", "A STEP", Unit::nanoseconds}, {"share", "SHARE", Unit::share}, {"what", "WHAT", Unit::text}}, {}};
  for (const Cause& c : causes) table.rows.push_back({std::string(c.bound), c.time / count, share(c.time, total), c.what});
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered = register_trace_analysis({"why", "in one sentence: what bounds a step, and what to try", 1, 1, why});

}  // namespace
}  // namespace tenon::tracing
