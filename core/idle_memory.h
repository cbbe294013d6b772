#pragma once
#include "core/memory_image.h"

namespace tenon {

/// Where the calling thread lists the headers of tensors that it keeps for reuse: what stands in them is nobody's.
MemorySpan idle_tensor_headers();

}  // namespace tenon
