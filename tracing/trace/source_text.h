#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_pages.h"

namespace tenon::traces {

/// The text of a file as one piece of memory: mapped where it is plain, unpacked into a nameless temporary file and
/// mapped where it is gzip, zstd or a member of a zip. A packed file that is cut short gives what it holds.
class SourceText {
 public:
  /// `member`: of a zip; empty for the only (or first) one. Throws Error naming the file.
  static std::shared_ptr<const SourceText> open(const std::string& path, const std::string& member = {});
  /// Its first bytes, at most `limit`: mapped where it is plain. Fewer where packed data is damaged.
  static std::shared_ptr<const SourceText> open_head(const std::string& path, size_t limit);
  /// Null where the file is gone or is another one than that of the key.
  static std::shared_ptr<const SourceText> open_like(const std::string& path, const struct FileKey& key,
                                                     uint64_t bytes);
  static std::shared_ptr<const SourceText> of(std::string text);
  SourceText(const SourceText&) = delete;

  std::string_view bytes() const { return bytes_; }
  bool cut_short() const { return cut_short_; }
  bool packed() const { return packed_; }
  /// The pages of [from, to) are not needed for now: they no longer count as this process's memory.
  void forget(size_t from, size_t to) const { pages_.forget(from, to); }

 private:
  SourceText() = default;
  void map(int file, size_t bytes, const std::string& path);
  std::string owned_;
  std::string_view bytes_;
  MappedPages pages_;
  bool cut_short_ = false, packed_ = false;
};

/// The first bytes of a file, at most `limit`: unpacked where it is gzip or zstd. Fewer where the data is damaged.
std::string unpacked_head(const std::string& path, size_t limit);
/// "dir/traces.zip!rank0.json" is the member rank0.json of the zip; a plain path has no member.
std::pair<std::string, std::string> split_member(const std::string& path);
/// The traces of a zip; empty where `path` is none.
std::vector<std::string> zip_members(const std::string& path);

}  // namespace tenon::traces
