#include "tracing/analyses/activity.h"

#include <algorithm>
#include <numeric>

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Lane;
using traces::Trace;

GpuTimeline::GpuTimeline(const Trace& trace) : data_(trace.shared<Data>([&] { return Data(trace); })) {}

GpuTimeline::Data::Data(const Trace& t) {
  const EventNames names(t);
  auto link = t.launches().begin();
  const auto before = [](const GpuWork& a, const GpuWork& b) {
    return a.start != b.start ? a.start < b.start : a.event < b.event;
  };
  size_t most = 0;  // a stream holds hardly anything but what is counted here
  for (const Lane& lane : t.lanes())
    if (t.rows()[lane.row].gpu) most += lane.end - lane.begin;
  all.reserve(most);
  for (const Lane& lane : t.lanes()) {
    if (!t.rows()[lane.row].gpu) continue;
    const auto lanes_before = static_cast<ptrdiff_t>(all.size());
    for (EventId e = lane.begin; e < lane.end; ++e) {
      EventKind k = t.kind(e);
      if (!on_gpu(k)) continue;
      while (link != t.launches().end() && link->to < e) ++link;  // both go up by event
      EventId launch = link != t.launches().end() && link->to == e ? link->from : kNone;
      all.push_back({e, launch, t.start(e), t.end(e), lane.row, names.communication(e), k != EventKind::kernel});
    }
    std::inplace_merge(all.begin(), all.begin() + lanes_before, all.end(), before);  // each lane is in order
  }
  auto at = [&](uint32_t i) { return all[i].launch == kNone ? all[i].start : t.start(all[i].launch); };
  by_launch.resize(all.size());
  std::iota(by_launch.begin(), by_launch.end(), 0u);
  const auto earlier = [&](uint32_t a, uint32_t b) { return at(a) < at(b); };
  if (!std::is_sorted(by_launch.begin(), by_launch.end(), earlier))
    std::stable_sort(by_launch.begin(), by_launch.end(), earlier);
  launched.reserve(all.size());
  last_end.reserve(all.size());
  int64_t last = INT64_MIN;
  for (uint32_t i : by_launch) {
    launched.push_back(at(i));
    last_end.push_back(last = std::max(last, all[i].end));
  }
}

size_t GpuTimeline::launched_before(int64_t time) const {
  return static_cast<size_t>(std::lower_bound(data_->launched.begin(), data_->launched.end(), time) -
                             data_->launched.begin());
}

std::vector<GpuWork> GpuTimeline::launched_in(int64_t from, int64_t to) const {
  const size_t first = launched_before(from), last = std::max(first, launched_before(to));
  std::vector<uint32_t> places(data_->by_launch.begin() + static_cast<long>(first),
                               data_->by_launch.begin() + static_cast<long>(last));
  std::sort(places.begin(), places.end());
  std::vector<GpuWork> some;
  some.reserve(places.size());
  for (uint32_t i : places) some.push_back(data_->all[i]);
  return some;
}

int64_t GpuTimeline::free_at(int64_t time) const {
  const size_t n = launched_before(time);
  return n ? data_->last_end[n - 1] : INT64_MIN;
}

std::vector<GpuWork> of_step(const Trace&, const GpuTimeline& all, const TraceStep& step) {
  return all.launched_in(step.start, step.end);
}

static HostWork work_of_host(const Trace& t) {
  HostWork h;
  const EventNames names(t);
  // Ops lie within ops: on a lane, what follows without a gap is one stretch, and only what sticks out is kept.
  auto add = [](Intervals& list, Interval i) {
    if (!list.empty() && i.first >= list.back().first && i.first <= list.back().second)
      list.back().second = std::max(list.back().second, i.second);
    else
      list.push_back(i);
  };
  for (const Lane& lane : t.lanes()) {
    if (t.rows()[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      Interval i{t.start(e), t.end(e)};
      switch (t.kind(e)) {
        case EventKind::annotation:
        case EventKind::other:
        case EventKind::python:
          if (names.data_loading(e))
            add(h.data, i);
          else if (names.optimizer(e))
            add(h.optimizer, i);
          else if (names.host_collective(e))
            add(h.communication, i);
          else if (names.backward(e))
            add(h.backward, i);
          break;
        case EventKind::cpu_op:
          if (names.data_loading(e)) add(h.data, i);
          if (names.backward(e)) add(h.backward, i);
          add(h.ops, i);
          break;
        case EventKind::runtime:
          if (names.waits(e)) add(h.sync, i);
          if (names.allocation(e)) add(h.allocation, i);
          add(h.runtime, i);
          break;
        case EventKind::overhead:
          add(h.profiler, i);
          break;
        default:
          break;
      }
    }
  }
  for (Intervals* list :
       {&h.data, &h.sync, &h.optimizer, &h.backward, &h.ops, &h.communication, &h.allocation, &h.profiler, &h.runtime})
    *list = merged(std::move(*list));
  return h;
}

std::shared_ptr<const HostWork> host_work(const Trace& t) {
  return t.shared<HostWork>([&] { return work_of_host(t); });
}

std::vector<std::vector<EventId>> stream_waits(const Trace& t) {
  std::vector<std::vector<EventId>> waits(t.rows().size());
  const uint32_t wait_event = t.find_name("Stream Wait Event");
  if (wait_event == kNone) return waits;
  for (const Lane& lane : t.lanes())
    for (EventId e = lane.begin; e < lane.end; ++e)
      if (t.columns().name[e] == wait_event && t.kind(e) == EventKind::gpu_sync) waits[lane.row].push_back(e);
  for (auto& list : waits)
    std::sort(list.begin(), list.end(),
              [&](EventId a, EventId b) { return std::pair(t.start(a), a) < std::pair(t.start(b), b); });
  return waits;
}

StepWork step_work(const GpuTimeline& gpu, const TraceStep& step) {
  StepWork s{step, 0, step.end, gpu.launched_in(step.start, step.end)};
  for (const GpuWork& w : s.work) s.end = std::max(s.end, w.end);
  s.begin = std::min(std::max(step.start, gpu.free_at(step.start)), s.end);
  return s;
}

std::vector<TraceStep> asked_steps(const Trace& t, const TraceRequest& r) {
  std::vector<TraceStep> all = trace_steps(t), some;
  for (const TraceStep& s : all)
    if (r.step < 0 || s.number == r.step) some.push_back(s);
  if (r.step < 0 && some.size() > 2) {
    std::vector<int64_t> lengths;
    for (const TraceStep& s : some) lengths.push_back(s.end - s.start);
    std::nth_element(lengths.begin(), lengths.begin() + static_cast<long>(lengths.size() / 2), lengths.end());
    if (some[0].end - some[0].start > 2 * lengths[lengths.size() / 2]) some.erase(some.begin());
  }
  return some;
}

void keep_longest(Sight& most, const Intervals& stretches) {
  for (auto [from, to] : stretches)
    if (to - from > most.to - most.from) most = {-1, from, to};
}

}  // namespace tenon::tracing
