#include "engine/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "core/error.h"
#include "engine/data/data_place.h"

namespace tenon::data {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
const std::string kWhere = data_place("the folder that holds the four files of the data set");

class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) throw Error("cannot open " + path + ": " + std::strerror(errno), kWhere);
    gzbuffer(file_, 256 * 1024);
  }
  ~File() { gzclose(file_); }
  File(const File&) = delete;

  /// Up to `n` bytes; fewer at the end of the file.
  int64_t read(void* to, int64_t n) {
    int64_t done = 0;
    while (done < n) {
      int got = gzread(file_, static_cast<char*>(to) + done, static_cast<unsigned>(std::min(n - done, kMegabyte)));
      int code = 0;
      const char* why = gzerror(file_, &code);
      // A gzip stream that stops in its middle is reported as a short file below, with its byte counts.
      if (got < 0 && code != Z_BUF_ERROR)
        throw Error(path_ + " is damaged after " + std::to_string(at_ + done) + " unpacked bytes: " + why, kWhere);
      if (got <= 0) break;
      done += got;
    }
    at_ += done;
    return done;
  }
  int64_t at() const { return at_; }

 private:
  std::string path_;
  gzFile file_;
  int64_t at_ = 0;
};

uint32_t big_endian(const uint8_t* b) {
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
}

}  // namespace

std::string idx_path(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) return path;
  std::string other = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path + ".gz";
  return std::filesystem::exists(other, ec) ? other : path;
}

Idx read_idx(const std::string& wanted, int axes) {
  std::string path = idx_path(wanted);
  if (std::filesystem::is_directory(path)) throw Error("cannot read " + path + ": it is a folder", kWhere);
  File file(path);
  uint8_t head[4 + 4 * kMaxDims];
  int64_t need = 4 + 4 * axes, got = file.read(head, need);
  char text[16];
  if (got >= 4 && big_endian(head) != 0x800u + static_cast<unsigned>(axes)) {
    std::snprintf(text, sizeof text, "0x%08X", big_endian(head));
    char expected[16];
    std::snprintf(expected, sizeof expected, "0x%08X", 0x800u + static_cast<unsigned>(axes));
    throw Error(path + " is no IDX file of bytes with " + std::to_string(axes) + " axes: it begins with " + text +
                    ", not " + expected,
                kWhere);
  }
  if (got < need)
    throw Error(path + " ends after " + std::to_string(got) + " bytes, within its header of " + std::to_string(need),
                kWhere);
  Idx idx;
  double total = 1;
  for (int i = 0; i < axes; ++i) {
    idx.shape.push_back(big_endian(head + 4 + 4 * i));
    total *= static_cast<double>(
        std::max<int64_t>(1, idx.shape[i]));  // a 0 further on must not hide a product that overflows
  }
  if (total > 1e12) throw Error(path + " is damaged: its header says " + to_string(idx.shape) + " values", kWhere);
  int64_t count = idx.shape.product();
  // Memory grows with what is there, not with what a damaged header claims.
  while (static_cast<int64_t>(idx.values.size()) < count) {
    int64_t before = static_cast<int64_t>(idx.values.size()), step = std::min(count - before, 16 * kMegabyte);
    idx.values.resize(static_cast<size_t>(before + step));
    int64_t read = file.read(idx.values.data() + before, step);
    if (read < step)
      throw Error(path + " is cut short: it holds " + std::to_string(need + before + read) + " of " +
                      std::to_string(need + count) + " bytes for " + to_string(idx.shape) + " values",
                  kWhere);
  }
  uint8_t extra;
  if (file.read(&extra, 1) != 0)
    throw Error(path + " holds more than the " + std::to_string(need + count) + " bytes its header says for " +
                    to_string(idx.shape),
                kWhere);
  return idx;
}

IdxHeader idx_header(std::string_view b, const std::string& name) {
  static constexpr std::pair<const char*, uint64_t> kTypes[] = {{"u8", 1},  {"i8", 1},  {"", 0},   {"i16", 2},
                                                                {"i32", 4}, {"f32", 4}, {"f64", 8}};
  auto at = [&](size_t i) { return reinterpret_cast<const uint8_t*>(b.data()) + i; };
  if (b.size() < 4) throw Error(name + " is cut short in its header");
  const size_t type = *at(2) - size_t{8}, axes = *at(3), head = 4 + 4 * axes;
  if (type >= std::size(kTypes) || !kTypes[type].second)
    throw Error(name + " is damaged: its header names a type of value that IDX does not have");
  if (b.size() < head) throw Error(name + " is cut short in its header");
  IdxHeader header{kTypes[type].first, {}};
  uint64_t bytes = kTypes[type].second;
  bool overflow = false;
  for (size_t i = 0; i < axes; ++i) {
    header.shape.push_back(big_endian(at(4 + 4 * i)));
    overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(header.shape.back()), &bytes);
  }
  if (overflow || bytes != b.size() - head) {
    std::string sizes;
    for (int64_t n : header.shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
    throw Error(name + " is damaged: its header says [" + sizes + "] elements of " + header.dtype + ", and " +
                std::to_string(b.size() - head) + " bytes follow");
  }
  return header;
}

}  // namespace tenon::data
