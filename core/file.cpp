#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace tenon {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int code) {
  throw Error(path + ": " + what + ": " + std::strerror(code), code == ENOSPC ? "Free some space and go on." : "");
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

void write_file(const std::string& path, std::string_view bytes) {
  struct stat st {};
  const bool replace_whole = ::stat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode);  // not for /dev/stdout and pipes
  const std::string half = replace_whole ? path + ".part-" + std::to_string(::getpid()) : path;
  Descriptor file{::open(half.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0) fail(path, "cannot be written", errno);
  auto give_up = [&](int code) {
    if (replace_whole) ::unlink(half.c_str());
    fail(path, "cannot be written", code);
  };
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(file.fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) give_up(errno);
    at += static_cast<size_t>(n);
  }
  if (!replace_whole) return;
  if (::fsync(file.fd) != 0 && errno != EINVAL) give_up(errno);
  if (std::rename(half.c_str(), path.c_str()) != 0) give_up(errno);
}

}  // namespace tenon
