// trace why: one sentence on what bounds a step, and what to try.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/critical_path.h"
#include "tracing/analyses/idle.h"
#include "tracing/analyses/why.h"

namespace tenon::tracing {
namespace {

using traces::EventKind;
using traces::kNone;
using traces::Trace;

/// Times by name of event, and which is the largest.
class Largest {
 public:
  explicit Largest(const Trace& t) : t_(t), by_name_(t.names()) {}
  void add(traces::EventId e, int64_t time) {
    by_name_[t_.columns().name[e]] += time;
    if (sight_.event < 0 || time > longest_) sight_ = Sight::of(e), longest_ = time;
  }
  /// The event with the longest time of all.
  const Sight& sight() const { return sight_; }
  int64_t time() const { return by_name_.empty() ? 0 : *std::max_element(by_name_.begin(), by_name_.end()); }
  std::string name() const {
    std::string text(by_name_.empty() ? std::string_view()
                                      : t_.text(static_cast<uint32_t>(
                                            std::max_element(by_name_.begin(), by_name_.end()) - by_name_.begin())));
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
  }

 private:
  const Trace& t_;
  std::vector<int64_t> by_name_;
  Sight sight_;
  int64_t longest_ = 0;
};

/// Sums over steps as times of one.
struct PerStep {
  explicit PerStep(const std::vector<TraceStep>& steps)
      : count(static_cast<int64_t>(steps.size())), whole(steps[0].number < 0) {}
  std::string operator()(int64_t sum) const {
    return nanoseconds_text(static_cast<double>(sum) / static_cast<double>(count));
  }
  std::string text(int64_t sum) const { return (*this)(sum) + (whole ? "" : " a step"); }
  int64_t count;
  bool whole;  ///< the trace marks no steps
};

/// What bounds a step is what would shorten it most if it were free. But kernels that run are what a step is for: they
/// bound it only where nothing that could be had for nothing takes a quarter of it. On a machine without a GPU the same
/// holds for ops.
void sort_causes(std::vector<Cause>& causes, int64_t total) {
  int64_t avoidable = 0;
  for (const Cause& c : causes)
    if (c.name != std::string("compute")) avoidable = std::max(avoidable, c.time);
  const bool outdone = share(avoidable, total) >= 0.25;
  std::stable_sort(causes.begin(), causes.end(), [&](const Cause& a, const Cause& b) {
    auto rank = [&](const Cause& c) { return outdone && c.name == std::string("compute") ? avoidable - 1 : c.time; };
    return rank(a) > rank(b);
  });
}

/// A trace of the CPU alone: data, ops, and what lies between them.
StepBounds why_on_cpu(const Trace& t, const std::vector<TraceStep>& steps) {
  const auto work = host_work(t);
  const HostWork& host = *work;
  const GpuTimeline none(t);
  const CriticalPaths paths(t, none);
  const EventNames names(t);
  Largest ops(t), others(t);
  Largest gaps(t);
  Sight most_data, most_talking;
  int64_t total = 0, data = 0, computing = 0, communicating = 0;
  for (const TraceStep& s : steps) {
    total += s.end - s.start;
    const Intervals loading = clipped(host.data, s.start, s.end);
    const Intervals idle = difference(difference(merged({{s.start, s.end}}), loading), host.ops),
                    talking = intersection(idle, host.communication);
    keep_longest(most_data, loading);
    keep_longest(most_talking, talking);
    data += length(loading);
    communicating += length(talking);
    computing += s.end - s.start - length(loading) - length(idle);
    for (const PathPiece& p : paths.of(step_work(none, s)))
      if (paths.is_no_op(p)) {
        if (p.after != kNone) gaps.add(p.after, p.to - p.from);
      } else if (p.event != kNone && !names.step(p.event) && !names.data_loading(p.event) &&
                 !names.host_collective(p.event)) {
        (t.kind(p.event) == EventKind::cpu_op ? ops : others).add(p.event, p.to - p.from);
      }
  }
  const PerStep per_step(steps);
  auto within = [&](const Largest& l, int64_t of, const char* where = "in") {
    return l.time() * 4 > of ? fmt::format(", {} of it {} {}", per_step(l.time()), where, l.name()) : std::string();
  };
  const int64_t between = total - data - computing - communicating;
  const bool own = recorded_by_tenon(t);
  StepBounds b{{{"data", "data-bound", data, fmt::format("the CPU loads data for {}", per_step.text(data)), "",
                 own ? "use cheaper transforms, or samples that are smaller on the disk"
                     : "use more DataLoader workers, prefetch, or cheaper transforms",
                 most_data},
                {"host", "host-bound", between, fmt::format("no op runs for {}", per_step.text(between)),
                 within(others, between).empty() ? within(gaps, between, "after") : within(others, between),
                 own ? "use a larger batch: calls of small ops take longer than their work"
                     : "look at that Python code (with_stack=True shows it by function), or use a larger batch or "
                       "torch.compile where it is many small pieces",
                 others.sight().event >= 0 ? others.sight() : gaps.sight()},
                {"communication", "bound by communication", communicating,
                 fmt::format("collectives take {} in which no op runs", per_step.text(communicating)), "",
                 "overlap them (larger buckets), accumulate gradients, or send lower precision", most_talking},
                {"compute", "compute-bound", computing, fmt::format("ops on the CPU take {}", per_step.text(computing)),
                 within(ops, computing),
                 own ? "look at the largest ops; more threads, bfloat16 (amp) or a smaller model make them faster"
                     : "look at the largest ops; more threads, bfloat16 or torch.compile make them faster",
                 ops.sight()}},
               total,
               per_step.count,
               per_step.whole,
               own,
               {}};
  return b;
}

/// Work is launched and the GPU stands still all the same.
struct QueuedCause {
  GapReason reason;
  const char *name, *bound, *what, *try_this;
};
const QueuedCause kQueuedCauses[] = {
    {GapReason::pause, "pauses", "bound by the pauses between kernels",
     "between kernels that are queued, each shorter than 10 us",
     "capture the step in a CUDA graph or fuse the small kernels (torch.compile)"},
    {GapReason::stream, "streams", "bound by waits between streams", "while launched work waits for another stream",
     "record with enable_cuda_sync_events=True to see for which event; wait for it later, or keep the work on one "
     "stream"},
    {GapReason::allocation, "allocation", "held up by the driver",
     "while a call takes or frees memory of the device or loads code, and launched work waits",
     "let the allocator keep its memory (no empty_cache() within the step, expandable_segments:True) and warm up "
     "before what is measured"},
    {GapReason::profiler, "profiler", "held up by the profiler", "while the profiler writes down what it recorded",
     "record fewer steps or without stacks and shapes; without the profiler this time is not lost"},
    {GapReason::unknown, "queued", "stalled with work in its queue",
     "while launched work waits, and nothing in the trace says for what",
     "look for other processes or contexts on the device (nvidia-smi, MPS, time slicing), power or clock limits, and "
     "copies of other streams; record with enable_cuda_sync_events=True to see waits for events"},
};

StepBounds why_on_gpu(const Trace& t, const GpuTimeline& gpu, const std::vector<TraceStep>& steps) {
  const IdleTimes times(t);
  using R = GapReason;
  Idle idle;
  Largest by_kernel(t);
  Sight most_bare, most_copying;
  int64_t total = 0, exposed_copies = 0, exposed_communication = 0, compute = 0;
  size_t kernels = 0;
  for (const TraceStep& s : steps) {
    const StepWork step = step_work(gpu, s);
    kernels += step.work.size();
    total += step.length();
    idle += times.of(step);
    Intervals kernel, copy, communication;
    for (const GpuWork& w : step.work) {
      (w.communication ? communication : w.copy ? copy : kernel).emplace_back(std::max(w.start, step.begin), w.end);
      if (!w.communication && !w.copy) by_kernel.add(w.event, w.end - w.start);
    }
    kernel = merged(std::move(kernel));
    communication = merged(std::move(communication));
    compute += length(kernel);
    Intervals bare_communication = difference(communication, kernel);
    exposed_communication += length(bare_communication);
    const Intervals bare_copies = difference(difference(merged(std::move(copy)), kernel), bare_communication);
    exposed_copies += length(bare_copies);
    keep_longest(most_bare, bare_communication);
    keep_longest(most_copying, bare_copies);
  }
  const PerStep per_step(steps);
  const double calls = static_cast<double>(kernels) / static_cast<double>(per_step.count);
  const int64_t by_host = idle.time(R::host) + idle.time(R::no_op);
  const bool in_python = idle.time(R::no_op) * 10 > by_host * 6;
  const Sight& most_host = idle.sight(in_python ? R::no_op : R::host);
  std::vector<Cause> causes = {
      {"data", "data-bound", idle.time(R::data),
       fmt::format("the GPU waits {} while the CPU loads data", per_step.text(idle.time(R::data))), "",
       "use more DataLoader workers, pin_memory with prefetching, or cheaper transforms", idle.sight(R::data)},
      {"host", "host-bound", by_host,
       fmt::format("the GPU waits {} for the CPU to launch {:.0f} kernels", per_step.text(by_host), calls),
       in_python ? fmt::format(", {} of it while no op runs", per_step(idle.time(R::no_op))) : "",
       in_python ? "look at the Python code between the ops (the critical path; with_stack=True shows it by "
                   "function); torch.compile or CUDA graphs where it is many small pieces"
                 : "use a larger batch, torch.compile, CUDA graphs, or fewer small ops",
       most_host},
      {"sync", "bound by synchronisation", idle.time(R::sync),
       fmt::format("the GPU stands still for {} after the CPU has waited for it", per_step.text(idle.time(R::sync))),
       fmt::format(", {:.4g} times", static_cast<double>(idle.waits) / static_cast<double>(per_step.count)),
       "avoid .item(), .cpu(), print() and boolean tests of tensors inside the step; read the loss every so many "
       "steps",
       idle.sight(R::sync)},
      {"communication", "bound by communication", exposed_communication + idle.time(R::communication),
       fmt::format("{} of communication has no computation beside it",
                   per_step.text(exposed_communication + idle.time(R::communication))),
       "",
       "overlap it (larger buckets, gradient_as_bucket_view, FSDP prefetch), accumulate gradients, or send lower "
       "precision",
       most_bare.to > most_bare.from ? most_bare : idle.sight(R::communication)},
      {"copy", "bound by memory copies", exposed_copies,
       fmt::format("copies take {} with no kernel beside them", per_step.text(exposed_copies)), "",
       "keep data on the GPU, pin host memory and copy with non_blocking=True on a stream of their own", most_copying},
      {"compute", "compute-bound", compute, fmt::format("kernels keep the GPU busy for {}", per_step.text(compute)),
       by_kernel.time() > 0 ? fmt::format(", {} of it in {}", per_step(by_kernel.time()), by_kernel.name()) : "",
       "look at the largest kernels; lower precision, fused or better kernels are what is left", by_kernel.sight()}};
  for (const QueuedCause& q : kQueuedCauses)
    if (const int64_t time = idle.time(q.reason); time > 0)
      causes.push_back({q.name, q.bound, time,
                        fmt::format("the GPU stands still for {} {}", per_step.text(time), q.what), "", q.try_this,
                        idle.sight(q.reason)});
  return {std::move(causes), total, per_step.count, per_step.whole, false, share(idle.busy, total)};
}

Finding why(const TraceRequest& r) {
  const Trace& t = r.first();
  const auto steps = asked_steps(t, r);
  if (steps.empty())
    return nothing(r.step >= 0 ? fmt::format("The trace has no ProfilerStep#{}.", r.step)
                               : "The trace holds no events.");
  const StepBounds b = bounds_of(t, steps);
  const Cause& first = b.causes[0];
  Finding f;
  f.sentence = b.sentence();
  f.facts = {{"cause", "cause", Unit::text, std::string(first.name)},
             {"step_ns", "a step", Unit::nanoseconds, b.total / b.steps},
             {"share", "share", Unit::share, share(first.time, b.total)},
             {"step_count", "steps", Unit::count, b.steps}};
  if (b.gpu_busy) f.facts.push_back({"gpu_busy_share", "GPU busy", Unit::share, *b.gpu_busy});
  Table table{"causes",
              {{"cause", "CAUSE", Unit::text},
               {"per_step_ns", "A STEP", Unit::nanoseconds},
               {"share", "SHARE", Unit::share},
               {"what", "WHAT", Unit::text},
               {"try", "TRY", Unit::text, true}},
              {}};
  for (const Cause& c : b.causes)
    table.add({std::string(c.bound), c.time / b.steps, share(c.time, b.total), c.what + c.within, c.try_this}, c.sight);
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_trace_why =
    register_trace_analysis({"why", "in one sentence: what bounds a step, and what to try", 1, 1, why});

}  // namespace

std::string StepBounds::sentence() const {
  const Cause& first = causes[0];
  // What is computed may well take longer: see sort_causes().
  std::string beside;
  for (const Cause& c : causes)
    if (c.name == std::string("compute") && c.time > first.time)
      beside = fmt::format(" (to compute, {}, is what a step is for)", share_text(share(c.time, total)));
  return fmt::format(
      "{} is {}: {}, {} of {}{}{}; try this: {}.", whole && !own ? "The trace (it marks no steps)" : "The step",
      first.bound, first.what, share_text(share(first.time, total)),
      nanoseconds_text(static_cast<double>(total) / static_cast<double>(steps)), first.within, beside, first.try_this);
}

StepBounds bounds_of(const Trace& t, const std::vector<TraceStep>& steps) {
  const GpuTimeline gpu(t);
  StepBounds b = gpu.empty() ? why_on_cpu(t, steps) : why_on_gpu(t, gpu, steps);
  sort_causes(b.causes, b.total);
  return b;
}

}  // namespace tenon::tracing
