#pragma once
#include <functional>
#include <string_view>

#include "core/sha256.h"

namespace tenon {

/// SHA-256 of the SHA-256 of every 4 MiB of the bytes, one after the other: on all threads, and anyone can work it out
/// with a plain SHA-256. No bytes are one empty piece. `behind` is called with each stretch of up to 256 MiB that is
/// done: its pages can go, and what it throws ends the work.
Sha256Digest tree_digest(std::string_view bytes, const std::function<void(std::string_view stretch)>& behind = {});
inline constexpr size_t kTreeDigestPiece = size_t{4} << 20;

}  // namespace tenon
