#include "tracing/analyses/overview.h"

#include <algorithm>
#include <numeric>

#include "core/number.h"
#include "tracing/trace/scanner.h"

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::Trace;

const StepPartName& name_of(StepPart part) {
  static constexpr StepPartName names[kStepParts] = {
      {"kernel", "kernels"},    {"memcpy", "copies"},         {"memset", "fills"}, {"communication", "communication"},
      {"data", "data loading"}, {"runtime", "runtime calls"}, {"cpu", "CPU ops"},  {"optimizer", "optimizer"},
      {"backward", "backward"}, {"forward", "forward"},       {"other", "other"}};
  return names[static_cast<size_t>(part)];
}

const std::vector<StepPart>& step_parts(bool gpu) {
  using enum StepPart;
  static const std::vector<StepPart> with{kernel, memcpy, memset, communication, data, runtime, ops, other},
      without{forward, backward, optimizer, data, communication, other};
  return gpu ? with : without;
}

int64_t PartTimes::length() const { return std::accumulate(ns.begin(), ns.end(), int64_t{0}); }
PartTimes& PartTimes::operator+=(const PartTimes& o) {
  for (size_t i = 0; i < ns.size(); ++i) ns[i] += o.ns[i];
  return *this;
}

namespace {

/// What the GPU did for a step, by what counts.
struct GpuParts {
  Intervals kernel, memcpy, memset, communication;
};
GpuParts gpu_parts(const Trace& t, const StepWork& step) {
  GpuParts g;
  for (const GpuWork& w : step.work) {
    if (w.end <= step.begin) continue;
    const EventKind kind = t.kind(w.event);
    (w.communication             ? g.communication
     : kind == EventKind::memcpy ? g.memcpy
     : kind == EventKind::memset ? g.memset
                                 : g.kernel)
        .emplace_back(std::max(w.start, step.begin), w.end);
  }
  for (Intervals* list : {&g.kernel, &g.memcpy, &g.memset, &g.communication}) *list = merged(std::move(*list));
  return g;
}

/// Note [What a moment counts as].
PartTimes times_of(const Trace& t, const StepWork& step, const HostWork& host, bool gpu) {
  PartTimes times;
  Intervals rest{{step.begin, step.end}};
  if (step.end <= step.begin) return times;
  auto count = [&](StepPart part, const Intervals& what) {
    times[part] += length(intersection(rest, what));
    rest = difference(rest, what);
  };
  using enum StepPart;
  if (gpu) {
    const GpuParts g = gpu_parts(t, step);
    count(kernel, g.kernel);
    count(memcpy, g.memcpy);
    count(memset, g.memset);
    count(communication, g.communication);
    count(data, host.data);
    count(runtime, host.runtime);
    count(ops, host.ops);
  } else {
    count(data, host.data);
    count(optimizer, host.optimizer);
    count(backward, host.backward);
    count(forward, host.ops);
  }
  count(communication, host.communication);
  times[other] += length(rest);
  return times;
}

}  // namespace

KernelFill kernel_fill(const Trace& t, const std::vector<GpuWork>& kernels) {
  // An event's arguments are read from the file's text: of very many kernels every so manieth is.
  constexpr size_t kMostRead = 8000;
  const size_t stride = std::max<size_t>(1, (kernels.size() + kMostRead - 1) / kMostRead);
  KernelFill fill;
  double occupied = 0, occupied_time = 0, filled = 0, under = 0, blocks_time = 0;
  int64_t longest = -1;
  for (size_t i = 0; i < kernels.size(); i += stride) {
    const GpuWork& w = kernels[i];
    ++fill.looked_at;
    const double time = static_cast<double>(w.end - w.start);
    bool tells = false;
    const std::string text = t.event_text(w.event);
    if (text.empty()) break;  // the file is gone, or cannot be unpacked again: no other event will tell
    for (const auto& [key, value] : traces::decode_arguments(text)) {
      const bool occupancy = key == "est. achieved occupancy %";
      if (!occupancy && key != "blocks per SM") continue;
      const auto number = number_of(value);
      if (!number || !(*number >= 0)) continue;
      tells = true;
      if (occupancy) {
        fill.occupancy_told = true;
        occupied += std::min(*number / 100, 1.0) * time, occupied_time += time;
        continue;
      }
      fill.blocks_told = true;
      filled += std::min(*number, 1.0) * time, blocks_time += time;
      if (*number >= 1) continue;
      under += time;
      if (w.end - w.start > longest) longest = w.end - w.start, fill.most_under_full = Sight::of(w.event);
    }
    fill.kernels += tells;
  }
  if (occupied_time > 0) fill.occupancy = occupied / occupied_time;
  if (blocks_time > 0) fill.full = filled / blocks_time, fill.under_full = under / blocks_time;
  return fill;
}

std::optional<Overview> overview_of(const TraceRequest& r) {
  const Trace& t = r.first();
  const std::vector<TraceStep> steps = asked_steps(t, r);
  if (steps.empty()) return {};
  const GpuTimeline gpu(t);
  const auto host = host_work(t);
  Overview o;
  o.gpu = !gpu.empty();
  if (const auto all = trace_steps(t); r.step < 0 && all.size() > steps.size()) o.warm_up = all[0].number;
  std::vector<GpuWork> work, kernels;
  for (const TraceStep& s : steps) {
    const StepWork step = step_work(gpu, s);
    o.steps.push_back({s, step.begin, step.end, times_of(t, step, *host, o.gpu)});
    o.sum += o.steps.back().parts;
    work.insert(work.end(), step.work.begin(), step.work.end());
  }
  for (const GpuWork& w : work)
    if (!w.copy && !w.communication) kernels.push_back(w);
  o.kernels = static_cast<int64_t>(kernels.size());
  o.fill = kernel_fill(t, kernels);
  const StepBounds bounds = bounds_of(t, steps);
  o.sentence = bounds.sentence();
  o.cause = bounds.causes[0].sight;
  o.gpu_busy = bounds.gpu_busy;
  o.advice = advice_of(t, o, bounds, work);
  o.configuration = configuration_of(t);
  return o;
}

}  // namespace tenon::tracing
