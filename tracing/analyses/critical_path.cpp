#include "tracing/analyses/critical_path.h"

#include <algorithm>
#include <charconv>
#include <memory>

// Note [The critical path of a step]
// It is found backwards, from the moment the step is done (see Note [How long a step lasts]) to its beginning. At every
// moment we stand in one event, and ask what it had waited for:
//
//   On the GPU, work begins when the work before it on its stream has ended, when the work of another stream has ended
//   that it was told to wait for, or when its launch has come: whichever was last. Waits between streams are recorded
//   where the profiler was asked for synchronisation events; where it was not, work that began long after its launch on
//   a free stream, at once after the end of another stream's work, is taken to have waited for that.
//
//   On the CPU, a call that waits for the GPU returned because some work had ended: the last that did before it
//   returned.
//
//   On the CPU, a thread that runs no op stands still for another one if that one worked meanwhile: backward() returns
//   when autograd's thread is done, and autograd's thread begins when backward() is called. So where a thread has
//   nothing, the path goes on where an op ended last, if that was after this thread's own last op. Threads that may be
//   waited for are the step's own and those that run backward or collectives of the CPU; any thread that runs ops where
//   Python stands in a lock, a join or a queue.
//
//   Everything else on the CPU is the innermost event's own time, back to where it began or to where one within it
//   ended.
//
// Each piece begins where the one before it ends, so that together they are as long as the step.

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Lane;
using traces::Trace;
using What = PathPiece::What;

namespace {

constexpr int64_t kLaunchTakes = 10000;  ///< nanoseconds from a launch to its work on a free stream, at most
constexpr int64_t kHandOver =
    3000;  ///< from the end of work to the start of what waited for it on another stream, at most

}  // namespace

/// Where a thread stood just before a moment: in which innermost event, since when without a break, and what had ended
/// then.
struct Standing {
  EventId event = kNone;
  int64_t since = INT64_MIN;
  EventId before = kNone;
};

/// A thread gone through backwards: moments must be asked for from late to early. A step costs as much as it has
/// events.
class ThreadBackwards {
 public:
  ThreadBackwards(const Trace& t, uint32_t row, int64_t time) : trace_(t) {
    const traces::Row& r = t.rows()[row];
    const auto starts = t.columns().start.begin();
    for (uint32_t l = r.first_lane; l < r.first_lane + r.lanes; ++l)
      lanes_.push_back({t.lanes()[l].begin,
                        static_cast<EventId>(
                            std::lower_bound(starts + t.lanes()[l].begin, starts + t.lanes()[l].end, time) - starts)});
  }
  Standing before(int64_t now) {
    Standing s;
    for (LaneBackwards& lane : lanes_) {
      while (lane.next > lane.begin && trace_.start(lane.next - 1) >= now) --lane.next;
      if (lane.next == lane.begin) continue;
      const EventId e = lane.next - 1;
      if (trace_.duration(e) == 0) continue;
      if (trace_.end(e) >= now)
        s.event = e, s.since = trace_.start(e), s.before = kNone;  // the innermost so far
      else if (trace_.end(e) > s.since)
        s.since = trace_.end(e), s.before = e;  // limits how far back it is the innermost
    }
    return s;
  }

 private:
  struct LaneBackwards {
    EventId begin, next;
  };
  const Trace& trace_;
  std::vector<LaneBackwards> lanes_;
};

CriticalPaths::CriticalPaths(const Trace& t, const GpuTimeline& gpu)
    : trace_(t),
      gpu_(gpu),
      names_(t),
      by_end_of_row_(t.rows().size()),
      waits_of_row_(stream_waits(t)),
      work_of_row_(t.rows().size()) {
  for (uint32_t i = 0; i < gpu.size(); ++i)
    if (gpu[i].end > gpu[i].start) by_end_.push_back(i);  // what took no time can be nobody's reason
  std::stable_sort(by_end_.begin(), by_end_.end(), [&](uint32_t a, uint32_t b) { return gpu[a].end < gpu[b].end; });
  for (uint32_t i : by_end_) by_end_of_row_[gpu[i].row].push_back(i);
  gather_threads();
}

