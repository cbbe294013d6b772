#include "tracing/trace/scanner.h"

#include <algorithm>
#include <charconv>
#include <cstring>

// Note [Broken JSON]
// Traces are written by hand-made printers into files that a kill may cut off, so what is met is near JSON: bare inf
// and nan, quotes and newlines inside strings, backslashes of Windows paths, control characters, a missing quote before
// a key, commas too many and too few. The scanner reads what can only have meant one thing, and counts it. A quote ends
// a value where a comma and a quote, or the end of the object follow it; otherwise it is part of the value. Where
// nothing makes sense, the event is passed over up to the next `{` that starts an event: behind `},` or alone on its
// line. Times are decimal text to the last digit: a double would round what is 19 digits long.

namespace tenon::traces {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kLongestText = 65536;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

}  // namespace

const char* name(Mend m) {
  static constexpr const char* names[kMends] = {"events skipped",
                                                "arguments skipped",
                                                "unescaped quotes",
                                                "invalid escapes",
                                                "control characters",
                                                "invalid UTF-8",
                                                "keys without a quote",
                                                "missing commas",
                                                "times that are no numbers",
                                                "negative durations",
                                                "events without a time",
                                                "begins without an end",
                                                "ends without a begin",
                                                "flows without their other half",
                                                "unknown phases",
                                                "object events",
                                                "events cut short",
                                                "values nested too deep"};
  return names[static_cast<int>(m)];
}

void Mended::add(const Mended& later) {
  for (int i = 0; i < kMends; ++i) {
    if (later.count[i] && !count[i]) first[i] = later.first[i];
    count[i] += later.count[i];
  }
}

bool parse_microseconds(std::string_view text, int64_t& ns) {
  size_t i = 0;
  bool negative = false;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  int64_t whole = 0;
  size_t digits = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, ++digits) {
    if (whole > (INT64_MAX / 1000 - 10) / 10) return false;
    whole = whole * 10 + (text[i] - '0');
  }
  int64_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    int64_t scale = 100;
    bool round = false;
    for (size_t k = 0; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, ++k, ++digits) {
      if (k < 3)
        fraction += (text[i] - '0') * scale, scale /= 10;
      else if (k == 3)
        round = text[i] >= '5';
    }
    fraction += round;
  }
  if (digits == 0) return false;
  int64_t value = whole * 1000 + fraction;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {  // rare, and never of many digits
    long double v = 0;
    if (text[0] == '+') text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    v *= 1000;
    if (error != std::errc() || end != text.data() + text.size() || !(v > -9e18L && v < 9e18L)) return false;
    ns = static_cast<int64_t>(v < 0 ? v - 0.5L : v + 0.5L);
    return true;
  }
  if (i != text.size()) return false;
  ns = negative ? -value : value;
  return true;
}

void EventScanner::skip_blank() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

// Whether the quote at this place ends a string: what stands behind it must be what stands behind strings.
bool EventScanner::ends_string(size_t quote, bool key) const {
  size_t i = quote + 1;
  auto blank = [&] {
    while (i < text_.size() && is_blank(text_[i])) ++i;
  };
  blank();
  if (i >= text_.size()) return true;
  if (key) return text_[i] == ':';
  if (text_[i] == ',') {
    ++i;
    blank();
    return i >= text_.size() || text_[i] == '"' || text_[i] == '}' || is_word(text_[i]);
  }
  if (text_[i] == '}' || text_[i] == ']') {
    ++i;
    blank();
    return i >= text_.size() || text_[i] == ',' || text_[i] == ']' || text_[i] == '}';
  }
  return text_[i] == '"';  // a missing comma
}

// At the opening quote. `careful`: names, in which exporters leave quotes unescaped.
bool EventScanner::read_string(RawEvent::Text& out, bool key, bool careful) {
  const size_t begin = at_ + 1;
  out.quoted = true;
  out.escaped = false;
  bool bare = false;
  for (size_t i = begin; i < text_.size(); ++i) {
    auto c = static_cast<unsigned char>(text_[i]);
    if (c == '\\') {
      out.escaped = true;
      ++i;
      continue;
    }
    if (c == '"') {
      if (careful && !ends_string(i, key)) {
        bare = true;
        continue;
      }
      if (bare) mended_.add(Mend::bare_quote, begin);
      out.raw = text_.substr(begin, i - begin);
      at_ = i + 1;
      return true;
    }
    if (c < 0x20) mended_.add(Mend::control_character, i);
    if (i - begin > kLongestText) {  // never closed; reading on would make the cost of a broken file its square
      at_ = i;
      return false;
    }
  }
  at_ = text_.size();
  return false;
}

