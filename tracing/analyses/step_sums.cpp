#include "tracing/analyses/step_sums.h"

#include <algorithm>

namespace tenon::tracing {

using traces::EventId;
using traces::EventKind;
using traces::kNone;
using traces::Lane;
using traces::Trace;
using What = PartKey::What;

namespace {

class Gatherer {
 public:
  Gatherer(const Trace& t, const std::vector<TraceStep>& steps, CallTree& tree)
      : t_(t),
        names_(t),
        tree_(tree),
        parent_(parents(t)),
        calls_(t, names_, tree, parent_),
        steps_(steps),
        after_(t.names(), kNone) {}

  StepSums run() {
    const GpuTimeline gpu(t_);
    const CriticalPaths paths(t_, gpu);
    for (const TraceStep& step : steps_) {
      const StepWork work = step_work(gpu, step);
      sums_.length += static_cast<double>(work.length());
      for (const GpuWork& w : work.work)
        add({calls_.of_gpu(w.event, w.launch), kNone, What::gpu}, w.end - w.start, w.event);
      for (const PathPiece& p : paths.of(work)) {
        PartSum& part = sums_.parts[key(paths, p)];
        part.path += static_cast<double>(p.to - p.from);
        part.see(p.event, p.to - p.from);
      }
    }
    gather_backward();
    for (uint32_t l = 0; l < t_.lanes().size(); ++l)
      if (!t_.rows()[t_.lanes()[l].row].gpu) gather_lane(l);
    sums_.steps = steps_.size();
    sums_.whole = !steps_.empty() && steps_[0].number < 0;
    const double n = static_cast<double>(std::max<size_t>(1, sums_.steps));
    sums_.length /= n;
    for (auto& [k, s] : sums_.parts) s.path /= n, s.work /= n, s.calls /= n;
    return std::move(sums_);
  }

 private:
  /// Time of its own in an event that only stands around others is told by what ran before it: that says where in the
  /// program it is.
  bool around(EventId e) const {
    const EventKind k = t_.kind(e);
    return (k == EventKind::annotation || names_.module(e)) && !names_.data_loading(e) && !names_.optimizer(e);
  }
  uint32_t after(EventId e) {
    if (e == kNone || names_.step(e)) return kNone;
    uint32_t& known = after_[t_.columns().name[e]];
    if (known == kNone) known = calls_.name_of(e);
    return known;
  }
  PartKey key(const CriticalPaths& paths, const PathPiece& p) {
    switch (p.what) {
      case PathPiece::What::gpu:
        return {calls_.of_gpu(p.event, t_.launch_of(p.event)), kNone, What::gpu};
      case PathPiece::What::wait:
        return {calls_.of(p.event), kNone, What::wait};
      case PathPiece::What::launch_delay:
        return {0, kNone, What::launch_delay};
      case PathPiece::What::between:
        return {0, kNone, What::between};
      default:
        break;
    }
    if (paths.is_no_op(p) || around(p.event)) return {calls_.within(p.event), after(p.after), What::gap};
    return {calls_.of(p.event), kNone, names_.waits(p.event) ? What::wait : What::cpu};
  }

  void add(PartKey key, int64_t work, EventId event) {
    PartSum& s = sums_.parts[key];
    s.see(event, work);
    s.work += static_cast<double>(work);
    ++s.calls;
  }

  /// Whether a moment lies in a step that counts. Asked in order of time for each lane.
  bool counts(int64_t time) {
    auto in = [&](size_t i) { return i < steps_.size() && time >= steps_[i].start && time < steps_[i].end; };
    if (in(last_step_)) return true;
    auto it =
        std::upper_bound(steps_.begin(), steps_.end(), time, [](int64_t v, const TraceStep& s) { return v < s.start; });
    if (it == steps_.begin()) return false;
    last_step_ = static_cast<size_t>(it - steps_.begin()) - 1;
    return in(last_step_);
  }

