#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/state.h"
#include "views/shared/tokens.h"

namespace tenon::tracing {
struct StepRecord;
struct TensorRecord;
struct OpRecord;
}  // namespace tenon::tracing
namespace tenon::traces {
enum class EventKind : uint8_t;
}

namespace tenon::views {

/// One meaning, one colour, in every view.
Ink ink_of(Phase p);
Ink ink_of(Category c);
Ink ink_of(traces::EventKind kind);
Ink series_ink(int i);
/// Of the runs that are compared, by the order in which they were picked.
Ink compared_ink(int i);
/// "forward", "optimizer step": the words of the window for a phase or category.
std::string word(Phase p);
std::string word(Category c);
/// What a run or a trial has come to, as projects keep it: "finished", "stopped early". Another word stays as it is.
std::string state_word(const std::string& state);
Ink ink_of_state(const std::string& state);
/// Categories in the order in which they are stacked, from the bottom: what stays first.
const std::vector<Category>& stack_order();

/// "f32 [64, 32, 14, 14]"
std::string type_text(const tracing::TensorRecord& t);
/// "conv2d #12"
std::string op_text(const tracing::OpRecord& op);
/// Ops of the step whose output was not finite, ascending; empty where the step is clean.
std::vector<uint32_t> bad_ops(const tracing::StepRecord& r);

}  // namespace tenon::views
