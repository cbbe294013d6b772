#include "tracing/analyses/activity.h"

#include <algorithm>
#include <numeric>

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Lane;
using traces::Trace;

GpuTimeline::GpuTimeline(const Trace& t) {
  const EventNames names(t);
  auto link = t.launches().begin();
  for (const Lane& lane : t.lanes()) {
    if (!t.rows()[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      EventKind k = t.kind(e);
      if (!on_gpu(k)) continue;
      while (link != t.launches().end() && link->to < e) ++link;  // both go up by event
      EventId launch = link != t.launches().end() && link->to == e ? link->from : kNone;
      all_.push_back({e, launch, t.start(e), t.end(e), lane.row, names.communication(e), k != EventKind::kernel});
    }
  }
  std::sort(all_.begin(), all_.end(), [](const GpuWork& a, const GpuWork& b) {
    return a.start != b.start ? a.start < b.start : a.event < b.event;
  });
  auto at = [&](uint32_t i) { return all_[i].launch == kNone ? all_[i].start : t.start(all_[i].launch); };
  by_launch_.resize(all_.size());
  std::iota(by_launch_.begin(), by_launch_.end(), 0u);
  std::stable_sort(by_launch_.begin(), by_launch_.end(), [&](uint32_t a, uint32_t b) { return at(a) < at(b); });
  launched_.reserve(all_.size());
  last_end_.reserve(all_.size());
  int64_t last = INT64_MIN;
  for (uint32_t i : by_launch_) {
    launched_.push_back(at(i));
    last_end_.push_back(last = std::max(last, all_[i].end));
  }
}

size_t GpuTimeline::launched_before(int64_t time) const {
  return static_cast<size_t>(std::lower_bound(launched_.begin(), launched_.end(), time) - launched_.begin());
}

std::vector<GpuWork> GpuTimeline::launched_in(int64_t from, int64_t to) const {
  const size_t first = launched_before(from), last = std::max(first, launched_before(to));
  std::vector<uint32_t> places(by_launch_.begin() + static_cast<long>(first),
                               by_launch_.begin() + static_cast<long>(last));
  std::sort(places.begin(), places.end());
  std::vector<GpuWork> some;
  some.reserve(places.size());
  for (uint32_t i : places) some.push_back(all_[i]);
  return some;
}

int64_t GpuTimeline::free_at(int64_t time) const {
  const size_t n = launched_before(time);
  return n ? last_end_[n - 1] : INT64_MIN;
}

GpuTimeline gpu_work(const Trace& t) { return GpuTimeline(t); }
std::vector<GpuWork> of_step(const Trace&, const GpuTimeline& all, const TraceStep& step) {
  return all.launched_in(step.start, step.end);
}

HostWork host_work(const Trace& t) {
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
          break;
        case EventKind::cpu_op:
          if (names.data_loading(e)) add(h.data, i);
          if (names.backward(e)) add(h.backward, i);
          add(h.ops, i);
          break;
        case EventKind::runtime:
          if (names.waits(e)) add(h.sync, i);
          break;
        default:
          break;
      }
    }
  }
  for (Intervals* list : {&h.data, &h.sync, &h.optimizer, &h.backward, &h.ops, &h.communication})
    *list = merged(std::move(*list));
  return h;
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

Idle& Idle::operator+=(const Idle& o) {
  busy += o.busy, idle += o.idle, data += o.data, sync += o.sync, host += o.host, communication += o.communication;
  other += o.other, python += o.python, waits += o.waits, gaps += o.gaps;
  if (o.longest > longest) longest = o.longest, longest_at = o.longest_at;
  const std::pair<Sight*, const Sight*> most[] = {{&most_data, &o.most_data},
                                                  {&most_sync, &o.most_sync},
                                                  {&most_host, &o.most_host},
                                                  {&most_communication, &o.most_communication}};
  for (auto [mine, its] : most)
    if (its->to - its->from > mine->to - mine->from) *mine = *its;
  return *this;
}

void keep_longest(Sight& most, const Intervals& stretches) {
  for (auto [from, to] : stretches)
    if (to - from > most.to - most.from) most = {-1, from, to};
}

Idle idle_of(const Trace& t, const StepWork& step, const HostWork& host) {
  Idle idle;
  Intervals busy;
  for (const GpuWork& w : step.work) busy.emplace_back(std::max(w.start, step.begin), w.end);
  busy = merged(std::move(busy));
  idle.busy = length(busy);
  size_t next = 0;
  for (auto [from, to] : difference(merged({{step.begin, step.end}}), busy)) {
    idle.idle += to - from;
    ++idle.gaps;
    if (to - from > idle.longest) idle.longest = to - from, idle.longest_at = from;
    while (next < step.work.size() && step.work[next].start < to) ++next;
    // Until the call that ends the gap has come, the GPU waits for the CPU; from then on for whatever lies between the
    // two.
    int64_t until = to;
    bool communicates = false;
    if (next < step.work.size() && step.work[next].start == to) {
      communicates = step.work[next].communication;
      if (step.work[next].launch != kNone) until = std::clamp(t.end(step.work[next].launch), from, to);
    }
    Intervals waiting = until > from ? Intervals{{from, until}} : Intervals{};
    Intervals data = intersection(waiting, host.data), rest = difference(waiting, host.data);
    // Where the CPU stood waiting when the GPU ran dry, nothing could be queued: the whole way to the next launch is
    // that wait's cost.
    auto wait = std::upper_bound(host.sync.begin(), host.sync.end(), Interval{from, INT64_MAX});
    bool waited = wait != host.sync.begin() && (wait - 1)->second >= from;
    Intervals sync = waited ? rest : intersection(rest, host.sync);
    rest = waited ? Intervals{} : difference(rest, host.sync);
    idle.waits += waited;
    idle.data += length(data);
    idle.sync += length(sync);
    // A wait that ends in communication was for the other ranks' sake only if the call was already there.
    idle.host += length(rest);
    idle.python += length(difference(rest, host.ops));
    (communicates ? idle.communication : idle.other) += to - until;
    keep_longest(idle.most_data, data);
    keep_longest(idle.most_sync, sync);
    keep_longest(idle.most_host, rest);
    if (communicates) keep_longest(idle.most_communication, {{until, to}});
  }
  return idle;
}

}  // namespace tenon::tracing
