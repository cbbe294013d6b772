#include "tracing/trace/source_text.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/disk.h"
#include "core/error.h"
#include "tracing/trace/file_key.h"

namespace tenon::traces {
namespace {

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

/// A file without a name where there is room: TMPDIR, else /var/tmp, else /tmp.
int nameless_file() {
  for (const char* folder :
       {std::getenv("TMPDIR"), static_cast<char*>(nullptr), const_cast<char*>("/var/tmp"), const_cast<char*>("/tmp")}) {
    if (!folder || !*folder) continue;
    int fd = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    std::string name = std::string(folder) + "/tenon-unpacked-XXXXXX";
    fd = mkstemp(name.data());
    if (fd >= 0) {
      unlink(name.c_str());
      return fd;
    }
  }
  throw Error("no temporary file could be made to unpack into", "set TMPDIR to a folder with room");
}

void write_all(int fd, const char* data, size_t bytes, const std::string& path) {
  while (bytes) {
    ssize_t n = ::write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int code = errno;
      throw Error(fmt::format("{} could not be unpacked: {}", path, std::strerror(code)),
                  "set TMPDIR to a folder with room", is_no_space(code) ? Error::Kind::no_space : Error::Kind::failure);
    }
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

struct Archive {
  archive* a = archive_read_new();
  ~Archive() { archive_read_free(a); }
};

bool is_packed(std::string_view head) {
  return head.starts_with("\x1f\x8b") || head.starts_with("\x28\xb5\x2f\xfd") || head.starts_with("PK\x03\x04");
}

std::string file_head(const std::string& path) {
  File f{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (f.fd < 0) throw Error(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  char head[8] = {};
  ssize_t n = pread(f.fd, head, sizeof head, 0);
  if (n < 0) throw Error(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  return {head, static_cast<size_t>(n)};
}

void open_archive(archive* a, const std::string& path, bool zip) {
  if (zip)
    archive_read_support_format_zip(a);
  else
    archive_read_support_format_raw(a), archive_read_support_filter_gzip(a), archive_read_support_filter_zstd(a);
  if (archive_read_open_filename(a, path.c_str(), 1 << 20) != ARCHIVE_OK)
    throw Error(
        fmt::format("{} cannot be unpacked: {}", path, archive_error_string(a) ? archive_error_string(a) : "damaged"));
}

bool is_trace_name(std::string_view name) {
  for (std::string_view end : {".json", ".json.gz", ".trace", ".json.zst"})
    if (name.ends_with(end)) return true;
  return false;
}

/// Unpacks into `fd`; false where the data ends before its time.
bool unpack(const std::string& path, const std::string& member, bool zip, int fd) {
  Archive archive;
  open_archive(archive.a, path, zip);
  archive_entry* entry;
  for (;;) {
    int r = archive_read_next_header(archive.a, &entry);
    if (r == ARCHIVE_EOF)
      throw Error(fmt::format("{} has no member {}", path, member.empty() ? "that is a trace" : member));
    if (r < ARCHIVE_WARN)
      throw Error(fmt::format("{} cannot be unpacked: {}", path,
                              archive_error_string(archive.a) ? archive_error_string(archive.a) : "damaged"));
    if (!zip) break;
    const char* name = archive_entry_pathname(entry);
    if (name && (member.empty() ? is_trace_name(name) : member == name)) break;
  }
  // A trace unpacks to some tens of times its size; a bomb to thousands.
  const uint64_t limit = std::max<uint64_t>(uint64_t{1} << 30, std::filesystem::file_size(path) * 300);
  uint64_t total = 0;
  // Block by block as the filter hands them out: what was unpacked before the data breaks off is not lost with a larger
  // buffer.
  for (;;) {
    const void* block;
    size_t n = 0;
    la_int64_t offset;
    int r = archive_read_data_block(archive.a, &block, &n, &offset);
    if (r == ARCHIVE_EOF) return true;
    if (r < ARCHIVE_WARN) return false;
    total += n;
    if (total > limit)
      throw Error(fmt::format("{} unpacks to more than {} times its size", path, 300),
                  "unpack it yourself if that is meant");
    write_all(fd, static_cast<const char*>(block), n, path);
  }
}

}  // namespace

std::string unpacked_head(const std::string& path, size_t limit) {
  std::string out;
  const std::string head = file_head(path);
  if (!is_packed(head) || head.starts_with("PK")) {
    std::ifstream in(path, std::ios::binary);
    out.resize(limit);
    in.read(out.data(), static_cast<std::streamsize>(limit));
    out.resize(static_cast<size_t>(in.gcount()));
    return out;
  }
  Archive archive;
  open_archive(archive.a, path, false);
  archive_entry* entry;
  if (archive_read_next_header(archive.a, &entry) < ARCHIVE_WARN) return out;
  const void* block;
  size_t n = 0;
  la_int64_t offset;
  while (out.size() < limit && archive_read_data_block(archive.a, &block, &n, &offset) == ARCHIVE_OK)
    out.append(static_cast<const char*>(block), std::min(n, limit - out.size()));
  return out;
}

std::pair<std::string, std::string> split_member(const std::string& path) {
  size_t at = path.find(".zip!");
  if (at == std::string::npos) return {path, {}};
  return {path.substr(0, at + 4), path.substr(at + 5)};
}

std::vector<std::string> zip_members(const std::string& path) {
  if (!file_head(path).starts_with("PK\x03\x04")) return {};
  Archive archive;
  open_archive(archive.a, path, true);
  std::vector<std::string> names;
  archive_entry* entry;
  while (archive_read_next_header(archive.a, &entry) == ARCHIVE_OK) {
    const char* name = archive_entry_pathname(entry);
    if (name && is_trace_name(name)) names.push_back(name);
  }
  return names;
}

std::shared_ptr<const SourceText> SourceText::open(const std::string& whole, const std::string& member_given) {
  auto [path, member] = split_member(whole);
  if (!member_given.empty()) member = member_given;
  std::shared_ptr<SourceText> text(new SourceText);
  std::string head = file_head(path);
  File f;
  if (is_packed(head)) {
    text->packed_ = true;
    f.fd = nameless_file();
    text->cut_short_ = !unpack(path, member, head.starts_with("PK"), f.fd);
    // A gzip inside a zip, or of a gzip: once more.
    char inner[4] = {};
    if (pread(f.fd, inner, 4, 0) == 4 && is_packed({inner, 4}) && !std::string_view(inner, 4).starts_with("PK")) {
      File outer{f.fd};
      f.fd = -1;  // or both would close it, should the next line throw
      f.fd = nameless_file();
      text->cut_short_ |= !unpack(fmt::format("/proc/self/fd/{}", outer.fd), {}, false, f.fd);
    }
  } else {
    f.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (f.fd < 0) throw Error(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  }
  struct stat s {};
  if (fstat(f.fd, &s) != 0 || S_ISDIR(s.st_mode)) throw Error(fmt::format("{} is no file that can be read", path));
  text->map(f.fd, static_cast<size_t>(s.st_size), path);
  return text;
}

std::shared_ptr<const SourceText> SourceText::open_head(const std::string& path, size_t limit) {
  if (is_packed(file_head(path))) return of(unpacked_head(path, limit));
  std::shared_ptr<SourceText> text(new SourceText);
  File f{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (f.fd < 0) throw Error(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  struct stat s {};
  if (fstat(f.fd, &s) != 0 || S_ISDIR(s.st_mode)) throw Error(fmt::format("{} is no file that can be read", path));
  text->map(f.fd, std::min(static_cast<size_t>(s.st_size), limit), path);
  return text;
}

std::shared_ptr<const SourceText> SourceText::open_like(const std::string& path, const FileKey& key, uint64_t bytes) {
  try {
    if (file_key(path).hash != key.hash) return nullptr;
    auto text = open(path);
    return text->bytes().size() == bytes ? text : nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

std::shared_ptr<const SourceText> SourceText::of(std::string bytes) {
  std::shared_ptr<SourceText> text(new SourceText);
  text->owned_ = std::move(bytes);
  text->bytes_ = text->owned_;
  return text;
}

void SourceText::map(int file, size_t bytes, const std::string& path) {
  if (bytes == 0) return;
  pages_ = MappedPages(file, bytes, path);
  if (!pages_) throw Error(fmt::format("{} cannot be mapped into memory: {}", path, std::strerror(errno)));
  pages_.expect_in_order();
  bytes_ = pages_.bytes();
}

}  // namespace tenon::traces
