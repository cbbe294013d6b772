#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "engine/data/idx.h"

// The reader takes a path: a file in memory has one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = memfd_create("idx", 0);
  if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  try {
    tenon::data::read_idx("/proc/self/fd/" + std::to_string(fd), 3);
  } catch (const tenon::Error&) {
  }
  try {
    tenon::data::idx_header({reinterpret_cast<const char*>(data), size}, "a file");
  } catch (const tenon::Error&) {
  }
  return 0;
}
