#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tenon {

/// Whether bytes are well-formed UTF-8 (RFC 3629); `bad` is the place of the first that is not.
bool is_utf8(std::string_view bytes, size_t& bad);
inline bool is_utf8(std::string_view bytes) {
  size_t bad = 0;
  return is_utf8(bytes, bad);
}

/// Text that people read: a byte that belongs to no character becomes U+FFFD.
std::string as_utf8(std::string_view bytes);

}  // namespace tenon
