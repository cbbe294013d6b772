#pragma once
#include "engine/op/op.h"

namespace tenon {

/// Runs an op of a device that has no kernel for it by the CPU's: operands cross to the host, results go back, with the
/// same strides. In a profile the crossings are events of their own inside the op's.
void run_on_host(const Call& call);

}  // namespace tenon
