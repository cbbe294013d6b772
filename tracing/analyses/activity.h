#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tracing/analyses/event_names.h"
#include "tracing/analyses/intervals.h"
#include "tracing/analyses/trace_analysis.h"

// What a machine did when: the work of a GPU and of the CPU, and what of it belongs to which step.
namespace tenon::tracing {

/// One kernel, copy or fill.
struct GpuWork {
  traces::EventId event = traces::kNone, launch = traces::kNone;
  int64_t start = 0, end = 0;
  uint32_t row = 0;
  bool communication = false, copy = false;
};

/// All work of the GPU, sorted by start. It belongs to the step that launched it; where no launch is known, to the one
/// it began in.
class GpuTimeline {
 public:
  /// Made once a trace, and shared by all who hold one.
  explicit GpuTimeline(const traces::Trace& trace);
  bool empty() const { return data_->all.empty(); }
  size_t size() const { return data_->all.size(); }
  auto begin() const { return data_->all.begin(); }
  auto end() const { return data_->all.end(); }
  const GpuWork& operator[](size_t i) const { return data_->all[i]; }
  /// What was launched in [from, to), sorted by start.
  std::vector<GpuWork> launched_in(int64_t from, int64_t to) const;
  /// The last end of all that was launched before a moment; INT64_MIN where there is nothing.
  int64_t free_at(int64_t time) const;

 private:
  struct Data {
    explicit Data(const traces::Trace& trace);
    std::vector<GpuWork> all;
    std::vector<uint32_t> by_launch;  ///< places in `all`, in the order of their launches
    std::vector<int64_t> launched;    ///< when each of these was
    std::vector<int64_t> last_end;    ///< of all up to each of these
  };
  size_t launched_before(int64_t time) const;
  std::shared_ptr<const Data> data_;
};
std::vector<GpuWork> of_step(const traces::Trace& trace, const GpuTimeline& all, const TraceStep& step);

/// Slices of the CPU that a step's time is told by.
struct HostWork {
  Intervals data, sync, optimizer, backward, ops, communication;  ///< merged, over all threads
  Intervals allocation, profiler;  ///< calls for memory of the device or its code; the profiler's own work
  Intervals runtime;               ///< calls of the GPU's runtime; `sync` is among them
};
/// Made once a trace, and shared by all who hold it.
std::shared_ptr<const HostWork> host_work(const traces::Trace& trace);
/// Recorded waits of a stream for an event of another: by row, in the order of time.
std::vector<std::vector<traces::EventId>> stream_waits(const traces::Trace& trace);

// Note [How long a step lasts]
// The CPU may be done with a step long before the GPU is, and goes on to the next. So a step lasts until both are done
// with it: until its annotation ends or the last work that it launched, whichever is later. It begins with its
// annotation or when all that was launched before is done, whichever is later: what lies before is time of the steps
// before. Thus no moment counts twice, and the lengths of steps that follow each other add up to the time they took
// together.

/// A step, what of the GPU's work it launched, and from when to when it lasts.
struct StepWork {
  TraceStep step;
  int64_t begin = 0, end = 0;
  std::vector<GpuWork> work;
  int64_t length() const { return end - begin; }
};
StepWork step_work(const GpuTimeline& gpu, const TraceStep& step);

/// The steps a request asks for: its one, or all. A first step of several is left out where it is more than twice the
/// median: it warms up.
std::vector<TraceStep> asked_steps(const traces::Trace& trace, const TraceRequest& request);

/// `most` becomes the longest of the stretches where that is longer than itself.
void keep_longest(Sight& most, const Intervals& stretches);

}  // namespace tenon::tracing
