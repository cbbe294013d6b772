#pragma once
#include <cstdint>
#include <string>

namespace tenon::traces {

/// What says whether a saved store still belongs to its file.
struct FileKey {
  std::string path;  ///< absolute
  uint64_t bytes = 0;
  int64_t changed_ns = 0;  ///< time of the last change
  std::string hash;        ///< SHA-256 of the first and last 64 KiB
  bool operator==(const FileKey&) const = default;
};
FileKey file_key(const std::string& path);
/// Whether the file still has the size and the time of its last change; the bytes are not looked at.
bool unchanged(const FileKey& key);

}  // namespace tenon::traces
