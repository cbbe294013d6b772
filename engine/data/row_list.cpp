#include "engine/data/row_list.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace tenon::data {
namespace {

constexpr int64_t kMostListed = 100'000'000;  // a stretch is written out

/// Reads a number from the front of `text`; false where there is none.
bool take_row(std::string_view& text, int64_t& row) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
  if (error != std::errc() || row < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

}  // namespace

std::vector<int64_t> parse_rows(const std::string& text, const std::string& key) {
  const auto wrong = [&] {
    return Error::usage(key + ": \"" + text + "\" is no list of rows", "Rows count from 0, as in 96, 120-130");
  };
  std::vector<int64_t> rows;
  std::string_view rest = text;
  skip_blanks(rest);
  while (!rest.empty()) {
    int64_t first = 0;
    if (!take_row(rest, first)) throw wrong();
    int64_t last = first;
    skip_blanks(rest);
    if (!rest.empty() && rest.front() == '-') {
      rest.remove_prefix(1);
      skip_blanks(rest);
      if (!take_row(rest, last) || last < first) throw wrong();
      skip_blanks(rest);
    }
    if (last - first + static_cast<int64_t>(rows.size()) >= kMostListed) throw wrong();
    for (int64_t r = first; r <= last; ++r) rows.push_back(r);
    if (rest.empty()) break;
    if (rest.front() != ',') throw wrong();
    rest.remove_prefix(1);
    skip_blanks(rest);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::string rows_text(const std::vector<int64_t>& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    text += (text.empty() ? "" : ", ") + std::to_string(rows[i]);
    if (end - i > 1) text += "-" + std::to_string(rows[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace tenon::data
