#include "core/disk.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace tenon {
namespace {

namespace fs = std::filesystem;

/// The nearest folder above `path` that is there.
fs::path folder_of(const std::string& path) {
  std::error_code code;
  const fs::path whole =
      fs::absolute(path, code);  // of a relative path that is not there yet, weakly_canonical() makes nothing
  fs::path p = fs::weakly_canonical(whole, code);
  if (code) p = whole;
  while (p.has_relative_path() && !fs::is_directory(p, code)) p = p.parent_path();
  return p.empty() ? fs::path("/") : p;
}

/// Where the disk of a folder is mounted: the last folder on the way up that lies on the same device.
fs::path mount_of(fs::path folder) {
  struct stat here {
  }, above{};
  if (::stat(folder.c_str(), &here) != 0) return folder;
  while (folder.has_relative_path()) {
    const fs::path parent = folder.parent_path();
    if (::stat(parent.c_str(), &above) != 0 || above.st_dev != here.st_dev) break;
    folder = parent;
  }
  return folder;
}

std::string mebibytes(double bytes) { return fmt::format("{:.1f} MiB", std::max(bytes, 0.0) / (1 << 20)); }

}  // namespace

bool is_no_space(int code) { return code == ENOSPC || code == EDQUOT || code == EFBIG; }

int64_t free_bytes(const std::string& path) {
  struct statvfs disk {};
  if (::statvfs(folder_of(path).c_str(), &disk) != 0) return -1;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

std::string space_hint(const std::string& path, const std::string& needs, uint64_t bytes, int64_t ours) {
  const int64_t left = free_bytes(path);
  if (left < 0) return "Free some space.";
  std::string hint = fmt::format("The disk of {} holds {} free", mount_of(folder_of(path)).string(),
                                 mebibytes(static_cast<double>(left + ours)));
  if (!needs.empty()) hint += fmt::format("; {} {}", needs, mebibytes(static_cast<double>(bytes)));
  return hint + ". Free some space.";
}

Error no_space(int code, const std::string& path, const std::string& outcome, std::string hint) {
  const char* what = code == EDQUOT  ? "this user's share of its disk is used up"
                     : code == EFBIG ? "it may not grow any further"
                                     : "no space is left on its disk";
  return Error(fmt::format("{}: {}; {}", path, what, outcome), std::move(hint), Error::Kind::no_space);
}

}  // namespace tenon
