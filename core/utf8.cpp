#include "core/utf8.h"

#include <cstdint>
#include <cstring>

namespace tenon {

bool is_utf8(std::string_view s, size_t& bad) {
  auto at = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  for (size_t i = 0; i < s.size();) {
    bad = i;
    // Eight characters of ASCII at a time.
    uint64_t eight = 0;
    if (i + 8 <= s.size()) {
      std::memcpy(&eight, s.data() + i, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const uint8_t c = at(i);
    const size_t n = c < 0x80                ? 1
                     : c >= 0xC2 && c < 0xE0 ? 2
                     : c >= 0xE0 && c < 0xF0 ? 3
                     : c >= 0xF0 && c < 0xF5 ? 4
                                             : 0;
    if (n == 0 || i + n > s.size()) return false;
    for (size_t k = 1; k < n; ++k)
      if ((at(i + k) & 0xC0) != 0x80) return false;
    // Longer than it had to be, a half of a pair, or past the last character.
    if ((c == 0xE0 && at(i + 1) < 0xA0) || (c == 0xED && at(i + 1) > 0x9F) || (c == 0xF0 && at(i + 1) < 0x90) ||
        (c == 0xF4 && at(i + 1) > 0x8F))
      return false;
    i += n;
  }
  return true;
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  for (size_t bad = 0; !is_utf8(bytes, bad); bytes.remove_prefix(bad + 1)) {
    text += bytes.substr(0, bad);
    text += "\xEF\xBF\xBD";
  }
  return text += bytes;
}

}  // namespace tenon
