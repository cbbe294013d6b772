#include "tracing/analyses/activity.h"

#include <algorithm>
#include <cctype>

namespace tenon::tracing {

using trace::EventId;
using trace::Kind;
using trace::kNone;
using trace::Lane;
using trace::Trace;

Intervals merged(Intervals all) {
  std::sort(all.begin(), all.end());
  Intervals out;
  for (auto [from, to] : all) {
    if (to <= from) continue;
    if (!out.empty() && from <= out.back().second) out.back().second = std::max(out.back().second, to);
    else out.emplace_back(from, to);
  }
  return out;
}

int64_t length(const Intervals& m) {
  int64_t sum = 0;
  for (auto [from, to] : m) sum += to - from;
  return sum;
}

Intervals intersection(const Intervals& a, const Intervals& b) {
  Intervals out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    int64_t from = std::max(a[i].first, b[j].first), to = std::min(a[i].second, b[j].second);
    if (from < to) out.emplace_back(from, to);
    if (a[i].second < b[j].second) ++i;
    else ++j;
  }
  return out;
}

Intervals difference(const Intervals& a, const Intervals& b) {
  Intervals out;
  size_t j = 0;
  for (auto [from, to] : a) {
    while (j < b.size() && b[j].second <= from) ++j;
    for (size_t k = j; k < b.size() && b[k].first < to; ++k) {
      if (b[k].first > from) out.emplace_back(from, b[k].first);
      from = std::max(from, b[k].second);
    }
    if (from < to) out.emplace_back(from, to);
  }
  return out;
}

Intervals clipped(const Intervals& a, int64_t from, int64_t to) { return intersection(a, {{from, to}}); }

namespace {
bool contains(std::string_view text, std::string_view word) {
  auto it = std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  return it != text.end();
}
bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (std::string_view w : words)
    if (contains(text, w)) return true;
  return false;
}
}  // namespace

bool is_communication(std::string_view k) { return any_of(k, {"nccl", "rccl", "all_reduce", "allreduce_kernel", "nvshmem", "multimem", "oneccl"}); }
bool is_sync_call(std::string_view c) { return any_of(c, {"synchronize", "eventquery_wait", "streamwaitvalue"}); }
bool is_copy_call(std::string_view c) { return any_of(c, {"memcpy"}) && !contains(c, "async"); }
bool is_data_loading(std::string_view a) { return any_of(a, {"dataloader", "data loading", "data_loading", "dataset.fetch", "load_batch"}); }
bool is_optimizer(std::string_view a) { return a.starts_with("Optimizer.step") || contains(a, "optimizer.step"); }
bool is_backward(std::string_view op) { return op.starts_with("autograd::engine::evaluate_function") || op == "backward" || op.starts_with("## Backward"); }

