#pragma once
#include <cstring>
#include <string>
#include <string_view>

#include "tracing/trace/column_file.h"

namespace tenon {

/// Bytes of a store with the hash of them at their end, as whoever means harm would see to.
inline std::string sealed(std::string bytes) {
  if (bytes.size() < sizeof(uint64_t)) return bytes;
  const size_t hashed = bytes.size() - sizeof(uint64_t);
  const uint64_t hash = traces::content_hash(std::string_view(bytes).substr(0, hashed));
  std::memcpy(bytes.data() + hashed, &hash, sizeof hash);
  return bytes;
}

}  // namespace tenon
