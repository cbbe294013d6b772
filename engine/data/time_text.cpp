#include "engine/data/time_text.h"

#include <charconv>
#include <chrono>
#include <cmath>

namespace tenon::data {
namespace {

/// Takes pieces from the front of a text.
struct Pieces {
  std::string_view rest;
  bool sign(char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  /// A whole number of `least` to `most` digits.
  bool digits(size_t least, size_t most, int& value) {
    size_t n = 0;
    value = 0;
    while (n < rest.size() && n < most && rest[n] >= '0' && rest[n] <= '9') value = 10 * value + (rest[n++] - '0');
    if (n < least) return false;
    rest.remove_prefix(n);
    return true;
  }
};

bool take_date(Pieces& p, int& year, int& month, int& day) {
  day = 1;
  const Pieces begin = p;
  if (p.digits(4, 4, year)) {
    const char between = p.rest.empty() ? '\0' : p.rest.front();
    if (between != '-' && between != '/') return false;
    p.rest.remove_prefix(1);
    if (!p.digits(1, 2, month)) return false;
    return !p.sign(between) || p.digits(1, 2, day);
  }
  p = begin;
  return p.digits(1, 2, day) && p.sign('.') && p.digits(1, 2, month) && p.sign('.') && p.digits(4, 4, year);
}

/// The time of day in seconds, and how far its zone is ahead of UTC.
bool take_clock(Pieces& p, double& seconds) {
  int hour = 0, minute = 0, second = 0;
  if (!p.digits(1, 2, hour) || !p.sign(':') || !p.digits(2, 2, minute)) return false;
  double part = 0;
  if (p.sign(':')) {
    if (!p.digits(2, 2, second)) return false;
    if (p.sign('.')) {
      int n = 0;
      double unit = 0.1;
      while (p.digits(1, 1, n)) part += n * unit, unit /= 10;
    }
  }
  if (hour > 24 || minute > 59 || second > 60) return false;
  seconds = 3600.0 * hour + 60.0 * minute + second + part;
  p.sign(' ');
  if (p.sign('Z')) return true;
  const bool ahead = !p.rest.empty() && p.rest.front() == '+';
  if (!ahead && (p.rest.empty() || p.rest.front() != '-')) return true;
  p.rest.remove_prefix(1);
  int hours = 0, minutes = 0;
  if (!p.digits(2, 2, hours)) return false;
  if (p.sign(':') && p.rest.empty()) return false;
  if (!p.rest.empty() && !p.digits(2, 2, minutes)) return false;
  seconds += (ahead ? -1 : 1) * (3600.0 * hours + 60.0 * minutes);
  return true;
}

}  // namespace

TimeText parse_time(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  TimeText t;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), t.value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(t.value)) {
    t.kind = TimeText::Kind::number;
    return t;
  }
  Pieces p{text};
  int year = 0, month = 0, day = 0;
  double clock = 0;
  if (!take_date(p, year, month, day)) return {};
  if (!p.rest.empty() && !((p.sign(' ') || p.sign('T')) && take_clock(p, clock) && p.rest.empty())) return {};
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return {};
  const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
  return {TimeText::Kind::date, 86400.0 * static_cast<double>(days) + clock};
}

}  // namespace tenon::data
