#include "engine/formats/zip.h"

#include <fmt/format.h>
#include <zlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <climits>
#include <cstring>

#include "core/error.h"
#include "core/file.h"

namespace tenon::formats {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kDescriptor = 0x08074b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kCentralBytes = 46, kLocalBytes = 30,
                 kMaxComment = 65535;
constexpr uint32_t kFull = 0xffffffff;
constexpr uint64_t kAlignment = 64;

template <class T>
T get(std::string_view b, size_t at) {
  T v;
  std::memcpy(&v, b.data() + at, sizeof(T));
  return v;
}
template <class T>
void put_number(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}

bool leaves_its_folder(std::string_view name) {
  for (size_t at = 0; at <= name.size();) {
    size_t end = std::min(name.find_first_of("/\\", at), name.size());
    if (name.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return name.empty() || name[0] == '/';
}

// Note [Carry-less multiplication]
// A CRC is the rest of the bytes, read as one polynomial over two numbers, by another. 512 bits are folded into the 512
// that follow them by multiplying with the rests of the distance between them (V. Gopal et al., "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", 2009); what is left at the end are 128 bits with the same rest.
#if defined(__x86_64__)
constexpr size_t kFold = 64;
bool folds_crc() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has;
}
__m128i lane_of(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
[[gnu::target("pclmul,sse4.1")]] __m128i fold(__m128i x, __m128i by, __m128i next) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11)), next);
}
/// Of `n` bytes, a multiple of kFold and at least that.
[[gnu::target("pclmul,sse4.1")]] uLong folded_crc(const char* p, size_t n) {
  const __m128i far = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), near = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  __m128i x[4];
  for (int i = 0; i < 4; ++i) x[i] = lane_of(p + 16 * i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(-1));  // what a CRC begins with
  for (size_t at = kFold; at < n; at += kFold)
    for (int i = 0; i < 4; ++i) x[i] = fold(x[i], far, lane_of(p + at + static_cast<size_t>(16 * i)));
  for (int i = 1; i < 4; ++i) x[i] = fold(x[i - 1], near, x[i]);
  Bytef rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), x[3]);
  return crc32(0xffffffff, rest, sizeof rest);  // begins with nothing: what it begins with is folded in
}
#else
constexpr size_t kFold = 1;
bool folds_crc() { return false; }
uLong folded_crc(const char*, size_t) { return 0; }
#endif

