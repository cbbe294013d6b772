#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/sealed.h"

namespace tenon {

/// A store in memory, sealed, under a file's name.
class SealedStore {
 public:
  SealedStore(const uint8_t* data, size_t size) : fd_(memfd_create("store", MFD_CLOEXEC)) {
    const std::string bytes = sealed({reinterpret_cast<const char*>(data), size});
    written_ = fd_ >= 0 && write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  ~SealedStore() {
    if (fd_ >= 0) close(fd_);
  }
  SealedStore(const SealedStore&) = delete;
  bool written() const { return written_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
  bool written_ = false;
};

}  // namespace tenon