// A bare word: a number, true, null, inf, nan.
bool EventScanner::read_value(RawEvent::Text& out) {
  if (at_ >= text_.size()) return false;
  if (text_[at_] == '"') return read_string(out, false, true);
  size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == begin) {
    if (text_[at_] == '{' || text_[at_] == '[') {
      out = {};
      return skip_value(0);
    }
    return false;
  }
  out.raw = text_.substr(begin, at_ - begin);
  out.quoted = out.escaped = false;
  return at_ < text_.size();  // a number that the end of the file cuts off is no number
}

bool EventScanner::read_time(int64_t& ns) {
  RawEvent::Text t;
  const uint64_t at = at_;
  if (!read_value(t)) return false;
  if (!parse_microseconds(t.raw, ns)) {
    ns = 0;
    mended_.add(Mend::bad_number, at);
  }
  return true;
}

bool EventScanner::skip_value(int depth) {
  if (at_ >= text_.size()) return false;
  if (depth > kDeepest) {
    mended_.add(Mend::nesting, at_);
    return false;
  }
  char c = text_[at_];
  if (c == '"') {
    // Inside of arguments strings are as JSON has them; where they are not, the arguments are given up.
    for (size_t i = at_ + 1;;) {
      const void* q = i < text_.size() ? std::memchr(text_.data() + i, '"', text_.size() - i) : nullptr;
      if (!q) {
        at_ = text_.size();
        return false;
      }
      size_t end = static_cast<size_t>(static_cast<const char*>(q) - text_.data());
      size_t back = end;
      while (back > at_ + 1 && text_[back - 1] == '\\') --back;
      if ((end - back) % 2 == 0) {
        at_ = end + 1;
        return true;
      }
      i = end + 1;
    }
  }
  if (c == '{' || c == '[') {
    const char close = c == '{' ? '}' : ']';
    ++at_;
    for (;;) {
      skip_blank();
      if (at_ >= text_.size()) return false;
      if (text_[at_] == close) {
        ++at_;
        return true;
      }
      if (text_[at_] == ',' || text_[at_] == ':') {
        ++at_;
        continue;
      }
      if (text_[at_] == '}' || text_[at_] == ']') return false;
      if (!skip_value(depth + 1)) return false;
    }
  }
  size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  return at_ > begin && at_ < text_.size();
}

bool EventScanner::read_arguments(RawEvent& e) {
  if (text_[at_] != '{') return skip_value(0);
  e.args = at_;
  ++at_;
  for (;;) {
    skip_blank();
    if (at_ >= text_.size()) return false;
    char c = text_[at_];
    if (c == '}') {
      e.args_end = ++at_;
      return true;
    }
    if (c == ',') {
      ++at_;
      continue;
    }
    if (c != '"') return false;
    size_t key = at_ + 1;
    if (!skip_value(0)) return false;
    std::string_view k = text_.substr(key, at_ - key - 1);
    skip_blank();
    if (at_ >= text_.size() || text_[at_] != ':') return false;
    ++at_;
    skip_blank();
    size_t value = at_;
    if (!skip_value(0)) return false;
    if (k == "correlation") {
      std::string_view v = text_.substr(value, at_ - value);
      if (v.size() > 2 && v[0] == '"') v = v.substr(1, v.size() - 2);
      int64_t n = 0;
      bool number = !v.empty() && v.size() < 19;
      for (char d : v) {
        number &= d >= '0' && d <= '9';
        n = n * 10 + (d - '0');
      }
      if (number) e.correlation = n;
    }
  }
}

bool EventScanner::read_field(RawEvent& e, std::string_view key) {
  if (key == "args") {
    const uint64_t at = at_;
    if (read_arguments(e)) return true;
    e.args = e.args_end = 0;
    if (at_ < text_.size() || at >= text_.size()) mended_.add(Mend::skipped_arguments, at);
    return false;
  }
  if (key == "ts") return e.has_ts = read_time(e.ts);
  if (key == "dur") return e.has_dur = read_time(e.dur);
  RawEvent::Text value;
  if (text_[at_] == '{' || text_[at_] == '[') {
    const uint64_t begin = at_;
    if (!skip_value(0)) return false;
    if (key == "id2") e.id2 = text_.substr(begin, at_ - begin);
    return true;
  }
  if (!read_value(value)) return false;
  if (key == "ph")
    e.phase = value.raw.size() == 1 ? value.raw[0] : value.raw.empty() ? 0 : '?';
  else if (key == "name")
    e.name = value;
  else if (key == "cat")
    e.cat = value;
  else if (key == "pid")
    e.pid = value;
  else if (key == "tid")
    e.tid = value;
  else if (key == "id")
    e.id = value;
  else if (key == "bp")
    e.binds_enclosing = value.raw == "e";
  return true;
}

