#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/disk.h"
#include "core/error.h"

namespace tenon {
namespace {

constexpr size_t kPart = 4 << 20;

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw Error(path + ": " + what + ": " + std::strerror(code));
}

/// The disk begins with a large part while the next is made: sync() then waits for little.
void start_disk([[maybe_unused]] int fd, [[maybe_unused]] uint64_t at, [[maybe_unused]] uint64_t bytes) {
#if defined(SYNC_FILE_RANGE_WRITE)
  if (bytes >= kPart / 4)
    ::sync_file_range(fd, static_cast<off_t>(at), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
#endif
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::string read_file(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) fail(path, "cannot be opened", errno);
  struct stat st {};
  if (::fstat(file.fd, &st) != 0) fail(path, "cannot be read", errno);
  if (S_ISDIR(st.st_mode)) throw Error(path + " is a folder, not a file");
  std::string out;
  out.resize(static_cast<size_t>(st.st_size));
  size_t at = 0;
  while (true) {
    if (at == out.size()) out.resize(at + 65536);  // also where the size is not known beforehand, as for pipes
    const ssize_t n = ::read(file.fd, out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read", errno);
    if (n == 0) break;
    at += static_cast<size_t>(n);
  }
  out.resize(at);
  return out;
}

FileWriter::FileWriter(const std::string& path) : path_(path) {
  struct stat st {};
  replace_whole_ = ::stat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode);  // not for /dev/stdout and pipes
  half_ = replace_whole_ ? path + ".part-" + std::to_string(::getpid()) : path;
  fd_ = ::open(half_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(errno);
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (replace_whole_) ::unlink(half_.c_str());
}

void FileWriter::fail(int code, uint64_t missing) {
  if (!is_no_space(code)) tenon::fail(path_, "cannot be written", code);
  std::string hint = "Free some space.";
  if (replace_whole_) {
    // What the half file took is free again when it goes; the sum is told with it.
    struct stat st {};
    const int64_t ours = fd_ >= 0 && ::fstat(fd_, &st) == 0 ? static_cast<int64_t>(st.st_blocks) * 512 : 0;
    const uint64_t needed = written_ + missing;
    hint = needed ? space_hint(path_, "this file needs at least", needed, ours) : space_hint(path_);
  }
  throw no_space(code, path_, "it was not written", hint);
}

void FileWriter::put(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(fd_, bytes.data() + at, std::min(bytes.size() - at, kPart));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno, bytes.size() - at);
    at += static_cast<size_t>(n);
    written_ += static_cast<uint64_t>(n);
    if (replace_whole_) start_disk(fd_, written_ - static_cast<uint64_t>(n), static_cast<uint64_t>(n));
  }
}

void FileWriter::sync() {
  if (replace_whole_ && ::fsync(fd_) != 0 && errno != EINVAL) fail(errno);
}

void FileWriter::commit() {
  sync();
  commit_unsynced();
}

void FileWriter::commit_unsynced() {
  if (replace_whole_ && std::rename(half_.c_str(), path_.c_str()) != 0) fail(errno);
  ::close(fd_);
  fd_ = -1;
}

void write_file(const std::string& path, std::string_view bytes) {
  FileWriter file(path);
  file.put(bytes);
  file.commit();
}

}  // namespace tenon