void CriticalPaths::gather_threads() {
  const std::vector<EventId> parent = parents(trace_);
  std::vector<bool> within(trace_.size()), ops(trace_.rows().size()),
      helps(trace_.rows().size());  // within: work around it
  for (const Lane& lane : trace_.lanes()) {
    if (trace_.rows()[lane.row].gpu) continue;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      const bool work = is_work(e);
      if (trace_.kind(e) == EventKind::cpu_op) ops[lane.row] = true;
      if (names_.backward(e) || names_.host_collective(e)) helps[lane.row] = true;
      within[e] = work || (parent[e] != kNone && within[parent[e]]);
      if (work && trace_.duration(e) > 0 && (parent[e] == kNone || !within[parent[e]]))
        work_of_row_[lane.row].push_back({trace_.start(e), trace_.end(e), e});
    }
  }
  for (auto& list : work_of_row_) {
    std::sort(list.begin(), list.end(), [](const Stretch& a, const Stretch& b) {
      return std::pair(a.from, a.event) < std::pair(b.from, b.event);
    });
    size_t kept = 0;
    for (const Stretch& s : list) {
      if (kept && s.to <= list[kept - 1].to) continue;
      list[kept++] = {kept > 1 ? std::max(s.from, list[kept - 2].to) : s.from, s.to, s.event};
    }
    list.resize(kept);
  }
  for (uint32_t r = 0; r < trace_.rows().size(); ++r) {
    if (ops[r]) op_rows_.push_back(r);
    if (helps[r]) helper_rows_.push_back(r);
  }
}

/// Whether the CPU does something in it, or waits for data; what is not goes on around other events: annotations,
/// frames of Python.
bool CriticalPaths::is_work(EventId e) const {
  if (e == kNone) return false;
  switch (trace_.kind(e)) {
    case EventKind::annotation:
    case EventKind::python:
      return names_.data_loading(e) || names_.host_collective(e);
    case EventKind::instant:
    case EventKind::async:
    case EventKind::overhead:
      return false;
    default:
      return true;
  }
}

const GpuWork* CriticalPaths::last_ended(const std::vector<uint32_t>& order, int64_t time) const {
  auto after =
      std::upper_bound(order.begin(), order.end(), time, [&](int64_t v, uint32_t i) { return v < gpu_[i].end; });
  return after == order.begin() ? nullptr : &gpu_[*(after - 1)];
}

/// The work of another stream that this one was held back by.
const GpuWork* CriticalPaths::awaited(const GpuWork& w, const GpuWork* before) const {
  const int64_t called = w.launch == kNone ? w.start : trace_.start(w.launch),
                launched = w.launch == kNone ? INT64_MIN : std::min(trace_.end(w.launch), w.start);
  const int64_t ready = std::max(launched, before ? before->end : INT64_MIN);
  const auto& waits = waits_of_row_[w.row];
  auto wait =
      std::upper_bound(waits.begin(), waits.end(), called, [&](int64_t v, EventId e) { return v < trace_.start(e); });
  if (wait != waits.begin()) {
    const EventId told = *(wait - 1);
    if (before && before->launch != kNone && trace_.start(told) < trace_.start(before->launch))
      return nullptr;  // held back the one before
    const std::string stream = argument(trace_, told, "wait_on_stream");
    int64_t number = -1;  // as the profiler writes where it does not know
    std::from_chars(stream.data(), stream.data() + stream.size(), number);
    const traces::Row& mine = trace_.rows()[w.row];
    for (uint32_t r = 0; number >= 0 && r < trace_.rows().size(); ++r) {
      if (r == w.row || !trace_.rows()[r].gpu || trace_.rows()[r].pid != mine.pid ||
          trace_.rows()[r].tid_number != number)
        continue;
      const GpuWork* other = last_ended(by_end_of_row_[r], w.start);
      return other && other->end > ready ? other : nullptr;
    }
  }
  if (ready > w.start - kLaunchTakes) return nullptr;
  const GpuWork* other = last_ended(by_end_, w.start);
  return other && other->row != w.row && other->end > ready && w.start - other->end <= kHandOver ? other : nullptr;
}

