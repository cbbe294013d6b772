#pragma once
#include <string>
#include <string_view>

namespace tenon::formats {

/// One gzip member.
std::string gzip(std::string_view bytes);
bool is_gzip(std::string_view bytes);
/// All members one after the other. Throws Error naming `name` where the data is damaged or cut short, or unpacks to
/// more than `limit` bytes.
std::string gunzip(std::string_view bytes, const std::string& name, size_t limit = size_t{16} << 30);

}  // namespace tenon::formats
