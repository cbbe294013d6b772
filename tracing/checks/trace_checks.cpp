#include "tracing/checks/trace_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace tenon::tracing {
namespace {

using traces::EventId;
using traces::EventKind;
using traces::Trace;

Registry<FileCheck<CheckedTrace>>& trace_check_registry() {
  static auto& all = *new Registry<FileCheck<CheckedTrace>>("check of a trace");
  return all;
}

bool in_a_step(const CheckedTrace& c, int64_t time) {
  return std::any_of(c.steps.begin(), c.steps.end(),
                     [time](const TraceStep& s) { return s.start <= time && time < s.end; });
}

/// Events of one name within the steps.
struct Seen {
  int64_t count = 0, time = 0;
  EventId longest = traces::kNone;
  void add(const Trace& t, EventId e) {
    ++count;
    time += t.duration(e);
    if (longest == traces::kNone || t.duration(e) > t.duration(longest)) longest = e;
  }
};

/// Calls f(event) for those in the steps that `wanted` takes by kind and name; each name of the trace is asked once.
template <class Wanted, class F>
void each_within(const CheckedTrace& c, const Wanted& wanted, const F& f) {
  const Trace& t = *c.trace;
  enum class Is : int8_t { unknown, yes, no };
  std::vector<std::array<Is, traces::kKinds>> is(t.names());
  for (EventId e = 0; e < t.size(); ++e) {
    const uint32_t name = t.columns().name[e];
    Is& known = is[name][static_cast<size_t>(t.kind(e))];
    if (known == Is::unknown) known = wanted(t.kind(e), t.text(name)) ? Is::yes : Is::no;
    if (known == Is::yes && in_a_step(c, t.start(e))) f(e);
  }
}
/// ... added up by name.
template <class Wanted>
std::map<std::string, Seen> seen_within(const CheckedTrace& c, const Wanted& wanted) {
  std::map<std::string, Seen> all;
  each_within(c, wanted, [&](EventId e) { all[std::string(c.trace->event_name(e))].add(*c.trace, e); });
  return all;
}

std::string a_step(const CheckedTrace& c, const Seen& s) {
  const auto steps = static_cast<int64_t>(std::max<size_t>(1, c.steps.size()));
  return fmt::format("{} in {} {}, {} each step", count_text(s.count), steps, steps == 1 ? "step" : "steps",
                     nanoseconds_text(static_cast<double>(s.time) / static_cast<double>(steps)));
}

/// The op that an event of the runtime lies in, outermost of those of PyTorch: aten::item, not what it is made of.
std::string caller_of(const Trace& t, EventId e) {
  std::string outermost;
  for (EventId at = t.parent(e); at != traces::kNone; at = t.parent(at))
    if (t.kind(at) == EventKind::cpu_op) outermost = t.event_name(at);
  return outermost;
}

/// What the overview of the steps says to try: a figure beyond its threshold each.
std::vector<Complaint> advice(const CheckedTrace& c) {
  std::vector<Complaint> all;
  if (c.overview)
    for (const Advice& a : c.overview->advice) all.push_back({a.about, a.seen, a.try_this, {}, -1, a.sight});
  return all;
}

/// The profiler names a copy by what it is between: "Memcpy HtoD (Pageable -> Device)".
std::vector<Complaint> pageable_copies(const CheckedTrace& c) {
  constexpr double kShare = 0.002;
  std::vector<Complaint> all;
  const auto seen = seen_within(c, [](EventKind kind, std::string_view name) {
    return kind == EventKind::memcpy && name.find("Pageable") != name.npos;
  });
  for (const auto& [name, s] : seen) {
    if (share(s.time, c.length) < kShare) continue;
    const bool to_device = name.find("HtoD") != std::string::npos;
    all.push_back({name,
                   a_step(c, s) + ": memory that is not pinned is copied twice, and the CPU waits for it",
                   to_device ? "DataLoader(pin_memory=True), and .to(device, non_blocking=True)"
                             : "keep results on the device (loss.detach()), and copy them when the step is over",
                   {},
                   -1,
                   Sight::of(s.longest)});
  }
  return all;
}

std::vector<Complaint> synchronizing_calls(const CheckedTrace& c) {
  constexpr double kShare = 0.01;
  static constexpr std::string_view kWaits[] = {"cudaStreamSynchronize", "cudaDeviceSynchronize",
                                                "cudaEventSynchronize",  "cudaMemcpy",
                                                "hipStreamSynchronize",  "hipDeviceSynchronize"};
  const Trace& t = *c.trace;
  std::map<std::string, Seen> by_caller;
  each_within(
      c,
      [](EventKind kind, std::string_view name) {
        return kind == EventKind::runtime && std::find(std::begin(kWaits), std::end(kWaits), name) != std::end(kWaits);
      },
      [&](EventId e) {
        const std::string caller = caller_of(t, e);
        by_caller[caller.empty() ? std::string(t.event_name(e)) : caller].add(t, e);
      });
  std::vector<Complaint> all;
  for (const auto& [caller, s] : by_caller) {
    if (share(s.time, c.length) < kShare) continue;
    const bool reads = caller == "aten::item" || caller == "aten::_local_scalar_dense" || caller == "aten::is_nonzero";
    const bool counts = caller == "aten::nonzero" || caller == "aten::masked_select" || caller == "aten::unique";
    all.push_back({caller,
                   a_step(c, s) + " until the GPU is done, with nothing launched meanwhile",
                   reads ? "read numbers (loss.item(), print, if tensor) every 100th step and not in each"
                   : counts
                       ? "it asks how many there are: use masks of a fixed size, or torch.where with three arguments"
                       : "leave it to the end of the step, or wait on an event of another stream",
                   {},
                   -1,
                   Sight::of(s.longest)});
  }
  return all;
}

std::vector<Complaint> allocations_in_steps(const CheckedTrace& c) {
  const auto seen = seen_within(c, [](EventKind kind, std::string_view name) {
    return kind == EventKind::runtime && (name == "cudaMalloc" || name == "cudaFree" || name == "hipMalloc" ||
                                          name == "hipFree" || name == "cudaHostAlloc");
  });
  std::vector<Complaint> all;
  for (const auto& [name, s] : seen) {
    // Every step or so: a few at the beginning are the allocator warming up.
    if (s.count < static_cast<int64_t>(c.steps.size()) || c.steps.size() < 2) continue;
    all.push_back(
        {name,
         a_step(c, s) + ": the allocator's memory does not suffice",
         name == "cudaHostAlloc"
             ? "keep pinned buffers from step to step"
             : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, no torch.cuda.empty_cache() in a step, sizes "
               "that stay the same",
         {},
         -1,
         Sight::of(s.longest)});
  }
  return all;
}

std::vector<Complaint> layout_changes(const CheckedTrace& c) {
  constexpr double kShare = 0.03;
  Seen sum;
  each_within(
      c,
      [](EventKind kind, std::string_view name) {
        return kind == EventKind::kernel &&
               (name.find("nchwToNhwc") != name.npos || name.find("nhwcToNchw") != name.npos);
      },
      [&](EventId e) { sum.add(*c.trace, e); });
  if (share(sum.time, c.length) < kShare) return {};
  return {{{},
           a_step(c, sum) + ": convolutions turn their operands about before and behind them",
           "model.to(memory_format=torch.channels_last), and the same of the input",
           {},
           -1,
           Sight::of(sum.longest)}};
}

std::vector<Complaint> loader_in_process(const CheckedTrace& c) {
  constexpr double kShare = 0.05;
  const auto seen = seen_within(c, [](EventKind, std::string_view name) {
    return name.find("_SingleProcessDataLoaderIter") != name.npos && name.find("__next__") != name.npos;
  });
  std::vector<Complaint> all;
  for (const auto& [name, s] : seen)
    if (share(s.time, c.length) >= kShare)
      all.push_back({{},
                     a_step(c, s) + " in the DataLoader, in the process that trains",
                     "DataLoader(num_workers=4, persistent_workers=True): batches are made beside the step",
                     {},
                     -1,
                     Sight::of(s.longest)});
  return all;
}

std::vector<Complaint> steps_marked(const CheckedTrace& c) {
  const bool marked = std::any_of(c.steps.begin(), c.steps.end(), [](const TraceStep& s) { return s.number >= 0; });
  if (marked || recorded_by_tenon(*c.trace) || c.trace->size() == 0) return {};
  return {{{},
           "no ProfilerStep is in the trace: what belongs to which step, and what is warming up, cannot be told",
           "call profiler.step() behind each step, with schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)"}};
}

std::vector<Complaint> whole_file(const CheckedTrace& c) {
  std::vector<Complaint> all;
  if (c.trace->truncated())
    all.push_back(
        {{},
         "the file ends before its time; what it holds up to there was read",
         "let the profiler end (leave its with-block) before the program does, and look for room on the disk"});
  for (const traces::Repair& r : c.trace->repairs())
    all.push_back({{},
                   fmt::format("{} ({} {}, the first at byte {})", r.kind, count_text(static_cast<int64_t>(r.count)),
                               r.count == 1 ? "time" : "times", count_text(static_cast<int64_t>(r.first_byte))),
                   "record it again where this matters; the rest of the trace is as it was written"});
  return all;
}

bool is_optimizer_step(EventKind kind, std::string_view name) {
  return kind == EventKind::annotation && name.starts_with("Optimizer.step#");
}

/// Kernels that optimizers launch: one by one for each parameter, or a few for all.
std::vector<Complaint> optimizer_launches(const CheckedTrace& c) {
  constexpr double kShare = 0.05, kLaunches = 100;
  const Trace& t = *c.trace;
  Seen steps;
  std::vector<EventId> events;
  each_within(c, is_optimizer_step, [&](EventId e) {
    steps.add(t, e);
    events.push_back(e);
  });
  if (events.empty() || share(steps.time, c.length) < kShare) return {};
  const GpuTimeline gpu(t);
  int64_t launches = 0;
  for (const EventId e : events) launches += static_cast<int64_t>(gpu.launched_in(t.start(e), t.end(e)).size());
  const double each = static_cast<double>(launches) / static_cast<double>(steps.count);
  if (each < kLaunches) return {};
  return {{std::string(t.event_name(steps.longest)),
           fmt::format("{}, {:.0f} kernels each time", a_step(c, steps), each),
           "torch.optim's fused=True (or foreach=True): all parameters in a few kernels",
           {},
           -1,
           Sight::of(steps.longest)}};
}

/// Where a parameter has a gradient already, autograd adds to it (aten::add_) in its AccumulateGrad; where it was
/// cleared, it puts the new one there.
std::vector<Complaint> gradients_kept(const CheckedTrace& c) {
  const Trace& t = *c.trace;
  int64_t steps = 0, cleared = 0, given = 0;
  Seen added;
  each_within(
      c,
      [](EventKind kind, std::string_view name) {
        return is_optimizer_step(kind, name) || name.starts_with("Optimizer.zero_grad#") ||
               (kind == EventKind::cpu_op && (name == "torch::autograd::AccumulateGrad" || name == "aten::add_"));
      },
      [&](EventId e) {
        const std::string_view name = t.event_name(e);
        if (name.starts_with("Optimizer.step#")) ++steps;
        if (name.starts_with("Optimizer.zero_grad#")) ++cleared;
        if (name == "torch::autograd::AccumulateGrad") ++given;
        if (name == "aten::add_" && t.parent(e) != traces::kNone &&
            t.event_name(t.parent(e)) == "torch::autograd::AccumulateGrad")
          added.add(t, e);
      });
  // Weights that two layers share are added to once in every step, also where all is well.
  if (steps < 2 || cleared > 0 || 2 * added.count < given || added.count == 0) return {};
  return {{{},
           fmt::format("{} of {} gradients are added to one that is there already, over {} steps of the optimizer, and "
                       "none is cleared",
                       count_text(added.count), count_text(given), steps),
           "optimizer.zero_grad() in every step, or behind every few where gradients are meant to add up",
           {},
           -1,
           Sight::of(added.longest)}};
}

/// Gradients below 6e-8 are 0 in float16. GradScaler's unscaling leaves an op of its own in every step.
std::vector<Complaint> half_without_scaler(const CheckedTrace& c) {
  constexpr double kShare = 0.05;
  int64_t steps = 0, unscaled = 0;
  Seen half;
  each_within(
      c,
      [](EventKind kind, std::string_view name) {
        const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
        if (kind == EventKind::kernel)
          return !has("bf16") && !has("bfloat") &&
                 (has("fp16") || has("f16f16") || has("__half") || has("c10::Half") || has("h884") || has("h1688") ||
                  has("h16816") || has("hgemm"));
        return is_optimizer_step(kind, name) || has("_amp_foreach_non_finite_check_and_unscale_") ||
               has("ScaleFunctor") || has("unscale_grads");
      },
      [&](EventId e) {
        if (c.trace->kind(e) == EventKind::kernel && c.trace->event_name(e).find("ScaleFunctor") == std::string::npos)
          half.add(*c.trace, e);
        else if (c.trace->event_name(e).starts_with("Optimizer.step#"))
          ++steps;
        else
          ++unscaled;
      });
  if (steps == 0 || unscaled > 0 || share(half.time, c.length) < kShare) return {};
  return {{{},
           a_step(c, half) + " of kernels in float16, and no step takes the scale from its gradients again",
           "torch.amp.GradScaler: scale(loss).backward(), step(optimizer), update(); or bfloat16, which has the range "
           "of float32",
           {},
           -1,
           Sight::of(half.longest)}};
}

/// A clock read by the CPU says when work was launched, not when it was done.
std::vector<Complaint> timed_by_the_cpu(const CheckedTrace& c) {
  constexpr double kShare = 0.25;
  if (c.steps.size() < 2) return {};
  const int64_t begin = c.steps.front().start, end = c.steps.back().end;
  int64_t done = end;
  const GpuTimeline gpu(*c.trace);
  for (const GpuWork& w : gpu.launched_in(begin, end)) done = std::max(done, w.end);
  if (end <= begin || share(done - end, end - begin) < kShare) return {};
  const auto steps = static_cast<double>(c.steps.size());
  return {{{},
           fmt::format("after the last step the GPU works for another {}: a clock of the CPU tells {} each step, where "
                       "{} were needed",
                       nanoseconds_text(static_cast<double>(done - end)),
                       nanoseconds_text(static_cast<double>(end - begin) / steps),
                       nanoseconds_text(static_cast<double>(done - begin) / steps)),
           "torch.cuda.synchronize() before the clock is read, or torch.cuda.Event(enable_timing=True)",
           {},
           -1,
           Sight{-1, end, done}}};
}

/// Ops that PyTorch's torch.use_deterministic_algorithms() refuses or replaces on CUDA: they add in the order in which
/// threads come.
std::vector<Complaint> other_bits_each_time(const CheckedTrace& c) {
  static constexpr std::string_view kOps[] = {"aten::scatter_add_",
                                              "aten::index_add_",
                                              "aten::put_",
                                              "aten::histc",
                                              "aten::bincount",
                                              "aten::kthvalue",
                                              "aten::_cumsum_out",
                                              "aten::grid_sampler_2d_backward",
                                              "aten::grid_sampler_3d_backward",
                                              "aten::upsample_bilinear2d_backward",
                                              "aten::upsample_bicubic2d_backward",
                                              "aten::upsample_linear1d_backward",
                                              "aten::upsample_trilinear3d_backward",
                                              "aten::reflection_pad1d_backward",
                                              "aten::reflection_pad2d_backward",
                                              "aten::replication_pad1d_backward",
                                              "aten::replication_pad2d_backward",
                                              "aten::replication_pad3d_backward",
                                              "aten::adaptive_max_pool2d_backward",
                                              "aten::_adaptive_avg_pool2d_backward",
                                              "aten::fractional_max_pool2d_backward",
                                              "aten::avg_pool3d_backward",
                                              "aten::max_pool3d_with_indices_backward",
                                              "aten::_ctc_loss_backward",
                                              "aten::_embedding_bag_dense_backward",
                                              "aten::nll_loss2d_backward"};
  std::vector<Complaint> all;
  const bool gpu = !GpuTimeline(*c.trace).empty();
  if (!gpu) return all;
  const auto seen = seen_within(c, [](EventKind kind, std::string_view name) {
    return kind == EventKind::cpu_op && std::find(std::begin(kOps), std::end(kOps), name) != std::end(kOps);
  });
  for (const auto& [name, s] : seen)
    all.push_back({name,
                   a_step(c, s) + ": on a GPU it adds in another order each time, so two runs of one seed part here",
                   "torch.use_deterministic_algorithms(True) where runs have to be repeated",
                   {},
                   -1,
                   Sight::of(s.longest)});
  return all;
}

const bool registered_trace_checks =
    register_trace_check({"trace.advice", "Steps spend time that could be had", advice}) &&
    register_trace_check({"trace.pageable_copies", "Copies from memory that is not pinned", pageable_copies}) &&
    register_trace_check({"trace.synchronizing_calls", "Calls that wait for the GPU", synchronizing_calls}) &&
    register_trace_check(
        {"trace.allocations", "Memory of the device is asked for in every step", allocations_in_steps}) &&
    register_trace_check({"trace.layout", "Tensors change between NCHW and NHWC", layout_changes}) &&
    register_trace_check({"trace.loader", "Data is loaded by the process that trains", loader_in_process}) &&
    register_trace_check({"trace.steps", "Steps are not marked", steps_marked}) &&
    register_trace_check({"trace.file", "The file is not whole", whole_file}) &&
    register_trace_check({"trace.optimizer", "The optimizer launches many small kernels", optimizer_launches}) &&
    register_trace_check({"trace.gradients", "Gradients are never cleared", gradients_kept}) &&
    register_trace_check({"trace.half", "float16 is trained without a scaler", half_without_scaler}) &&
    register_trace_check({"trace.clock", "Steps end before their work does", timed_by_the_cpu}) &&
    register_trace_check({"trace.order", "Ops whose bits differ from run to run", other_bits_each_time});

}  // namespace

const Registry<FileCheck<CheckedTrace>>& trace_checks() { return trace_check_registry(); }
bool register_trace_check(FileCheck<CheckedTrace> check, Place place) {
  return trace_check_registry().add(std::move(check), place);
}

CheckedTrace::CheckedTrace(std::shared_ptr<const Trace> given) : trace(std::move(given)) {
  const TraceRequest request{{trace}};
  steps = asked_steps(*trace, request);
  for (const TraceStep& s : steps) length += s.end - s.start;
  overview = overview_of(request);
}

std::vector<CheckResult> check_trace(std::shared_ptr<const Trace> trace) {
  return run_checks(trace_checks(), CheckedTrace(std::move(trace)));
}

}  // namespace tenon::tracing
