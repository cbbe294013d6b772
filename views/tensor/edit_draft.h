#pragma once
#include <cstdint>
#include <string>

#include "engine/train/tensor_edit.h"
#include "projects/run_driver.h"
#include "tracing/record/step_record.h"

namespace tenon::views {

/// A change of a tensor's values within a recorded step, as a form has it, with which the run goes on as a branch (Note
/// [Edits]).
class EditDraft {
 public:
  /// `seq`: the op one stands at, when it has run; 0: none. Where the tensor is one that an op gave, the op that gave
  /// it last by then is the place.
  EditDraft(const tracing::StepRecord& r, int tensor, uint32_t seq, const Dims& element, double value);

  /// Why this tensor cannot be changed; empty: it can.
  const std::string& refusal() const { return refusal_; }
  const std::string& tensor() const { return tensor_; }
  /// "when linear #4 has run"
  const std::string& when() const { return when_; }
  const TensorEdit& edit() const { return edit_; }

  void set_whole(bool whole);
  bool whole() const { return !edit_.element; }
  void set_how(TensorEdit::How how) { edit_.how = how; }
  /// What it is set to, scaled by, or moved by.
  void set_value(double a) { edit_.a = a; }
  void set_bounds(double low, double high);
  void set_name(const std::string& name) { name_ = name; }
  /// Bounds that are none; empty: it can be.
  std::string fault() const;
  projects::TrainOptions options() const;

 private:
  std::string run_, tensor_, when_, refusal_, name_;
  Dims element_;
  TensorEdit edit_;
};

}  // namespace tenon::views
