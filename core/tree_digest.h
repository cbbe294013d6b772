#pragma once
#include <string_view>

#include "core/sha256.h"

namespace tenon {

/// SHA-256 of the SHA-256 of every 4 MiB of the bytes, one after the other: on all threads, and anyone can work it out
/// with a plain SHA-256. No bytes are one empty piece.
Sha256Digest tree_digest(std::string_view bytes);
inline constexpr size_t kTreeDigestPiece = size_t{4} << 20;

}  // namespace tenon
