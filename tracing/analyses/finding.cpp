#include "tracing/analyses/finding.h"

#include <fmt/format.h>
#include <cctype>
#include <cmath>

namespace tenon::tracing {

std::string Table::title() const {
  std::string title = name;
  for (char& c : title)
    if (c == '-' || c == '_') c = ' ';
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

Finding nothing(std::string sentence) {
  Finding f;
  f.ok = false;
  f.sentence = std::move(sentence);
  return f;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string nanoseconds_text(double ns) {
  double a = std::abs(ns);
  if (a >= 1e9) return fmt::format("{:.3g} s", ns / 1e9 >= 1000 ? std::round(ns / 1e9) : ns / 1e9);
  if (a >= 1e6) return fmt::format("{:.4g} ms", ns / 1e6);
  if (a >= 1e3) return fmt::format("{:.4g} µs", ns / 1e3);
  return fmt::format("{:.0f} ns", ns);
}

std::string bytes_text(double bytes) {
  static constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (std::abs(bytes) >= 1024 && u < 4) bytes /= 1024, ++u;
  return fmt::format("{:.{}f} {}", bytes, u ? (std::abs(bytes) < 10 ? 2 : 1) : 0, units[u]);
}

std::string share_text(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string count_text(int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return n < 0 ? "-" + out : out;
}

std::string cell_text(const Cell& cell, Unit unit) {
  if (auto* text = std::get_if<std::string>(&cell)) return *text;
  double v =
      std::holds_alternative<int64_t>(cell) ? static_cast<double>(std::get<int64_t>(cell)) : std::get<double>(cell);
  switch (unit) {
    case Unit::nanoseconds:
    case Unit::time:
      return nanoseconds_text(v);
    case Unit::bytes:
      return bytes_text(v);
    case Unit::share:
      return share_text(v);
    case Unit::count:
      return count_text(static_cast<int64_t>(v));
    default:
      return fmt::format("{:.4g}", v);
  }
}

}  // namespace tenon::tracing
