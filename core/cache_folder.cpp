#include "core/cache_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace tenon::cache {
namespace {

namespace fs = std::filesystem;

std::atomic<int64_t> g_limit = kUsualLimit;

struct Found {
  std::string path, kind;
  int64_t bytes = 0, used_ns = 0;
};

/// The half of a file that a living process still writes: FileWriter names it so.
bool being_written(const std::string& name) {
  const size_t at = name.rfind(".part-");
  if (at == std::string::npos) return false;
  const int pid = std::atoi(name.c_str() + at + 6);
  return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
}

/// Every file there; what cannot be looked at is passed over.
std::vector<Found> files() {
  std::vector<Found> all;
  std::error_code none;
  for (fs::directory_iterator kinds(folder(), none), end; !none && kinds != end; kinds.increment(none)) {
    std::error_code within;
    if (!kinds->is_directory(within) || kinds->is_symlink(within)) continue;
    for (fs::directory_iterator at(kinds->path(), within); !within && at != end; at.increment(within)) {
      struct stat s {};
      const std::string path = at->path().string();
      if (::lstat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode) || being_written(path)) continue;
      all.push_back({path, kinds->path().filename().string(), static_cast<int64_t>(s.st_size),
                     s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec});
    }
  }
  return all;
}

/// A file that is open, and locked as asked; -1 where it cannot be.
int open_locked(const std::string& path, int how) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 && ::flock(fd, how | LOCK_NB) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

/// False where somebody has it open, or it may not be removed.
bool remove(const Found& file) {
  const int fd = open_locked(file.path, LOCK_EX);
  if (fd < 0) return false;
  const bool gone = ::unlink(file.path.c_str()) == 0;
  ::close(fd);
  return gone;
}

}  // namespace

std::string folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg) return std::string(xdg) + "/tenon";
  const char* home = std::getenv("HOME");
  return (home && *home ? std::string(home) + "/.cache" : fs::temp_directory_path().string()) + "/tenon";
}

std::string folder_of(const std::string& kind) { return folder() + "/" + kind; }

void set_limit(int64_t bytes) { g_limit = std::max<int64_t>(bytes, 0); }
int64_t limit() { return g_limit; }

std::map<std::string, Held> held() {
  std::map<std::string, Held> kinds;
  for (const Found& f : files()) {
    Held& of = kinds[f.kind];
    ++of.files;
    of.bytes += f.bytes;
  }
  return kinds;
}

Held held_in_all() {
  Held all;
  for (const auto& [kind, of] : held()) all.files += of.files, all.bytes += of.bytes;
  return all;
}

bool make_room(int64_t more) {
  std::vector<Found> all = files();
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return a.used_ns != b.used_ns ? a.used_ns < b.used_ns : a.path < b.path;
  });
  int64_t bytes = more;
  for (const Found& f : all) bytes += f.bytes;
  for (const Found& f : all) {
    if (bytes <= limit()) break;
    if (remove(f)) bytes -= f.bytes;
  }
  return bytes <= limit();
}

Held empty() {
  Held gone;
  for (const Found& f : files()) {
    if (!remove(f)) continue;
    ++gone.files;
    gone.bytes += f.bytes;
  }
  return gone;
}

bool is_own(const std::string& path) {
  if (!path.starts_with(folder() + "/")) return false;
  const auto own = [](const std::string& at) {
    struct stat s {};
    return ::lstat(at.c_str(), &s) == 0 && !S_ISLNK(s.st_mode) && s.st_uid == ::geteuid() &&
           (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  };
  return own(path) && own(fs::path(path).parent_path().string()) && own(folder());
}

std::shared_ptr<const void> hold(const std::string& path) {
  if (!path.starts_with(folder() + "/")) return nullptr;
  const int fd = open_locked(path, LOCK_SH);
  if (fd < 0) return nullptr;
  ::futimens(fd, nullptr);
  return std::shared_ptr<const void>(new int(fd), [](const void* held) {
    ::close(*static_cast<const int*>(held));
    delete static_cast<const int*>(held);
  });
}

}  // namespace tenon::cache
