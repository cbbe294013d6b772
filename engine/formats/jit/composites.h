#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/formats/jit/value.h"

namespace tenon::formats {

class JitGraph;

/// What PyTorch's functions that stand for several operators are made of: convolutions by the name of their padding,
/// and the one function that its transformer layers become when they are traced without gradients. Nothing where it is
/// none of these. Throws OnnxUnsupported as JitGraph::call().
std::optional<JitValue> jit_composite(JitGraph& graph, const std::string& op, const std::vector<JitValue>& args,
                                      const std::string& scope);

bool is_jit_composite(const std::string& op);

}  // namespace tenon::formats
