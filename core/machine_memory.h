#pragma once
#include <cstdint>

namespace tenon {

/// What a process may take here: the machine's memory, or the limit of the control group it runs in where that is less.
int64_t memory_limit();

}  // namespace tenon
