#include "tracing/trace/file_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/sha256.h"
#include "tracing/trace/source_text.h"

namespace tenon::traces {

namespace {
constexpr uint64_t kEdge = 65536;

int64_t changed_ns_of(const struct stat& s) { return s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec; }
}  // namespace

FileKey file_key(const std::string& whole) {
  auto [path, member] = split_member(whole);
  FileKey key;
  key.path = std::filesystem::absolute(path).string() + (member.empty() ? "" : "!" + member);
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  struct stat s {};
  fstat(fd, &s);
  key.bytes = static_cast<uint64_t>(s.st_size);
  key.changed_ns = changed_ns_of(s);
  std::string edges;
  for (uint64_t at : {uint64_t{0}, key.bytes > kEdge ? key.bytes - kEdge : 0}) {
    std::string edge(std::min(kEdge, key.bytes), '\0');
    ssize_t n = pread(fd, edge.data(), edge.size(), static_cast<off_t>(at));
    edges.append(edge, 0, n > 0 ? static_cast<size_t>(n) : 0);
  }
  close(fd);
  key.hash = hex(sha256(edges.data(), edges.size()));
  return key;
}

bool unchanged(const FileKey& key) {
  struct stat s {};
  return stat(split_member(key.path).first.c_str(), &s) == 0 && static_cast<uint64_t>(s.st_size) == key.bytes &&
         changed_ns_of(s) == key.changed_ns;
}

}  // namespace tenon::traces