/// One walk from a step's end to its beginning.
class BackwardWalk {
 public:
  BackwardWalk(const CriticalPaths& paths, const StepWork& step)
      : p_(paths), t_(paths.trace_), step_(step), now_(step.end), row_(step.step.row), threads_(t_.rows().size()) {
    if (step.end > step.step.end)
      for (const GpuWork& w : step.work)
        if (w.end == step.end) gpu_ = &w;
  }
  std::vector<PathPiece> run() {
    while (now_ > step_.begin) gpu_ ? on_gpu() : on_cpu();
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  void back_to(int64_t from, What what, EventId e, EventId after = kNone) {
    from = std::max(from, step_.begin);
    if (from >= now_) return;
    path_.push_back({from, now_, e, what, after});
    now_ = from;
    hops_ = 0;
  }

  void on_gpu() {
    const GpuWork& w = *gpu_;
    back_to(w.start, What::gpu, w.event);
    const int64_t launched = launched_at(w);
    const GpuWork* cause = p_.last_ended(p_.by_end_of_row_[w.row], w.start);
    if (const GpuWork* other = p_.awaited(w, cause)) cause = other;
    if (cause && cause->end > launched) {
      back_to(cause->end, What::between, kNone);
      gpu_ = cause;
      return;
    }
    gpu_ = nullptr;
    row_ = step_.step.row;
    if (w.launch == kNone) return;
    back_to(launched, What::launch_delay, w.launch);
    row_ = t_.row_of(w.launch);
  }

  /// When work could begin for all that its launch did: after the call, or, where it began before that returned, since
  /// the call.
  int64_t launched_at(const GpuWork& w) const {
    if (w.launch == kNone) return INT64_MIN;
    return t_.end(w.launch) <= w.start ? t_.end(w.launch) : std::min(t_.start(w.launch), w.start);
  }

  void on_cpu() {
    const Standing s = thread(row_).before(now_);
    if (s.event != kNone && p_.names_.waits(s.event)) {
      const GpuWork* cause = p_.last_ended(p_.by_end_, now_);
      if (cause && cause->end >= t_.start(s.event)) {
        back_to(cause->end, What::wait, s.event);
        gpu_ = cause;
        return;
      }
    }
    // A hop that takes no time may not lead to another for ever.
    if (!p_.is_work(s.event) && hops_ <= threads_.size()) {
      const Elsewhere other = worked_last(s);
      if (other.row != row_) {
        // The step's own thread is the one whose time it is from there to here; it tells that itself, frame by frame.
        if (row_ == step_.step.row)
          back_to(other.reached, s.event == kNone ? What::nothing : What::cpu, s.event, other.before);
        row_ = other.row;
        ++hops_;
        return;
      }
    }
    back_to(s.since, s.event == kNone ? What::nothing : What::cpu, s.event, s.before);
  }

  /// A thread on which an op ended, when and which.
  struct Elsewhere {
    uint32_t row;
    int64_t reached;
    EventId before;
  };
  /// Where an op ended last of the threads this one may have waited for, later than it did anything itself; or this
  /// thread.
  Elsewhere worked_last(const Standing& s) {
    Elsewhere best{row_, s.since, kNone};
    auto look = [&](uint32_t row) {
      const auto& work = p_.work_of_row_[row];
      auto after = std::partition_point(work.begin(), work.end(),
                                        [&](const CriticalPaths::Stretch& w) { return w.from < now_; });
      if (row == row_ || after == work.begin()) return;
      // A thread that still works was not waited for: what it began may be.
      if ((after - 1)->to > now_ && row != step_.step.row) return;
      const int64_t reached = std::min((after - 1)->to, now_);
      if (reached > best.reached) best = {row, reached, (after - 1)->event};
    };
    if (row_ != step_.step.row) look(step_.step.row);
    const bool anyone = s.event != kNone && p_.names_.waiting_frame(s.event);
    for (uint32_t row : anyone ? p_.op_rows_ : p_.helper_rows_) look(row);
    // A thread that had not begun was begun by the step's own.
    if (best.row == row_ && s.event == kNone && s.since == INT64_MIN && row_ != step_.step.row)
      best.row = step_.step.row, best.reached = now_;
    return best;
  }

  ThreadBackwards& thread(uint32_t row) {
    if (!threads_[row]) threads_[row] = std::make_unique<ThreadBackwards>(t_, row, now_);
    return *threads_[row];
  }

  const CriticalPaths& p_;
  const Trace& t_;
  const StepWork& step_;
  int64_t now_;
  uint32_t row_;
  const GpuWork* gpu_ = nullptr;
  size_t hops_ = 0;  ///< since the path last went back in time
  std::vector<std::unique_ptr<ThreadBackwards>> threads_;
  std::vector<PathPiece> path_;
};

std::vector<PathPiece> CriticalPaths::of(const StepWork& step) const { return BackwardWalk(*this, step).run(); }

std::string piece_name(What what, std::string_view name) {
  switch (what) {
    case What::gpu:
      return std::string(name);
    case What::wait:
      return std::string(name) + " (waiting)";
    case What::launch_delay:
      return "between launch and start";
    case What::between:
      return "between two kernels";
    case What::nothing:
      return "no op on the CPU";
    case What::cpu:
      return std::string(name) + " (CPU)";
  }
  return std::string(name);
}

}  // namespace tenon::tracing
