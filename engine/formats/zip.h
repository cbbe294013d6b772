#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon {
class FileWriter;
}

namespace tenon::formats {

/// The members of a zip archive in memory, from its central directory; zip64 too. Throws Error naming `name`: cut
/// short, a member outside the file, two members of one name or over the same bytes, a name that leaves its folder.
/// Memory is bounded by the directory.
class Zip {
 public:
  struct Member {
    std::string name;
    uint64_t offset = 0;  ///< of its data in the archive
    uint64_t packed = 0, size = 0;
    uint16_t method = 0;  ///< 0 stored, 8 deflated
    uint32_t crc = 0;
  };
  Zip(std::string_view bytes, std::string name);

  const std::vector<Member>& members() const { return members_; }
  const Member* find(const std::string& name) const;
  /// The member's bytes; where they are deflated, unpacked into `unpacked`. Throws where they do not unpack to the size
  /// it claims.
  std::string_view data(const Member& m, std::string& unpacked) const;
  /// Its first bytes, at most `limit`; fewer where they do not unpack.
  std::string head(const Member& m, size_t limit) const;
  bool intact(const Member& m, std::string_view data) const;  ///< by its CRC

 private:
  std::string_view bytes_;
  std::string name_;
  std::vector<Member> members_;
  std::unordered_map<std::string, size_t> by_name_;
};

/// Writes members uncompressed and aligned to 64 bytes, byte for byte as PyTorch does.
class ZipWriter {
 public:
  explicit ZipWriter(FileWriter& file) : file_(file) {}
  void add(const std::string& name, std::string_view data);
  void finish();

 private:
  FileWriter& file_;
  uint64_t at_ = 0, count_ = 0;
  std::string directory_;
};

}  // namespace tenon::formats
