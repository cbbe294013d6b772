#include <algorithm>
#include <cstring>

#include "tracing/trace/scanner.h"

// Text around the events: strings, arguments, what stands before and behind the array.
namespace tenon::traces {
namespace {

constexpr size_t kMetadataBytes = 16384;

void skip_blank(std::string_view t, uint64_t& i) {
  while (i < t.size() && is_blank(t[i])) ++i;
}

/// Behind the string that starts at the quote `i`; the text's end where it has no end.
uint64_t behind_string(std::string_view t, uint64_t i) {
  for (++i; i < t.size(); ++i) {
    if (t[i] == '\\')
      ++i;
    else if (t[i] == '"')
      return i + 1;
  }
  return t.size();
}

/// Behind the value at `i`; strings are skipped as strings, brackets counted.
uint64_t behind_value(std::string_view t, uint64_t i) {
  int depth = 0;
  for (; i < t.size();) {
    char c = t[i];
    if (c == '"') {
      i = behind_string(t, i);
      if (depth == 0) return i;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (depth == 0) return i;
      if (--depth == 0) return i + 1;
    }
    if (depth == 0 && c == ',') return i;
    ++i;
  }
  return i;
}

void put_utf8(std::string& out, uint32_t c) {
  if (c < 0x80)
    out += static_cast<char>(c);
  else if (c < 0x800)
    out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
  else if (c < 0x10000)
    out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
            static_cast<char>(0x80 | (c & 63))};
  else
    out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
            static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
}

bool hex4(std::string_view t, size_t i, uint32_t& v) {
  if (i + 4 > t.size()) return false;
  v = 0;
  for (size_t k = 0; k < 4; ++k) {
    char c = t[i + k];
    uint32_t d = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                 : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                 : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                        : 99;
    if (d == 99) return false;
    v = v * 16 + d;
  }
  return true;
}

/// Length of the UTF-8 character at i, or 0 where there is none.
size_t utf8_length(std::string_view s, size_t i) {
  auto at = [&](size_t k) { return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0u; };
  auto follows = [&](size_t k) { return (at(k) & 0xC0) == 0x80; };
  unsigned c = at(0);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return follows(1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    bool ok = follows(1) && follows(2) && !(c == 0xE0 && at(1) < 0xA0) && !(c == 0xED && at(1) > 0x9F);
    return ok ? 3 : 0;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    bool ok = follows(1) && follows(2) && follows(3) && !(c == 0xF0 && at(1) < 0x90) && !(c == 0xF4 && at(1) > 0x8F);
    return ok ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool mend_utf8(std::string_view raw, std::string& out) {
  size_t i = 0;
  while (i < raw.size()) {
    size_t n = utf8_length(raw, i);
    if (n == 0) break;
    i += n;
  }
  if (i == raw.size()) return false;
  out.assign(raw.substr(0, i));
  while (i < raw.size()) {
    size_t n = utf8_length(raw, i);
    if (n)
      out.append(raw.substr(i, n));
    else
      out += "\xEF\xBF\xBD";
    i += n ? n : 1;
  }
  return true;
}

std::string unescape(std::string_view raw, Mended* mended, uint64_t at) {
  std::string out;
  out.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 >= raw.size()) {
      out += raw[i];
      continue;
    }
    char c = raw[++i];
    uint32_t v = 0, low = 0;
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case '"':
      case '\\':
      case '/':
        out += c;
        break;
      case 'u':
        if (hex4(raw, i + 1, v)) {
          i += 4;
          if (v >= 0xD800 && v < 0xDC00 && raw.substr(i + 1, 2) == "\\u" && hex4(raw, i + 3, low) && low >= 0xDC00 &&
              low < 0xE000) {
            v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
            i += 6;
          }
          put_utf8(out, v >= 0xD800 && v < 0xE000 ? 0xFFFD : v);
          break;
        }
        [[fallthrough]];
      default:
        if (mended) mended->add(Mend::bad_escape, at);
        out += '\\';
        out += c;
    }
  }
  std::string mend;
  if (!mend_utf8(out, mend)) return out;
  if (mended) mended->add(Mend::bad_utf8, at);
  return mend;
}

