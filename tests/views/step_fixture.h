#pragma once
#include <memory>

#include "tracing/record/step_record.h"
#include "views/shared/selection.h"

namespace tenon::views::testing {

/// A small step by hand: data, a convolution and a linear layer forward and backward, an optimizer op. Ten ops, one
/// loader thread, tensors with values, aliases, gradients and memory whose numbers a test can know.
std::shared_ptr<tracing::StepRecord> small_step();
inline Links small_links() { return Links(small_step()); }

}  // namespace tenon::views::testing