  /// A stretch in which autograd's thread (or one of collectives) works for the step's own, which may wait; and what it
  /// did last.
  struct BackwardRun {
    int64_t from, to;
    EventId last;
  };
  void gather_backward() {
    if (steps_.empty()) return;
    Intervals own_ops;
    std::vector<std::vector<EventId>> nodes(t_.rows().size());
    for (const Lane& lane : t_.lanes())
      for (EventId e = lane.begin; e < lane.end; ++e) {
        const bool op = t_.kind(e) == EventKind::cpu_op;
        if (op && lane.row == steps_[0].row)
          own_ops.emplace_back(t_.start(e), t_.end(e));
        else if ((op && names_.backward(e)) || names_.host_collective(e))
          nodes[lane.row].push_back(e);
      }
    own_ops = merged(std::move(own_ops));
    for (auto& list : nodes) {
      std::sort(list.begin(), list.end(),
                [&](EventId a, EventId b) { return std::pair(t_.start(a), a) < std::pair(t_.start(b), b); });
      for (EventId e : list) {
        if (!runs_.empty() && t_.start(e) >= runs_.back().from && counts(t_.start(e)) && counts(runs_.back().from) &&
            clipped(own_ops, runs_.back().to, t_.start(e)).empty()) {
          BackwardRun& run = runs_.back();
          if (t_.start(e) > run.to) add({0, after(run.last), What::gap}, t_.start(e) - run.to, run.last);
          if (t_.end(e) > run.to) run.to = t_.end(e), run.last = e;
        } else if (t_.duration(e) > 0) {
          runs_.push_back({t_.start(e), t_.end(e), e});
        }
      }
    }
    std::sort(runs_.begin(), runs_.end(), [](const BackwardRun& a, const BackwardRun& b) { return a.from < b.from; });
  }
  /// Time of an event's own, beside what it calls and what it waits for on autograd's thread. Returns how long it is.
  int64_t gap(EventId around_it, EventId before, int64_t from, int64_t to, bool named, bool waits) {
    int64_t own = 0;
    auto part = [&](int64_t end) {
      if (end <= from) return;
      own += end - from;
      if (named && counts(from)) add({calls_.within(around_it), after(before), What::gap}, end - from, around_it);
    };
    if (waits)
      for (auto run =
               std::partition_point(runs_.begin(), runs_.end(), [&](const BackwardRun& r) { return r.to <= from; });
           run != runs_.end() && run->from < to; ++run) {
        part(run->from);
        if (run->to > from) from = run->to, before = run->last;
      }
    part(to);
    return own;
  }

  /// Own time of the events of a lane, found from those of the lane below.
  void gather_lane(uint32_t l) {
    const Lane& lane = t_.lanes()[l];
    const bool deeper = l + 1 < t_.lanes().size() && t_.lanes()[l + 1].row == lane.row,
               waits = !steps_.empty() && lane.row == steps_[0].row;
    EventId c = deeper ? t_.lanes()[l + 1].begin : 0;
    const EventId c_end = deeper ? t_.lanes()[l + 1].end : 0;
    for (EventId e = lane.begin; e < lane.end; ++e) {
      const bool named = around(e), mine = t_.duration(e) > 0 && counts(t_.start(e)),
                 may_wait = waits && (named || t_.kind(e) == EventKind::python || t_.kind(e) == EventKind::annotation);
      int64_t own = 0, reached = t_.start(e);
      EventId before = kNone;
      while (c < c_end && (parent_[c] == kNone || parent_[c] < e)) ++c;
      for (; c < c_end && parent_[c] == e; ++c) {
        if (t_.duration(c) == 0) continue;
        own += gap(e, before, reached, t_.start(c), named, may_wait);
        reached = std::max(reached, t_.end(c));
        before = c;
      }
      own += gap(e, before, reached, t_.end(e), named, may_wait);
      if (named || !mine) continue;
      if (names_.waits(e))
        add({calls_.of(e), kNone, What::wait}, 0, e);
      else if (t_.kind(e) != EventKind::instant && t_.kind(e) != EventKind::async)
        add({calls_.of(e), kNone, What::cpu}, own, e);
    }
  }

  const Trace& t_;
  const EventNames names_;
  CallTree& tree_;
  const std::vector<EventId> parent_;
  CallPaths calls_;
  const std::vector<TraceStep>& steps_;
  std::vector<uint32_t> after_;    ///< by name of the trace
  std::vector<BackwardRun> runs_;  ///< by time
  size_t last_step_ = 0;
  StepSums sums_;
};

}  // namespace

StepSums step_sums(const Trace& t, const std::vector<TraceStep>& steps, CallTree& tree) {
  return Gatherer(t, steps, tree).run();
}

}  // namespace tenon::tracing
