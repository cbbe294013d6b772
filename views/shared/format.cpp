#include "views/shared/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "views/shared/language.h"

namespace tenon::views {

namespace {
/// Three significant digits without an exponent for numbers in [1, 1024).
std::string three(double v) {
  double a = std::fabs(v);
  if (a >= 99.95) return fmt::format("{:.0f}", v);
  if (a >= 9.995) return fmt::format("{:.1f}", v);
  return fmt::format("{:.2f}", v);
}
std::string scaled(double v, double base, const char* const* units, int count) {
  int u = 0;
  double a = std::fabs(v);
  while (u + 1 < count && a >= base * 0.9995) {
    a /= base;
    v /= base;
    ++u;
  }
  if (u == 0 && v == std::floor(v)) return fmt::format("{:.0f}{}", v, units[0]);
  return three(v) + units[u];
}
std::string odd(double v) { return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"; }
bool ends_with(const std::string& s, const char* tail) {
  return s.size() >= std::string(tail).size() && s.ends_with(tail);
}
}  // namespace

std::string format_bytes(double bytes) {
  static const char* const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return std::isfinite(bytes) ? scaled(bytes, 1024, units, 5) : odd(bytes);
}
std::string format_ns(double ns) {
  if (!std::isfinite(ns)) return odd(ns);
  static const char* const units[] = {" ns", " µs", " ms", " s"};
  return scaled(ns, 1000, units, 4);
}
std::string format_seconds(double s) {
  if (!std::isfinite(s)) return odd(s);
  if (s < 60) return format_ns(s * 1e9);
  int64_t whole = std::llround(s);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}
std::string format_ago(int64_t seconds) {
  constexpr int64_t kHour = 3600, kDay = 24 * kHour, kMonth = 30 * kDay, kYear = 365 * kDay;
  if (seconds < 60) return tr("just now");
  if (seconds < kHour) return tr("{} min ago", seconds / 60);
  if (seconds < kDay) return seconds < 2 * kHour ? tr("1 hour ago") : tr("{} hours ago", seconds / kHour);
  if (seconds < 2 * kMonth) return seconds < 2 * kDay ? tr("1 day ago") : tr("{} days ago", seconds / kDay);
  if (seconds < 2 * kYear) return tr("{} months ago", seconds / kMonth);
  return tr("{} years ago", seconds / kYear);
}
std::string format_count(double n) {
  static const char* const units[] = {"", " k", " M", " G", " T"};
  return std::isfinite(n) ? scaled(n, 1000, units, 5) : odd(n);
}
std::string format_rate(double per_second, const std::string& what) {
  return format_count(per_second) + " " + what + "/s";
}
std::string format_flops(double flops) {
  static const char* const units[] = {" FLOP", " kFLOP", " MFLOP", " GFLOP", " TFLOP"};
  return std::isfinite(flops) ? scaled(flops, 1000, units, 5) : odd(flops);
}
std::string format_percent(double f) {
  if (!std::isfinite(f)) return odd(f);
  double p = f * 100;
  return std::fabs(p) >= 9.95 || p == 0 ? fmt::format("{:.0f} %", p) : fmt::format("{:.1f} %", p);
}
std::string format_value(double v) {
  if (!std::isfinite(v)) return odd(v);
  if (v == 0) return "0";
  double a = std::fabs(v);
  if (v == std::floor(v) && a < 10000) return fmt::format("{:.0f}", v);
  if (a >= 1e5 || a < 1e-3) return fmt::format("{:.2e}", v);
  int whole = a >= 1 ? static_cast<int>(std::floor(std::log10(a))) + 1 : 1;
  return fmt::format("{:.{}f}", v, std::max(0, 4 - whole + (a < 1 ? 1 : 0)));
}
std::string format_exact(double v) { return std::isfinite(v) ? fmt::format("{}", v) : odd(v); }
std::string format_grouped(int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return n < 0 ? "-" + out : out;
}
std::string format_metric(const std::string& metric, double v) {
  if (!std::isfinite(v)) return odd(v);
  std::string m = lower(metric);
  if (ends_with(m, "bytes") || m.find("memory") != std::string::npos) return format_bytes(v);
  if (m.find("samples_per_second") != std::string::npos || ends_with(m, "throughput")) return format_rate(v, "samples");
  if (ends_with(m, "seconds")) return format_seconds(v);
  if (ends_with(m, "_ms")) return format_ns(v * 1e6);
  if (ends_with(m, "_watts")) return fmt::format("{:.0f} W", v);
  if (ends_with(m, "_celsius")) return fmt::format("{:.0f} °C", v);
  if (ends_with(m, "_utilization")) return fmt::format("{:.0f} %", v);
  if (m.find("accuracy") != std::string::npos && v >= 0 && v <= 1) return fmt::format("{:.2f} %", v * 100);
  // A learning rate of 0.00125 is not 0.0013.
  if (const double a = std::fabs(v); a >= 1e-3 && a < 0.1)
    return fmt::format("{:.{}f}", v, 2 - static_cast<int>(std::floor(std::log10(a))));
  return format_value(v);
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string elide_middle(const std::string& text, size_t limit) {
  size_t n = characters(text);
  if (n <= limit) return text;
  if (limit == 0) return {};
  if (limit == 1) return "…";
  size_t head = limit / 2, tail = limit - 1 - head;
  size_t a = 0, seen = 0;
  while (seen < head || (a < text.size() && (text[a] & 0xC0) == 0x80)) {
    if ((text[a] & 0xC0) != 0x80) ++seen;
    ++a;
  }
  size_t b = text.size();
  for (seen = 0; seen < tail;) {
    --b;
    if ((text[b] & 0xC0) != 0x80) ++seen;
  }
  return text.substr(0, a) + "…" + text.substr(b);
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool holds_words(const std::string& text, const std::string& words) {
  const std::string in = lower(text), all = lower(words);
  for (size_t at = 0; at < all.size();) {
    const size_t begin = all.find_first_not_of(' ', at);
    if (begin == all.npos) return true;
    const size_t end = std::min(all.find(' ', begin), all.size());
    if (in.find(all.substr(begin, end - begin)) == in.npos) return false;
    at = end;
  }
  return true;
}

int fuzzy_score(const std::string& query, const std::string& text) {
  if (query.empty()) return 0;
  std::string q = lower(query), t = lower(text);
  size_t found = t.find(q);
  if (found != std::string::npos) {
    bool word = found == 0 || !std::isalnum(static_cast<unsigned char>(t[found - 1]));
    return 1000 - static_cast<int>(std::min<size_t>(found, 200)) + (word ? 200 : 0) -
           static_cast<int>(std::min<size_t>(t.size(), 100)) / 10;
  }
  int score = 0, run = 0;
  size_t at = 0;
  for (char c : q) {
    if (c == ' ') {
      run = 0;
      continue;
    }
    size_t p = t.find(c, at);
    if (p == std::string::npos) return -1;
    run = p == at ? run + 1 : 0;
    bool word = p == 0 || !std::isalnum(static_cast<unsigned char>(t[p - 1]));
    score += 2 + 3 * run + (word ? 8 : 0) - static_cast<int>(std::min<size_t>(p - at, 4));
    at = p + 1;
  }
  return std::max(score, 0);
}

Ticks nice_ticks(double lo, double hi, double most) {
  if (!(hi > lo) || most < 1 || !std::isfinite(hi - lo)) return {lo, 1, 1};
  const double raw = (hi - lo) / most, power = std::pow(10, std::floor(std::log10(raw)));
  const auto of = [&](double step) {
    const double k = std::ceil(lo / step - 1e-9);
    return Ticks{k * step, step, static_cast<int>(std::floor(hi / step + 1e-9) - k) + 1};
  };
  constexpr double kSteps[] = {0.5, 1, 2, 5, 10};
  int i = 1;
  while (i < 4 && kSteps[i] * power < raw * 0.999999) ++i;
  const Ticks t = of(kSteps[i] * power);
  return t.count < 2 && most >= 2 ? of(kSteps[i - 1] * power) : t;
}

}  // namespace tenon::views
