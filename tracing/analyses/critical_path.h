#pragma once
#include <string>
#include <vector>

#include "tracing/analyses/activity.h"

// The chain of events that a step's length is made of.
namespace tenon::tracing {

/// One stretch of the chain, and the name it goes by.
struct PathPiece {
  enum class What : uint8_t {
    gpu,           ///< work of the GPU
    cpu,           ///< an op, a call or a named stretch of the CPU itself, beside what lies within it
    nothing,       ///< nothing was recorded on the CPU
    launch_delay,  ///< from a launch to the start of its work
    between,       ///< from the end of one work of the GPU to the start of the next, which had been launched
    wait,          ///< the way back from the GPU into the call that waited for it
  };
  int64_t from = 0, to = 0;
  traces::EventId event = traces::kNone;  ///< kNone: nothing was recorded there
  What what = What::nothing;
  traces::EventId after =
      traces::kNone;  ///< on the CPU: what had ended on the thread when the piece began; kNone: the event itself began
};

class CriticalPaths {
 public:
  CriticalPaths(const traces::Trace& trace, const GpuTimeline& gpu);
  /// From the step's beginning to its end; the pieces follow each other without gaps, so their lengths add up to the
  /// step's.
  std::vector<PathPiece> of(const StepWork& step) const;
  /// Whether a piece is time of the CPU in which no op ran: in nothing at all, or in the ProfilerStep around
  /// everything.
  bool is_no_op(const PathPiece& piece) const {
    return piece.what == PathPiece::What::nothing || (piece.what == PathPiece::What::cpu && names_.step(piece.event));
  }

 private:
  friend class BackwardWalk;
  void gather_threads();
  bool is_work(traces::EventId e) const;
  const GpuWork* last_ended(const std::vector<uint32_t>& order, int64_t time) const;
  const GpuWork* awaited(const GpuWork& work, const GpuWork* before) const;

  /// An outermost op or call of a thread.
  struct Stretch {
    int64_t from, to;
    traces::EventId event;
  };

  const traces::Trace& trace_;
  const GpuTimeline& gpu_;
  EventNames names_;
  std::vector<uint32_t> by_end_;                            ///< places in the timeline, by end
  std::vector<std::vector<uint32_t>> by_end_of_row_;        ///< the same for each stream
  std::vector<std::vector<traces::EventId>> waits_of_row_;  ///< recorded waits of a stream for another, by time
  std::vector<std::vector<Stretch>> work_of_row_;           ///< of threads of the CPU, by time
  std::vector<uint32_t> helper_rows_,
      op_rows_;  ///< threads of the CPU that run backward or collectives; that run ops at all
};

/// "volta_sgemm", "aten::add (CPU)", "no op on the CPU", ... of an event's name.
std::string piece_name(PathPiece::What what, std::string_view event_name);

}  // namespace tenon::tracing
