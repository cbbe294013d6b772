#include "core/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

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

/// The sum of the numbers behind some words at the beginning of lines ("MemAvailable:"); `otherwise` where a file has
/// none of them.
int64_t sum_in(const std::string& path, std::initializer_list<std::string_view> words, int64_t otherwise) {
  std::ifstream in(path);
  int64_t sum = 0, value = 0;
  bool any = false;
  for (std::string line, word; std::getline(in, line);) {
    std::istringstream parts(line);
    if (parts >> word >> value && std::find(words.begin(), words.end(), word) != words.end()) sum += value, any = true;
  }
  return any ? sum : otherwise;
}

/// What is left below the limit of a control group; INT64_MAX where it has none.
int64_t left_in(const std::string& group) {
  const int64_t limit = number_in(group + "/memory.max", INT64_MAX);
  if (limit == INT64_MAX) return limit;
  // Pages of files count as taken, and are given up for others.
  return limit - number_in(group + "/memory.current", 0) +
         sum_in(group + "/memory.stat", {"inactive_file", "active_file"}, 0);
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

int64_t available_memory() {
  int64_t left = sum_in("/proc/meminfo", {"MemAvailable:", "SwapFree:"}, INT64_MAX);
  if (left != INT64_MAX) left *= 1024;
  for (std::string at = control_group(); !at.empty(); at.erase(at.rfind('/'))) {
    left = std::min(left, left_in("/sys/fs/cgroup" + at));
    if (at == "/") break;
  }
  left = std::min(left, left_in("/sys/fs/cgroup"));
  const std::string older = "/sys/fs/cgroup/memory/memory.";
  if (const int64_t limit = number_in(older + "limit_in_bytes", INT64_MAX); limit < memory_limit())
    left = std::min(left, limit - number_in(older + "usage_in_bytes", 0) +
                              sum_in(older + "stat", {"total_inactive_file", "total_active_file"}, 0));
  return std::max<int64_t>(left, 0);
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
