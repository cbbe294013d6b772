#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/op/op.h"
#include "tracing/record/step_record.h"

// Note [Values as of an op]
// A record holds what tensors were when the step had run; ops that write over a tensor (an in-place form, an optimizer)
// leave nothing of what was there before. So what such an op is about to write over is copied just before it runs, once
// for all tensors that share the memory, and TensorRecord::versions says from which op on each copy holds. What nothing
// writes over costs nothing. What is written beside the ops (a gradient that is moved to its place) shows from the next
// op on.
namespace tenon::tracing {

/// Keeps what the tensors of a record held before ops wrote over them, as far as there is room.
class TensorVersions {
 public:
  /// `room`: bytes that the record may still take, counted down; shared with whoever keeps the other values.
  TensorVersions(StepRecord& record, int64_t& room) : record_(record), room_(room) {}

  /// A tensor of the record, with what it holds now where that was copied. `lasting`: others go on writing it when the
  /// step is over.
  void know(int tensor, const Tensor& t, bool lasting, bool copied);
  /// Before an op runs.
  void before(const Call& call, uint32_t seq);
  /// The step has run: the last version of what was written over is what is there now.
  void finish();

 private:
  struct Known {
    int tensor;
    Tensor t;
    bool lasting, copied;
  };
  struct Memory {
    std::vector<Known> tensors;
    uint32_t version = 0;  ///< of the storage when the last op that wrote it had run
    uint32_t written = 0;  ///< that op; 0: none yet
    bool settled = true;   ///< `version` is of after that op
  };
  void write_over(const Tensor& t, uint32_t seq);
  void settle();
  /// What the tensors hold, from the op `from` on.
  void keep(Memory& memory, uint32_t from, bool last);

  StepRecord& record_;
  int64_t& room_;
  std::unordered_map<const Storage*, Memory> memories_;
  std::vector<const Storage*> unsettled_;
};

/// What a tensor holds when an op has run (0: before the first); undefined where it was not kept.
Tensor value_after(const TensorRecord& t, uint32_t seq);
/// Just before an op runs.
inline Tensor value_before(const TensorRecord& t, uint32_t seq) { return value_after(t, seq > 0 ? seq - 1 : 0); }

}  // namespace tenon::tracing