uint32_t crc_of(std::string_view data) {
  size_t at = 0;
  uLong crc = crc32(0, nullptr, 0);
  if (data.size() >= 4 * kFold && folds_crc()) {
    at = data.size() / kFold * kFold;
    crc = folded_crc(data.data(), at);
  }
  while (at < data.size()) {
    const size_t part = std::min<size_t>(data.size() - at, INT_MAX);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(data.data() + at), static_cast<uInt>(part));
    at += part;
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

Zip::Zip(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
  auto fail = [&](const std::string& what) { return Error(fmt::format("{} {}", name_, what)); };
  // The end record is the last thing but for a comment of at most 64 KB.
  if (bytes.size() < kEndBytes) throw fail("is cut short: a zip archive has at least 22 bytes");
  size_t end = bytes.size() - kEndBytes;
  const size_t lowest = end > kMaxComment ? end - kMaxComment : 0;
  while (get<uint32_t>(bytes, end) != kEnd) {
    if (end == lowest) throw fail("is cut short: the directory at the end of a zip archive is missing");
    --end;
  }
  uint64_t count = get<uint16_t>(bytes, end + 10), size = get<uint32_t>(bytes, end + 12),
           start = get<uint32_t>(bytes, end + 16);
  if (end >= kLocatorBytes && get<uint32_t>(bytes, end - kLocatorBytes) == kLocator64) {
    const auto at = get<uint64_t>(bytes, end - kLocatorBytes + 8);
    if (at > bytes.size() || bytes.size() - at < kEnd64Bytes || get<uint32_t>(bytes, at) != kEnd64)
      throw fail("has a damaged zip64 directory");
    count = get<uint64_t>(bytes, at + 32);
    size = get<uint64_t>(bytes, at + 40);
    start = get<uint64_t>(bytes, at + 48);
  }
  if (start > end || size > end - start)
    throw fail(
        fmt::format("has a zip directory of {} bytes at byte {}, outside the file of {}", size, start, bytes.size()));
  if (count > size / kCentralBytes)
    throw fail(fmt::format("claims {} members in a directory of {} bytes", count, size));

  size_t at = start;
  const size_t stop = start + size;
  for (uint64_t i = 0; i < count; ++i) {
    if (stop - at < kCentralBytes || get<uint32_t>(bytes, at) != kCentral)
      throw fail(fmt::format("has a damaged zip directory at member {}", i));
    Member m;
    m.method = get<uint16_t>(bytes, at + 10);
    m.crc = get<uint32_t>(bytes, at + 16);
    m.packed = get<uint32_t>(bytes, at + 20);
    m.size = get<uint32_t>(bytes, at + 24);
    uint64_t local = get<uint32_t>(bytes, at + 42);
    const size_t name_length = get<uint16_t>(bytes, at + 28), extra_length = get<uint16_t>(bytes, at + 30),
                 comment = get<uint16_t>(bytes, at + 32);
    if (name_length + extra_length + comment > stop - at - kCentralBytes)
      throw fail(fmt::format("has a damaged zip directory at member {}", i));
    m.name = bytes.substr(at + kCentralBytes, name_length);
    std::string_view extra = bytes.substr(at + kCentralBytes + name_length, extra_length);
    while (extra.size() >= 4) {
      const auto id = get<uint16_t>(extra, 0);
      const size_t length = std::min<size_t>(get<uint16_t>(extra, 2), extra.size() - 4);
      std::string_view field = extra.substr(4, length);
      if (id == 1)  // zip64: those of the three that did not fit, in this order
        for (auto [value, wide] :
             {std::pair{&m.size, m.size == kFull}, {&m.packed, m.packed == kFull}, {&local, local == kFull}})
          if (wide && field.size() >= 8) {
            *value = get<uint64_t>(field, 0);
            field.remove_prefix(8);
          }
      extra.remove_prefix(4 + length);
    }
    if (leaves_its_folder(m.name)) throw fail(fmt::format("has a member named \"{}\"", m.name));
    auto wrong = [&](const char* what) { return fail(fmt::format("has the member \"{}\" {}", m.name, what)); };
    if (get<uint16_t>(bytes, at + 8) & 1) throw wrong("encrypted");
    if (local > bytes.size() || bytes.size() - local < kLocalBytes || get<uint32_t>(bytes, local) != kLocal)
      throw wrong("whose header is not where the directory says");
    m.offset = local + kLocalBytes + get<uint16_t>(bytes, local + 26) + get<uint16_t>(bytes, local + 28);
    if (m.offset > bytes.size() || m.packed > bytes.size() - m.offset)
      throw wrong("that reaches beyond the end of the file");
    if (m.method != 0 && m.method != 8) throw wrong("compressed in a way other than deflate");
    if (m.method == 0 && m.packed != m.size) throw wrong("of two different sizes");
    if (!by_name_.emplace(m.name, members_.size()).second) throw wrong("twice");
    members_.push_back(std::move(m));
    at += kCentralBytes + name_length + extra_length + comment;
  }
  // Members over the same bytes would let a small file unpack to any size.
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  for (const Member& m : members_) spans.emplace_back(m.offset, m.offset + m.packed);
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first < spans[i - 1].second) throw fail("has members that overlap");
}

const Zip::Member* Zip::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &members_[it->second];
}

std::string Zip::head(const Member& m, size_t limit) const {
  const std::string_view packed = bytes_.substr(m.offset, m.packed);
  if (m.method == 0) return std::string(packed.substr(0, limit));
  std::string out(std::min<uint64_t>(limit, m.size), '\0');
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw Error("decompression could not be started: memory is out");
  // One header and no more: 4 GiB of it are never asked for.
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(std::min<size_t>(packed.size(), UINT32_MAX));
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  while (z.avail_out > 0 && inflate(&z, Z_NO_FLUSH) == Z_OK) {
  }
  out.erase(out.size() - z.avail_out);
  inflateEnd(&z);
  return out;
}

