#pragma once
#include <string>
#include <vector>

#include "tracing/record/step_record.h"

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

}  // namespace tenon::tracing
