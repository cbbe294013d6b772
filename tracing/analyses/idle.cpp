#include "tracing/analyses/idle.h"

#include <algorithm>

namespace tenon::tracing {

using traces::EventId;
using traces::kNone;
using traces::Trace;

namespace {
/// Kernels of one stream that were launched ahead follow each other within a few microseconds, on any GPU.
constexpr int64_t kPause = 10000;

void put(std::vector<Gap>& into, const Intervals& stretches, GapReason reason) {
  for (auto [from, to] : stretches) into.push_back({from, to, reason});
}
}  // namespace

const char* name(GapReason reason) {
  constexpr const char* kNames[] = {"data",  "sync",     "host",       "no_op",  "communication",
                                    "pause", "profiler", "allocation", "stream", "unknown"};
  static_assert(std::size(kNames) == kGapReasons);
  return kNames[static_cast<size_t>(reason)];
}

const char* because(GapReason reason) {
  constexpr const char* kWords[] = {
      "the CPU was loading data",
      "the CPU was waiting for the GPU before it went on",
      "the CPU had not launched the next kernel yet",
      "the CPU had not launched the next kernel yet, and ran no op",
      "a collective waited for other ranks",
      "kernels that were launched in time follow each other with short pauses",
      "the profiler wrote down what it had recorded while launched work waited",
      "a call that takes or frees memory of the device, or loads code, held up launched work",
      "launched work waited for another stream",
      "launched work waited and nothing in the trace says for what"};
  static_assert(std::size(kWords) == kGapReasons);
  return kWords[static_cast<size_t>(reason)];
}

int64_t Idle::queued_time() const {
  int64_t sum = 0;
  for (GapReason r :
       {GapReason::pause, GapReason::profiler, GapReason::allocation, GapReason::stream, GapReason::unknown})
    sum += time(r);
  return sum;
}

Idle& Idle::operator+=(const Idle& o) {
  busy += o.busy, idle += o.idle, waits += o.waits, gaps += o.gaps;
  if (o.longest > longest) longest = o.longest, longest_at = o.longest_at;
  for (size_t r = 0; r < by.size(); ++r) {
    by[r].time += o.by[r].time;
    const Sight &mine = by[r].longest, &its = o.by[r].longest;
    if (its.to - its.from > mine.to - mine.from) by[r].longest = its;
  }
  return *this;
}

IdleTimes::IdleTimes(const Trace& trace) : trace_(trace), host_(host_work(trace)), stream_waits_(stream_waits(trace)) {}

/// Between the launch of the work before it on its stream and its own.
bool IdleTimes::told_to_wait(const StepWork& step, size_t work) const {
  const std::vector<EventId>& waits = stream_waits_[step.work[work].row];
  if (waits.empty()) return false;
  auto launched = [&](const GpuWork& w) { return w.launch == kNone ? w.start : trace_.start(w.launch); };
  int64_t since = step.step.start;
  for (size_t i = work; i-- > 0;)
    if (step.work[i].row == step.work[work].row) {
      since = launched(step.work[i]);
      break;
    }
  const auto at = std::lower_bound(waits.begin(), waits.end(), since,
                                   [&](EventId e, int64_t time) { return trace_.start(e) < time; });
  return at != waits.end() && trace_.start(*at) <= launched(step.work[work]);
}

// See Note [Why a GPU stands still].
void IdleTimes::explain_queued(const StepWork& step, size_t next, const GpuWork* before, Interval queued,
                               std::vector<Gap>& into) const {
  const GpuWork* work = next < step.work.size() && step.work[next].start == queued.second ? &step.work[next] : nullptr;
  if (work && work->communication) return into.push_back({queued.first, queued.second, GapReason::communication});
  if (queued.second - queued.first <= kPause) return into.push_back({queued.first, queued.second, GapReason::pause});
  Intervals rest{queued};
  for (auto [list, reason] :
       {std::pair{&host_->profiler, GapReason::profiler}, std::pair{&host_->allocation, GapReason::allocation}}) {
    put(into, intersection(rest, *list), reason);
    rest = difference(rest, *list);
  }
  const bool waits = work && ((before && before->row != work->row) || told_to_wait(step, next));
  put(into, rest, waits ? GapReason::stream : GapReason::unknown);
}

std::vector<Gap> IdleTimes::gaps(const StepWork& step, Idle* sum) const {
  std::vector<Gap> all;
  Idle idle;
  Intervals busy;
  for (const GpuWork& w : step.work) busy.emplace_back(std::max(w.start, step.begin), w.end);
  busy = merged(std::move(busy));
  idle.busy = length(busy);
  size_t next = 0;
  const GpuWork* before = nullptr;  // what ended last of all that began earlier
  for (auto [from, to] : difference(merged({{step.begin, step.end}}), busy)) {
    idle.idle += to - from;
    ++idle.gaps;
    if (to - from > idle.longest) idle.longest = to - from, idle.longest_at = from;
    for (; next < step.work.size() && step.work[next].start < to; ++next)
      if (!before || step.work[next].end >= before->end) before = &step.work[next];
    // Until the call that ends the gap has come, the GPU waits for the CPU; from then on for whatever lies between the
    // two.
    int64_t until = to;
    if (next < step.work.size() && step.work[next].start == to && step.work[next].launch != kNone)
      until = std::clamp(trace_.end(step.work[next].launch), from, to);
    const Intervals waiting = until > from ? Intervals{{from, until}} : Intervals{};
    const size_t first = all.size();
    put(all, intersection(waiting, host_->data), GapReason::data);
    Intervals rest = difference(waiting, host_->data);
    // Where the CPU stood waiting when the GPU ran dry, nothing could be queued: the whole way to the next launch is
    // that wait's cost.
    auto wait = std::upper_bound(host_->sync.begin(), host_->sync.end(), Interval{from, INT64_MAX});
    const bool waited = wait != host_->sync.begin() && (wait - 1)->second >= from;
    idle.waits += waited;
    put(all, waited ? rest : intersection(rest, host_->sync), GapReason::sync);
    rest = waited ? Intervals{} : difference(rest, host_->sync);
    put(all, intersection(rest, host_->ops), GapReason::host);
    put(all, difference(rest, host_->ops), GapReason::no_op);
    // A wait that ends in communication was for the other ranks' sake only if the call was already there.
    if (until < to) explain_queued(step, next, before, {until, to}, all);
    std::sort(all.begin() + static_cast<long>(first), all.end(),
              [](const Gap& a, const Gap& b) { return a.from < b.from; });
  }
  for (const Gap& g : all) {
    Idle::Sum& of = idle.by[static_cast<size_t>(g.reason)];
    of.time += g.to - g.from;
    keep_longest(of.longest, {{g.from, g.to}});
  }
  if (sum) *sum = idle;
  return all;
}

Idle IdleTimes::of(const StepWork& step) const {
  Idle idle;
  gaps(step, &idle);
  return idle;
}

}  // namespace tenon::tracing