std::string_view event_extent(std::string_view text, uint64_t at) {
  Mended ignored;
  EventScanner scanner(text, ignored);
  scanner.seek(at);
  RawEvent e;
  if (scanner.next(e, UINT64_MAX) != EventScanner::Result::event || e.at != at) return {};
  uint64_t end = scanner.at();
  // Behind an event that broke off the scanner stands at the next one.
  while (end > at && (is_blank(text[end - 1]) || text[end - 1] == ',')) --end;
  return text.substr(at, end - at);
}

std::vector<std::pair<std::string, std::string>> object_fields(std::string_view object) {
  std::vector<std::pair<std::string, std::string>> all;
  for (uint64_t i = 1; i < object.size();) {
    skip_blank(object, i);
    if (i >= object.size() || object[i] == '}') break;
    if (object[i] != '"') {
      ++i;
      continue;
    }
    uint64_t key_end = behind_string(object, i);
    if (key_end < i + 2) break;
    std::string key = unescape(object.substr(i + 1, key_end - i - 2));
    i = key_end;
    skip_blank(object, i);
    if (i >= object.size() || object[i] != ':') break;
    skip_blank(object, ++i);
    uint64_t end = behind_value(object, i);
    std::string_view value = object.substr(i, end - i);
    while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
    all.emplace_back(std::move(key), value.size() >= 2 && value[0] == '"' ? unescape(value.substr(1, value.size() - 2))
                                                                          : std::string(value));
    i = end;
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> decode_arguments(std::string_view event_text) {
  Mended ignored;
  EventScanner scanner(event_text, ignored);
  RawEvent e;
  if (scanner.next(e, UINT64_MAX) != EventScanner::Result::event || !e.args) return {};
  return object_fields(event_text.substr(e.args, e.args_end - e.args));
}

namespace {

/// Keys of the outermost object from `i` on. Stops behind the `[` of the events where it finds them.
void read_keys(std::string_view text, uint64_t i, Outline& outline) {
  while (i < text.size()) {
    skip_blank(text, i);
    if (i >= text.size()) return;
    if (text[i] == ',') {
      ++i;
      continue;
    }
    if (text[i] != '"') return;
    uint64_t key_end = behind_string(text, i);
    std::string key = unescape(text.substr(i + 1, key_end >= i + 2 ? key_end - i - 2 : 0));
    i = key_end;
    skip_blank(text, i);
    if (i >= text.size() || text[i] != ':') return;
    skip_blank(text, ++i);
    if (key == "traceEvents" && i < text.size() && text[i] == '[' && !outline.found) {
      outline.found = true;
      outline.events_begin = i + 1;
      return;
    }
    uint64_t end = behind_value(text, i);
    std::string_view value = text.substr(i, std::min<uint64_t>(end - i, kMetadataBytes));
    while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
    if (!key.empty() && key.size() < 256 && outline.metadata.size() < 256)
      outline.metadata.emplace_back(std::move(key), std::string(value));
    i = end;
  }
}

}  // namespace

Outline read_head(std::string_view text, Mended& mended) {
  Outline outline;
  uint64_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  skip_blank(text, i);
  if (i >= text.size()) return outline;
  if (text[i] == '[') {
    outline.array_form = outline.found = true;
    outline.events_begin = i + 1;
    return outline;
  }
  if (text[i] != '{') return outline;
  read_keys(text, i + 1, outline);
  if (outline.found) return outline;
  // Something before the events is broken: they are still what they are called.
  for (size_t at = text.find("\"traceEvents\""); at != std::string_view::npos;
       at = text.find("\"traceEvents\"", at + 1)) {
    uint64_t k = at + 13;
    skip_blank(text, k);
    if (k >= text.size() || text[k] != ':') continue;
    skip_blank(text, ++k);
    if (k >= text.size() || text[k] != '[') continue;
    outline.found = true;
    outline.events_begin = k + 1;
    mended.add(Mend::skipped_event, i);
    break;
  }
  return outline;
}

void read_tail(std::string_view text, uint64_t from, Outline& outline, Mended&) { read_keys(text, from, outline); }

}  // namespace tenon::traces
