#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

// What an op is in terms of others, for readers of op graphs that have no operator of its meaning.
namespace tenon {

/// Gives the op's first output from its attributes and inputs (undefined where absent), by public ops.
using Decomposition = std::function<Tensor(const void* attrs, const std::vector<Tensor>& in)>;
/// In the file that defines the op:  const bool registered = register_decomposition("silu", ...);
bool register_decomposition(const std::string& op, Decomposition f);
/// Null where there is none.
const Decomposition* find_decomposition(const std::string& op);

}  // namespace tenon
