#include "core/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tenon {
namespace {

/// The number in a file of one; `otherwise` where there is none ("max").
int64_t number_in(const std::string& path, int64_t otherwise) {
  std::ifstream in(path);
  int64_t value = 0;
  return in >> value ? value : otherwise;
}

/// Where this process stands in the tree of control groups; empty where it is not said.
std::string control_group() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return {};
}

}  // namespace

int64_t memory_limit() {
  int64_t limit = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  for (std::string at = control_group(); !at.empty(); at.erase(at.rfind('/'))) {
    limit = std::min(limit, number_in("/sys/fs/cgroup" + at + "/memory.max", limit));
    if (at == "/") break;
  }
  limit = std::min(limit, number_in("/sys/fs/cgroup/memory.max", limit));
  return std::min(limit, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", limit));
}

int64_t peak_memory() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return 1024 * std::atoll(line.c_str() + 6);
  return 0;
}

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace tenon
