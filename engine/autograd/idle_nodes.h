#pragma once
#include "core/memory_image.h"

namespace tenon {

/// Where the calling thread lists the nodes of graphs that it keeps for reuse: what stands in them is nobody's.
MemorySpan idle_nodes();

}  // namespace tenon
