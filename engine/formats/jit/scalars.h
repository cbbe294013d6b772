#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/jit/value.h"

namespace tenon::formats {

class JitGraph;

/// What a function of TorchScript makes of numbers, texts and lists, and of what is known of tensors: torch.size, add,
/// __getitem__, ... Nothing where it is none of these, or is given tensors to compute with. Throws OnnxUnsupported
/// where only a run knows the answer.
std::optional<JitValue> jit_scalar(JitGraph& graph, const std::string& function, std::vector<JitValue>& args,
                                   const std::vector<std::pair<std::string, JitValue>>& named,
                                   const std::string& scope);

bool is_jit_scalar(const std::string& function);

}  // namespace tenon::formats
