#pragma once
#include "core/state.h"
#include "core/tensor.h"

namespace tenon {

struct OpDef;
struct AutocastState;

/// Mixed precision for a scope on this thread, as torch.autocast: ops get their floating-point inputs by the policy in
/// their OpInfo (Amp::low: in `low`; Amp::f32: in f32); f64 and integers stay as they are. Backward runs each op in the
/// types its forward ran in. Casts of leaves that require a gradient (parameters) are kept until the scope ends. `low`
/// is f16 or bf16; throws for another. With enabled == false, it switches an outer scope off.
class AutocastScope {
 public:
  explicit AutocastScope(DType low, bool enabled = true);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;

 private:
  AutocastState* outer_;
  uint32_t saved_mode_;
};
/// Whether a scope is on for this thread, and its low type.
bool autocast_enabled(DType* low = nullptr);

/// Runs an op on inputs of other types where the op's definition or autocast asks for it; false where they are right as
/// they are.
bool dispatch_cast(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out);

}  // namespace tenon
