#pragma once
#include <string>

#include "tracing/analyses/finding.h"

namespace tenon::tracing {

/// Every op that there is: its kind, gradient, ONNX operator, kernels, and where it is written.
Finding list_ops();

/// An op as it is defined: what it takes, how autocast and half precision treat it, its gradient and its decomposition
/// as the ops that they run (seen on the op's own sample, forward and backward), what it costs, and its source. Throws
/// Error (usage) with near names where there is no such op.
Finding op_definition(const std::string& name);

}  // namespace tenon::tracing
