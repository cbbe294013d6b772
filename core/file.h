#pragma once
#include <string>
#include <string_view>

namespace tenon {

/// The whole file; throws Error naming it.
std::string read_file(const std::string& path);
/// Written beside its place, synced, then put there whole: a kill or a full disk leaves the old file or none. Throws Error naming it.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace tenon
