#include "engine/formats/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <climits>

#include "core/error.h"

namespace tenon::formats {
namespace {
constexpr int kGzip = 16 + MAX_WBITS;
constexpr size_t kPiece = size_t{1} << 20;
}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.size() > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

std::string gzip(std::string_view bytes) {
  z_stream z{};
  if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("compression could not be started: memory is out");
  std::string out;
  size_t at = 0;
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (z.avail_in == 0 && at < bytes.size()) {
      const size_t part = std::min<size_t>(bytes.size() - at, INT_MAX);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
      z.avail_in = static_cast<uInt>(part);
      at += part;
    }
    const size_t have = out.size();
    out.resize(have + kPiece);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    z.avail_out = kPiece;
    code = deflate(&z, at == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(have + kPiece - z.avail_out);
  }
  deflateEnd(&z);
  return out;
}

std::string gunzip(std::string_view bytes, const std::string& name, size_t limit) {
  std::string out;
  size_t at = 0;
  while (at < bytes.size()) {
    z_stream z{};
    if (inflateInit2(&z, kGzip) != Z_OK) throw Error("decompression could not be started: memory is out");
    struct End {
      z_stream& z;
      ~End() { inflateEnd(&z); }
    } end{z};
    int code = Z_OK;
    while (code != Z_STREAM_END) {
      if (z.avail_in == 0) {
        if (at == bytes.size()) throw Error(fmt::format("{} is cut short", name));
        const size_t part = std::min<size_t>(bytes.size() - at, INT_MAX);
        z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
        z.avail_in = static_cast<uInt>(part);
        at += part;
      }
      const size_t have = out.size();
      out.resize(have + kPiece);
      z.next_out = reinterpret_cast<Bytef*>(out.data() + have);
      z.avail_out = kPiece;
      code = inflate(&z, Z_NO_FLUSH);
      out.resize(have + kPiece - z.avail_out);
      if (code != Z_OK && code != Z_STREAM_END)
        throw Error(fmt::format("{} is damaged: its compressed data does not unpack", name));
      if (out.size() > limit) throw Error(fmt::format("{} unpacks to more than {} bytes", name, limit));
    }
    at -= z.avail_in;
  }
  return out;
}

}  // namespace tenon::formats
