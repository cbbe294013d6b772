#include "engine/data/text_encoding.h"

#include <cstring>

#include <array>
#include <cstdint>

#include "core/utf8.h"

namespace tenon::data {
namespace {

void append_utf8(std::string& to, uint32_t c) {
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xC0 | c >> 6);
    to += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    to += static_cast<char>(0xE0 | c >> 12);
    to += static_cast<char>(0x80 | (c >> 6 & 63));
    to += static_cast<char>(0x80 | (c & 63));
  } else {
    to += static_cast<char>(0xF0 | c >> 18);
    to += static_cast<char>(0x80 | (c >> 12 & 63));
    to += static_cast<char>(0x80 | (c >> 6 & 63));
    to += static_cast<char>(0x80 | (c & 63));
  }
}

constexpr uint32_t kUnknown = 0xFFFD;
// Windows-1252 from 0x80 to 0x9F, where Latin-1 has only control characters.
constexpr std::array<uint16_t, 32> kWindows = {0x20AC,   kUnknown, 0x201A, 0x0192, 0x201E, 0x2026,   0x2020, 0x2021,
                                               0x02C6,   0x2030,   0x0160, 0x2039, 0x0152, kUnknown, 0x017D, kUnknown,
                                               kUnknown, 0x2018,   0x2019, 0x201C, 0x201D, 0x2022,   0x2013, 0x2014,
                                               0x02DC,   0x2122,   0x0161, 0x203A, 0x0153, kUnknown, 0x017E, 0x0178};

std::string from_utf16(std::string_view bytes) {
  bool big = false;
  size_t at = 0;
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) big = bytes[0] == '\xFE', at = 2;
  auto unit = [&](size_t i) {
    const auto a = static_cast<uint8_t>(bytes[i]), b = static_cast<uint8_t>(bytes[i + 1]);
    return static_cast<uint32_t>(big ? a << 8 | b : b << 8 | a);
  };
  std::string text;
  text.reserve(bytes.size() / 2);
  for (; at + 1 < bytes.size(); at += 2) {
    uint32_t c = unit(at);
    if (c >= 0xD800 && c < 0xDC00 && at + 3 < bytes.size() && (unit(at + 2) & 0xFC00) == 0xDC00) {
      c = 0x10000 + ((c & 0x3FF) << 10 | (unit(at + 2) & 0x3FF));
      at += 2;
    } else if (c >= 0xD800 && c < 0xE000) {
      c = kUnknown;  // half of a pair
    }
    append_utf8(text, c);
  }
  if (at < bytes.size()) append_utf8(text, kUnknown);
  return text;
}

}  // namespace

const char* name(Encoding e) { return e == Encoding::utf8 ? "UTF-8" : e == Encoding::latin1 ? "Latin-1" : "UTF-16"; }

Encoding find_encoding(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return Encoding::utf16;
  size_t bad = 0;
  return is_utf8(bytes, bad) ? Encoding::utf8 : Encoding::latin1;
}

std::string to_utf8(std::string_view bytes, Encoding from) {
  if (from == Encoding::utf16) return from_utf16(bytes);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  if (from == Encoding::utf8) return std::string(bytes);
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (char b : bytes) {
    const auto c = static_cast<uint8_t>(b);
    append_utf8(text, c >= 0x80 && c < 0xA0 ? kWindows[c - size_t{0x80}] : c);
  }
  return text;
}

}  // namespace tenon::data
