#include "app/cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "core/disk.h"
#include "core/error.h"

namespace tenon::app {
namespace {

/// Columns that a UTF-8 text takes, one a code point.
size_t width(const std::string& s) {
  return static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

nlohmann::json finite(const nlohmann::json& j) {
  if (j.is_number_float()) return json_number(j.get<double>());
  if (!j.is_structured()) return j;
  nlohmann::json out = j;
  for (auto& x : out) x = finite(x);
  return out;
}

}  // namespace

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    const int code = errno;
    if (code == EPIPE) throw Error("");  // whoever read has enough: end quietly, with everything kept
    throw Error(std::string("standard output cannot be written: ") + std::strerror(code), "",
                is_no_space(code) ? Error::Kind::no_space : Error::Kind::failure);
  }
}

std::vector<std::vector<std::string>> rows_of(const views::Table& shown, std::vector<bool>& right) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& column : shown.columns) {
    rows[0].push_back(column.title);
    for (char& c : rows[0].back()) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    right.push_back(column.number);
  }
  for (const auto& row : shown.rows) {
    rows.emplace_back();
    for (const auto& cell : row.cells) rows.back().push_back(cell.text);
  }
  return rows;
}

void print_json(const nlohmann::json& j) {
  print(finite(j).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width(row[i]), ' ');
      const bool to_right = i < right.size() && right[i];
      line += (i ? "  " : "") + (to_right ? pad + row[i] : row[i] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string shortened(const std::string& text) {
  constexpr size_t kMost = 90;
  if (text.size() <= kMost) return text;
  size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // no half a character
  return text.substr(0, end) + "...";
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds < 1) return fmt::format("{:.0f} ms", 1e3 * seconds);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto s = static_cast<int64_t>(seconds);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string value_text(double v) { return fmt::format("{:.6g}", v); }

Bar::Bar(std::string what) : what_(std::move(what)) {}
Bar::~Bar() { clear(); }

bool Bar::terminal() {
  static const bool is = ::isatty(STDERR_FILENO) == 1;
  return is;
}

void Bar::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Bar::show(int64_t done, int64_t total, const std::string& tail) {
  if (!terminal()) return;
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  if (shown_ && now - last_ns_ < 80'000'000 && done != total) return;
  last_ns_ = now;
  winsize size{};
  const int columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
  const double share = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  const std::string head = fmt::format("{} {}/{} ", what_, count_text(done), count_text(total)),
                    end = tail.empty() ? "" : "  " + tail;
  const int room = std::clamp(columns - 4 - static_cast<int>(width(head) + width(end)), 0, 40);
  std::string line = head;
  if (room >= 5) {
    const int full = static_cast<int>(std::lround(share * room));
    line += "[";
    for (int i = 0; i < room; ++i) line += i < full ? "━" : i == full ? "╸" : " ";
    line += "]";
  }
  line += end;
  if (width(line) >= static_cast<size_t>(columns)) line = (head + end).substr(0, static_cast<size_t>(columns) - 1);
  std::fputs(("\r" + line + "\x1b[K").c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

projects::Progress Bar::progress() {
  return [this](int64_t done, int64_t total) {
    if (total > 0) show(done, total);  // else nobody knows how much there is
    return !interrupted();
  };
}

void print_table(const views::Table& shown) {
  std::vector<bool> right;
  const auto rows = rows_of(shown, right);
  print("\n" + table(rows, right));
}

}  // namespace tenon::app
