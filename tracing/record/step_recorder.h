#pragma once
#include <memory>
#include <string>

#include "tracing/record/step_record.h"

namespace tenon {
class TrainingSession;
}

namespace tenon::tracing {

struct RecordOptions {
  int64_t keep_bytes =
      int64_t{2} << 30;  ///< values of tensors kept in the record; those that come later keep their shape only
  /// Say where values stopped being finite also when loss and gradients did not notice: an update that overflowed shows
  /// a step later.
  bool look_at_updates = false;
  /// Run it once more for the clocks and the memory history; without, the record has values alone.
  bool clocks = true;
};

/// Runs the session's next step with every instrument on and returns what was seen; the session then stands after that
/// step. Where the step is not finite, the record says where it began (StepRecord::nan). See Note [Two passes].
std::shared_ptr<const StepRecord> record_step(TrainingSession& session, const std::string& run,
                                              const RecordOptions& options = {});

/// The same of one sample of the test split: its forward and backward in eval mode, without an update
/// (TrainingSession::probe). The record's step is the one the session stands after.
std::shared_ptr<const StepRecord> record_sample(TrainingSession& session, const std::string& run, int64_t test_row,
                                                const RecordOptions& options = {});

}  // namespace tenon::tracing
