#pragma once
#include <string>
#include <string_view>

namespace tenon {

/// The whole file; throws Error naming it.
std::string read_file(const std::string& path);

/// A file written piece by piece beside its place; commit() syncs it and puts it there whole. A kill, a full disk or an error on the way
/// leaves the old file or none. Throws Error naming it.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  void put(std::string_view bytes);
  void commit();

 private:
  std::string path_, half_;
  bool replace_whole_ = false;
  int fd_ = -1;
};
void write_file(const std::string& path, std::string_view bytes);

}  // namespace tenon