std::vector<GpuWork> gpu_work(const Trace& t) {
  std::vector<GpuWork> all;
  for (uint32_t l = 0; l < t.lanes().size(); ++l) {
    const Lane& lane = t.lanes()[l];
    if (!t.rows()[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      Kind k = t.kind(e);
      if (!on_gpu(k)) continue;
      all.push_back({e, t.launch_of(e), t.start(e), t.end(e), lane.row, k == Kind::kernel && is_communication(t.event_name(e)), k != Kind::kernel});
    }
  }
  std::sort(all.begin(), all.end(), [](const GpuWork& a, const GpuWork& b) { return a.start != b.start ? a.start < b.start : a.event < b.event; });
  return all;
}

std::vector<GpuWork> of_step(const Trace& t, const std::vector<GpuWork>& all, const TraceStep& step) {
  std::vector<GpuWork> some;
  for (const GpuWork& w : all) {
    int64_t at = w.launch == kNone ? w.start : t.start(w.launch);
    if (at >= step.start && at < step.end) some.push_back(w);
  }
  return some;
}

HostWork host_work(const Trace& t) {
  HostWork h;
  for (const Lane& lane : t.lanes()) {
    if (t.rows()[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      Interval i{t.start(e), t.end(e)};
      std::string_view name = t.event_name(e);
      switch (t.kind(e)) {
        case Kind::annotation:
        case Kind::other:
        case Kind::python:
          if (is_data_loading(name)) h.data.push_back(i);
          else if (is_optimizer(name)) h.optimizer.push_back(i);
          break;
        case Kind::cpu_op:
          if (is_data_loading(name)) h.data.push_back(i);
          if (is_backward(name)) h.backward.push_back(i);
          h.ops.push_back(i);
          break;
        case Kind::runtime:
          if (is_sync_call(name) || is_copy_call(name)) h.sync.push_back(i);
          break;
        default: break;
      }
    }
  }
  for (Intervals* list : {&h.data, &h.sync, &h.optimizer, &h.backward, &h.ops}) *list = merged(std::move(*list));
  return h;
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

int64_t gpu_free_at(const Trace& t, const std::vector<GpuWork>& all, const TraceStep& step) {
  int64_t last = INT64_MIN;
  for (const GpuWork& w : all)
    if ((w.launch == kNone ? w.start : t.start(w.launch)) < step.start) last = std::max(last, w.end);
  return last;
}

Idle idle_of(const Trace& t, const std::vector<GpuWork>& work, const HostWork& host, const TraceStep& step, int64_t gpu_free) {
  Idle idle;
  // The window of a step: until its last work is done, which may be after the CPU went on to the next.
  Intervals busy, communication;
  for (const GpuWork& w : work) {
    busy.emplace_back(w.start, w.end);
    if (w.communication) communication.emplace_back(w.start, w.end);
  }
  busy = merged(std::move(busy));
  idle.busy = length(busy);
  const int64_t window_end = std::max(step.end, busy.empty() ? step.end : busy.back().second);
  const int64_t window_begin = std::min(std::max(step.start, gpu_free), window_end);
  Intervals gaps = difference(merged({{window_begin, window_end}}), busy);
  size_t next = 0;
  for (auto [from, to] : gaps) {
    idle.idle += to - from;
    ++idle.gaps;
    if (to - from > idle.longest) idle.longest = to - from, idle.longest_at = from;
    while (next < work.size() && work[next].start < to) ++next;
    // Until the call that ends the gap has come, the GPU waits for the CPU; from then on for whatever lies between the two.
    int64_t until = to;
    bool communicates = false;
    if (next < work.size() && work[next].start == to) {
      communicates = work[next].communication;
      if (work[next].launch != kNone) until = std::clamp(t.end(work[next].launch), from, to);
    }
    Intervals waiting = until > from ? Intervals{{from, until}} : Intervals{};
    Intervals data = intersection(waiting, host.data), rest = difference(waiting, host.data);
    // Where the CPU stood waiting when the GPU ran dry, nothing could be queued: the whole way to the next launch is that wait's cost.
    auto wait = std::upper_bound(host.sync.begin(), host.sync.end(), Interval{from, INT64_MAX});
    bool waited = wait != host.sync.begin() && (wait - 1)->second >= from;
    Intervals sync = waited ? rest : intersection(rest, host.sync);
    rest = waited ? Intervals{} : difference(rest, host.sync);
    idle.data += length(data);
    idle.sync += length(sync);
    // A wait that ends in communication was for the other ranks' sake only if the call was already there.
    idle.host += length(rest);
    (communicates ? idle.communication : idle.other) += to - until;
  }
  return idle;
}

namespace {

/// The innermost slice of a row's CPU work at a moment, and the moment from which on it is that one without a break.
struct Innermost {
  EventId event = kNone;
  int64_t since = 0;
};
Innermost innermost(const Trace& t, uint32_t row, int64_t time) {
  const trace::Row& r = t.rows()[row];
  Innermost found;
  found.since = INT64_MIN;
  for (uint32_t d = 0; d < r.lanes; ++d) {
    const Lane& lane = t.lanes()[r.first_lane + d];
    auto [first, last] = t.range(r.first_lane + d, time - 1, time);
    EventId e = first < last ? last - 1 : kNone;
    if (e != kNone && t.start(e) < time && t.end(e) >= time && t.duration(e) > 0) {
      found.event = e;
      found.since = std::max(found.since, t.start(e));
      continue;
    }
    // Nothing deeper here; but a deeper slice that ended just before limits how far back this one is the innermost.
    EventId before = last > lane.begin ? last - 1 : kNone;
    if (before != kNone && t.end(before) < time) found.since = std::max(found.since, t.end(before));
    break;
  }
  return found;
}

}  // namespace

std::vector<PathPiece> critical_path(const Trace& t, const std::vector<GpuWork>& work, const TraceStep& step) {
  std::vector<PathPiece> path;
  using What = PathPiece::What;
  int64_t now = step.end;
  uint32_t row = step.row;
  // Work that had ended by a moment, latest end first.
  std::vector<size_t> by_end(work.size());
  for (size_t i = 0; i < work.size(); ++i) by_end[i] = i;
  std::sort(by_end.begin(), by_end.end(), [&](size_t a, size_t b) { return work[a].end != work[b].end ? work[a].end < work[b].end : a < b; });
  auto last_ended = [&](int64_t time, uint32_t only_row, int64_t not_before) -> const GpuWork* {
    auto it = std::upper_bound(by_end.begin(), by_end.end(), time, [&](int64_t v, size_t i) { return v < work[i].end; });
    while (it != by_end.begin()) {
      const GpuWork& w = work[*--it];
      if (w.end < not_before) return nullptr;
      if (only_row == UINT32_MAX || w.row == only_row) return &w;
    }
    return nullptr;
  };
  auto add = [&](int64_t from, What what, EventId e) {
    from = std::max(from, step.start);
    if (from >= now) return;
    path.push_back({from, now, e, what});
    now = from;
  };
  const GpuWork* on_gpu_now = nullptr;
  for (size_t guard = 0; now > step.start && guard < 4 * t.size() + 64; ++guard) {
    if (on_gpu_now) {
      const GpuWork& w = *on_gpu_now;
      add(w.start, What::gpu, w.event);
      const int64_t launched = w.launch == kNone ? INT64_MIN : t.end(w.launch);
      // What it waited for: the work before it on its stream, or any work that ended exactly then, or its own launch.
      const GpuWork* before = last_ended(w.start, w.row, launched);
      if (!before) before = last_ended(w.start, UINT32_MAX, std::max(launched, w.start - 2000));
      if (before && before != &w && before->end > launched) {
        add(before->end, What::launch_delay, kNone);
        on_gpu_now = before;
        continue;
      }
      on_gpu_now = nullptr;
      if (w.launch == kNone) continue;
      add(launched, What::launch_delay, w.launch);
      row = t.row_of(w.launch);
      continue;
    }
    Innermost in = innermost(t, row, now);
    if (in.event != kNone && t.kind(in.event) == Kind::runtime && (is_sync_call(t.event_name(in.event)) || is_copy_call(t.event_name(in.event)))) {
      // The wait ended because work of the GPU did.
      const GpuWork* cause = last_ended(now, UINT32_MAX, t.start(in.event));
      if (cause && cause->start < now) {  // one without length that ends here would lead back to this call for ever
        add(cause->end, What::sync, in.event);
        on_gpu_now = cause;
        continue;
      }
    }
    // The thread that launched (autograd's, mostly) had not begun yet: the step's own thread was on its way to it.
    if (in.event == kNone && row != step.row) {
      row = step.row;
      continue;
    }
    int64_t since = std::max(in.since, step.start);
    if (since >= now) since = now - 1;
    add(since, in.event == kNone ? What::nothing : What::cpu, in.event);
  }
  if (now > step.start) add(step.start, What::nothing, kNone);
  std::reverse(path.begin(), path.end());
  return path;
}

std::string piece_name(const Trace& t, const PathPiece& p) {
  using What = PathPiece::What;
  std::string name = p.event == kNone ? "" : std::string(t.event_name(p.event));
  switch (p.what) {
    case What::gpu: return name;
    case What::sync: return name + " (waiting)";
    case What::launch_delay: return "between launch and start";
    case What::nothing: return "no op on the CPU";
    case What::cpu: return name.starts_with("ProfilerStep#") ? "no op on the CPU" : name + " (CPU)";
  }
  return name;
}

}  // namespace tenon::tracing
