#include "projects/new_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/disk.h"
#include "projects/database.h"

namespace tenon::projects {

namespace {
bool there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Nobody has the database open, and nothing lies beside it: a log that stays behind would be read as one of the file
/// that takes its place. One that was only read has left an empty log, which goes here.
bool free_of_others(const std::string& path) {
  if (there(path + "-journal")) return false;
  if (!there(path + "-wal")) return true;
  try {
    Database old(path, Database::Access::read_write);
    old.script("PRAGMA busy_timeout = 0");
    old.script("PRAGMA journal_mode = DELETE");  // refused while another connection is there
  } catch (const Error&) {
    return false;
  }
  return !there(path + "-wal");
}

[[noreturn]] void taken(const std::string& path) {
  throw Error(fmt::format("{} already exists", path), "Choose another name, or open it.");
}
}  // namespace

void remove_database(const std::string& path) {
  for (const char* tail : {"", "-wal", "-shm", "-journal"}) ::unlink((path + tail).c_str());
}

NewFile::NewFile(const std::string& path, bool replaces)
    : path_(path), half_(fmt::format("{}.new-{}", path, ::getpid())), replaces_(replaces) {
  if (!replaces && there(path)) taken(path);
  struct stat st {};
  if (replaces && ::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    throw Error(fmt::format("{} is no file", path), "Choose another name.");
  if (replaces && !free_of_others(path))
    throw Error(fmt::format("{} is in use, or was not closed: it is not replaced", path),
                "Close it, or choose another name.");
  remove_database(half_);
}

NewFile::~NewFile() { remove_database(half_); }

void NewFile::put() {
  if (!replaces_) {
    if (::link(half_.c_str(), path_.c_str()) == 0) return;
    // Some file systems have no hard links; the name was free a moment ago.
    const int code = errno;
    if (code == EEXIST) taken(path_);
    if (is_no_space(code)) throw no_space(code, path_, "", "");
  }
  if (std::rename(half_.c_str(), path_.c_str()) != 0)
    throw Error(fmt::format("{} cannot be written: {}", path_, std::strerror(errno)));
}

Error NewFile::named(const Error& e) const {
  std::string message = e.message();
  if (size_t at = message.find(half_); at != message.npos) message.replace(at, half_.size(), path_);
  return Error(message, e.hint(), e.kind());
}

}  // namespace tenon::projects
