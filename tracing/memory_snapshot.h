#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tracing/step_record.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::tracing {

/// The memory history of some steps in a row.
struct MemoryRecording {
  struct Step {
    int64_t step = 0, start_ns = 0, end_ns = 0;
  };
  std::vector<AllocEvent> events;
  std::vector<Step> steps;
};
/// Runs `count` steps of the session with the memory history on.
MemoryRecording record_memory(TrainingSession& session, int64_t count);

/// In the structure of torch.cuda.memory._snapshot(), protocol 4. A frame names op, phase and module.
std::string snapshot_pickle(const MemoryRecording& recording);

/// What a snapshot (ours or PyTorch's) holds, in figures.
struct SnapshotInfo {
  int64_t segments = 0, reserved_bytes = 0, active_blocks = 0, active_bytes = 0;
  int64_t events = 0, allocs = 0, frees = 0, out_of_memory = 0;
  int64_t devices = 0;
  int64_t peak_bytes = 0;    ///< of the traced allocations, those alive before the trace included
  int64_t peak_event = 0;    ///< index in the first device's trace
  struct Site {
    std::string frame;       ///< innermost frame
    int64_t bytes = 0, blocks = 0;
  };
  std::vector<Site> at_peak; ///< who was alive at the peak, by frame, largest first
};
SnapshotInfo snapshot_info(std::string_view pickle);

}  // namespace tenon::tracing