// At `{`. False where no sense could be made of it; what was read up to there stays in `e`.
bool EventScanner::read_event(RawEvent& e) {
  e = {};
  e.at = at_++;
  bool first = true, comma = false;
  for (;;) {
    skip_blank();
    if (at_ >= text_.size()) return false;
    char c = text_[at_];
    if (c == '}') {
      ++at_;
      return true;
    }
    if (c == ',') {
      ++at_;
      comma = true;
      continue;
    }
    if (!first && !comma) mended_.add(Mend::missing_comma, at_), e.repaired = true;
    std::string_view key;
    if (c == '"') {
      RawEvent::Text k;
      if (!read_string(k, true, true)) return false;
      if (k.raw.size() > 256 || k.raw.find('\n') != std::string_view::npos) return false;
      key = k.raw;
    } else if (is_word(c)) {
      size_t begin = at_;
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      key = text_.substr(begin, at_ - begin);
      if (at_ >= text_.size() || text_[at_] != '"') return false;
      ++at_;
      mended_.add(Mend::missing_quote, begin);
      e.repaired = true;
    } else {
      return false;
    }
    skip_blank();
    if (at_ >= text_.size() || text_[at_] != ':') return false;
    ++at_;
    skip_blank();
    if (at_ >= text_.size() || !read_field(e, key)) return false;
    first = comma = false;
  }
}

uint64_t EventScanner::resynchronise(uint64_t from) {
  uint64_t at = likely_event(text_, from, text_.size());
  return at == std::string_view::npos ? text_.size() : at;
}

EventScanner::Result EventScanner::next(RawEvent& e, uint64_t stop) {
  reached_stop_ = false;
  for (;;) {
    skip_blank();
    if (at_ >= text_.size()) return Result::end_of_text;
    char c = text_[at_];
    if (c == ',') {
      ++at_;
      continue;
    }
    if (c == ']') {
      ++at_;
      return Result::end_of_array;
    }
    if (at_ >= stop) {
      reached_stop_ = true;
      return Result::event;
    }
    if (c != '{') {
      mended_.add(Mend::skipped_event, at_);
      at_ = resynchronise(at_ + 1);
      continue;
    }
    const uint64_t begin = at_;
    if (read_event(e)) return Result::event;
    // What is known of it may be enough: the arguments come last.
    const bool usable = e.phase && e.has_ts && (e.phase != 'X' || e.has_dur) && !e.name.raw.empty();
    if (at_ >= text_.size()) {
      // The rest of the file is no event; but a string that was never closed must not swallow the events behind it.
      uint64_t later = resynchronise(begin + 1);
      if (later >= text_.size()) {
        mended_.add(Mend::cut_short, begin);
        at_ = text_.size();
        if (!usable) return Result::end_of_text;
        e.repaired = true;
        return Result::event;
      }
      at_ = begin + 1;
    }
    at_ = resynchronise(usable ? std::max(at_, begin + 1) : begin + 1);
    if (usable) {
      e.repaired = true;
      return Result::event;
    }
    mended_.add(Mend::skipped_event, begin);
  }
}

uint64_t likely_event(std::string_view text, uint64_t from, uint64_t to) {
  for (uint64_t i = from; i < std::min<uint64_t>(to, text.size()); ++i) {
    const void* found = std::memchr(text.data() + i, '{', std::min<uint64_t>(to, text.size()) - i);
    if (!found) return std::string_view::npos;
    i = static_cast<uint64_t>(static_cast<const char*>(found) - text.data());
    uint64_t back = i, ahead = i + 1;
    bool line = false;
    while (back > 0 && is_blank(text[back - 1])) line |= text[--back] == '\n';
    char before = back ? text[back - 1] : '[';
    if (before != ',' && before != '[' && !(line && before == '}')) continue;
    if (before == ',') {
      uint64_t b = back - 1;
      while (b > 0 && is_blank(text[b - 1])) --b;
      if (b == 0 || text[b - 1] != '}') {
        if (!line) continue;
      }
    }
    while (ahead < text.size() && is_blank(text[ahead])) ++ahead;
    if (ahead >= text.size()) return i;
    if (text[ahead] != '"') continue;
    std::string_view key = text.substr(ahead + 1, 5);
    for (std::string_view known :
         {"ph\"", "cat\"", "name\"", "pid\"", "tid\"", "ts\"", "args\"", "id\"", "dur\"", "s\""})
      if (key.starts_with(known)) return i;
  }
  return std::string_view::npos;
}

}  // namespace tenon::traces
