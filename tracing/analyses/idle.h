#pragma once
#include <array>
#include <string>
#include <vector>

#include "tracing/analyses/activity.h"

// When the GPU has nothing to do inside of a step, and why.
namespace tenon::tracing {

// Note [Why a GPU stands still]
// A gap ends with some work. Until the call that launches it is done, the GPU waits for the CPU: for data, for the way
// back out of a wait for the GPU itself, for an op, or for code between ops. From then on the work waits in the queue,
// and the reason is looked for in this order: it is a collective, which begins when the other ranks are there; the wait
// is as short as it is between any two kernels; the profiler writes its own buffers down, or a call takes or frees
// memory of the device or loads code meanwhile, which hold everything up; its stream waits for an event of another
// stream, as recorded or, where such waits are not recorded, because the work before the gap ran on another stream.
// What is left has no reason in the trace: other processes or contexts on the device leave no sign in it.

enum class GapReason : uint8_t {
  data,           ///< the CPU loads data
  sync,           ///< the CPU had waited for the GPU, so nothing was queued
  host,           ///< an op or a call had not launched the work yet
  no_op,          ///< the same, and no op ran on the CPU
  communication,  ///< launched: a collective waits for other ranks
  pause,          ///< launched: no longer than between any two kernels
  profiler,       ///< launched, while the profiler wrote its buffers
  allocation,     ///< launched, while a call took or freed memory of the device, or loaded code
  stream,         ///< launched: its stream waits for another
  unknown,        ///< launched: nothing in the trace says why
};
inline constexpr int kGapReasons = 10;
/// "host", "no_op", ...: as programs read it
const char* name(GapReason reason);
/// "the CPU was loading data": what follows "because"
const char* because(GapReason reason);
/// The work was launched and the GPU stood still all the same.
constexpr bool queued(GapReason r) { return r >= GapReason::communication; }

struct Gap {
  int64_t from = 0, to = 0;
  GapReason reason = GapReason::unknown;
};

/// Gaps by reason; the parts add up to the whole.
struct Idle {
  struct Sum {
    int64_t time = 0;
    Sight longest;
  };
  int64_t busy = 0, idle = 0;
  std::array<Sum, kGapReasons> by = {};
  int64_t waits = 0;  ///< gaps that began while the CPU waited for the GPU
  int64_t gaps = 0, longest = 0, longest_at = 0;
  int64_t time(GapReason r) const { return by[static_cast<size_t>(r)].time; }
  const Sight& sight(GapReason r) const { return by[static_cast<size_t>(r)].longest; }
  /// Of all work that was launched, collectives aside.
  int64_t queued_time() const;
  Idle& operator+=(const Idle& other);
};

class IdleTimes {
 public:
  explicit IdleTimes(const traces::Trace& trace);
  const HostWork& host() const { return *host_; }
  /// In the order of time; what is next to each other may be of one gap. `sum`, if given, becomes what they add up to.
  std::vector<Gap> gaps(const StepWork& step, Idle* sum = nullptr) const;
  Idle of(const StepWork& step) const;

 private:
  void explain_queued(const StepWork& step, size_t next, const GpuWork* before, Interval queued,
                      std::vector<Gap>& into) const;
  const traces::Trace& trace_;
  std::shared_ptr<const HostWork> host_;
  bool told_to_wait(const StepWork& step, size_t work) const;
  std::vector<std::vector<traces::EventId>> stream_waits_;
};

}  // namespace tenon::tracing
