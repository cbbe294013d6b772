#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// The whole file; throws Error naming it.
std::string read_file(const std::string& path);

/// A file written piece by piece beside its place; commit() syncs it and puts it there whole. A kill, a full disk or an
/// error on the way leaves the old file or none. Throws Error naming it, of the kind no_space where its disk is full.
/// Every file but a project, which is SQLite's, is written with it.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  void put(std::string_view bytes);
  /// Everything put so far is on the disk: of files that belong together none gets its name before all of them found
  /// room.
  void sync();
  void commit();
  /// commit() without the wait for the disk: after a failure of power the file may be there with other bytes. For what
  /// is checked when it is read, and can be made again.
  void commit_unsynced();

 private:
  [[noreturn]] void fail(int code, uint64_t missing = 0);

  std::string path_, half_;
  bool replace_whole_ = false;
  int fd_ = -1;
  uint64_t written_ = 0;
};
void write_file(const std::string& path, std::string_view bytes);

}  // namespace tenon
