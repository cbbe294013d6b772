#pragma once
#include <cstddef>

namespace tenon {

/// Bytes that the CPU pool counts as live for a storage of `bytes`: those of its size class.
size_t pool_block_bytes(size_t bytes);
/// What the system gives for such a block beside them: the header in front.
inline constexpr size_t kPoolHeaderBytes = 64;

}  // namespace tenon