std::string_view Zip::data(const Member& m, std::string& unpacked) const {
  const std::string_view packed = bytes_.substr(m.offset, m.packed);
  if (m.method == 0) return packed;
  auto wrong = [&] {
    return Error(fmt::format("{}: the member \"{}\" does not unpack to the {} bytes it claims", name_, m.name, m.size));
  };
  if (m.size / 1040 > m.packed) throw wrong();  // deflate cannot shrink by more
  unpacked.resize(m.size);
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw Error("decompression could not be started: memory is out");
  size_t from = 0, to = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    const size_t in = std::min<size_t>(packed.size() - from, INT_MAX),
                 out = std::min<size_t>(unpacked.size() - to, INT_MAX);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + from));
    z.avail_in = static_cast<uInt>(in);
    z.next_out = reinterpret_cast<Bytef*>(unpacked.data() + to);
    z.avail_out = static_cast<uInt>(out);
    code = inflate(&z, Z_NO_FLUSH);
    from += in - z.avail_in;
    to += out - z.avail_out;
  }
  inflateEnd(&z);
  if (code != Z_STREAM_END || to != m.size) throw wrong();
  return unpacked;
}

bool Zip::intact(const Member& m, std::string_view data) const { return crc_of(data) == m.crc; }

void ZipWriter::add(const std::string& name, std::string_view data) {
  const uint64_t size = data.size(), at = at_;
  const uint32_t crc = crc_of(data);
  const bool wide = size >= kFull, far = at >= kFull;
  const uint16_t flags = size ? 0x0808 : 0x0800;  // names in UTF-8; sizes follow the data
  std::string zip64;
  if (wide || far) {
    put_number<uint16_t>(zip64, 1);
    put_number<uint16_t>(zip64, static_cast<uint16_t>((wide ? 16 : 0) + (far ? 8 : 0)));
    if (wide) put_number<uint64_t>(zip64, size), put_number<uint64_t>(zip64, size);
    if (far) put_number<uint64_t>(zip64, at);
  }
  const uint64_t pad = (kAlignment - (at + kLocalBytes + name.size() + zip64.size() + 4) % kAlignment) % kAlignment;
  std::string head;
  put_number(head, kLocal);
  put_number<uint16_t>(head, 0);
  put_number(head, flags);
  head.append(18, '\0');  // method, time, date, crc, sizes: the directory has them
  put_number(head, static_cast<uint16_t>(name.size()));
  put_number(head, static_cast<uint16_t>(zip64.size() + 4 + pad));
  head += name + zip64 + "FB";
  put_number(head, static_cast<uint16_t>(pad));
  head.append(pad, 'Z');
  file_.put(head);
  file_.put(data);
  std::string tail;
  if (size) {
    put_number(tail, kDescriptor);
    put_number(tail, crc);
    for (int twice = 0; twice < 2; ++twice) {
      if (zip64.empty())
        put_number(tail, static_cast<uint32_t>(size));
      else
        put_number(tail, size);
    }
  }
  file_.put(tail);
  at_ += head.size() + size + tail.size();

  put_number(directory_, kCentral);
  put_number<uint32_t>(directory_, 0);  // made by, needed
  put_number(directory_, flags);
  directory_.append(6, '\0');  // method, time, date
  put_number(directory_, crc);
  put_number(directory_, wide ? kFull : static_cast<uint32_t>(size));
  put_number(directory_, wide ? kFull : static_cast<uint32_t>(size));
  put_number(directory_, static_cast<uint16_t>(name.size()));
  put_number(directory_, static_cast<uint16_t>(zip64.size()));
  directory_.append(10, '\0');  // comment, disk, attributes
  put_number(directory_, far ? kFull : static_cast<uint32_t>(at));
  directory_ += name + zip64;
  ++count_;
}

void ZipWriter::finish() {
  const uint64_t start = at_, size = directory_.size(), end64 = start + size;
  file_.put(directory_);
  std::string tail;
  put_number(tail, kEnd64);
  put_number<uint64_t>(tail, 44);
  put_number<uint16_t>(tail, 0x031e);
  put_number<uint16_t>(tail, 0x2d);
  put_number<uint64_t>(tail, 0);  // disks
  put_number(tail, count_);
  put_number(tail, count_);
  put_number(tail, size);
  put_number(tail, start);
  put_number(tail, kLocator64);
  put_number<uint32_t>(tail, 0);
  put_number(tail, end64);
  put_number<uint32_t>(tail, 1);
  put_number(tail, kEnd);
  put_number<uint32_t>(tail, 0);
  for (int twice = 0; twice < 2; ++twice) put_number(tail, static_cast<uint16_t>(std::min<uint64_t>(count_, 0xffff)));
  put_number(tail, static_cast<uint32_t>(std::min<uint64_t>(size, kFull)));
  put_number(tail, static_cast<uint32_t>(std::min<uint64_t>(start, kFull)));
  put_number<uint16_t>(tail, 0);
  file_.put(tail);
}

}  // namespace tenon::formats
