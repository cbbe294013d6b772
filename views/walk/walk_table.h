#pragma once
#include <string>
#include <vector>

#include "tracing/record/step_walk.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row an op of the step, in the order in which they ran.
Table walk_ops_table(const tracing::StepRecord& r);
/// A row a tensor that an op reads or gives, with its values before and after it.
Table walk_tensors_table(const tracing::StepRecord& r, uint32_t seq);
/// A row a memory that is there while an op runs, the largest first, named by the first tensor in it.
Table walk_alive_table(const tracing::StepRecord& r, const std::vector<tracing::TensorLife>& lives, uint32_t seq);
/// "conv2d #12 of 143 · forward · features.0"
std::string cursor_text(const tracing::StepRecord& r, uint32_t seq);
/// "34 memories, 12.3 MiB"
std::string alive_text(const tracing::StepRecord& r, const std::vector<tracing::TensorLife>& lives, uint32_t seq);
/// "stopped at relu #14: max_abs(output(*)) > 1 (3.2)", or that no break holds on the way.
std::string walk_run_text(const tracing::StepRecord& r, const std::vector<tracing::WalkBreak>& breaks,
                          const tracing::WalkRun& run);
}  // namespace tenon::views
