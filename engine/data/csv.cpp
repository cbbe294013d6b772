#include "engine/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace tenon::data {
namespace {

char find_separator(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  std::ptrdiff_t most = 0;
  for (char c : {',', ';', '\t', '|'}) {
    auto n = std::count(line.begin(), line.end(), c);
    if (n > most) best = c, most = n;
  }
  return best;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name, char separator)
      : text_(text), name_(name), separator_(separator) {}
  bool done() const { return at_ >= text_.size(); }
  int64_t line() const { return line_; }
  std::vector<std::string> row() {
    std::vector<std::string> fields;
    for (;;) {
      fields.push_back(field());
      if (done()) return fields;
      char c = text_[at_++];
      if (c == separator_) continue;
      if (c == '\r' && !done() && text_[at_] == '\n') ++at_;
      ++line_;
      return fields;
    }
  }

 private:
  bool ends(char c) const { return c == separator_ || c == '\n' || c == '\r'; }
  std::string field() {
    std::string s;
    if (done() || text_[at_] != '"') {
      while (!done() && !ends(text_[at_])) s += text_[at_++];
      return s;
    }
    const int64_t from = line_;
    ++at_;
    for (;; ++at_) {
      if (done()) throw Error(name_ + ", line " + std::to_string(from) + ": a quoted field does not end");
      char c = text_[at_];
      line_ += c == '\n';
      if (c != '"') {
        s += c;
        continue;
      }
      ++at_;
      if (done() || ends(text_[at_])) return s;
      if (text_[at_] != '"')
        throw Error(name_ + ", line " + std::to_string(line_) + ": there is text behind a quoted field",
                    "a quote inside a quoted field is written twice");
      s += '"';
    }
  }

  std::string_view text_;
  const std::string& name_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

Cell csv_cell(const std::string& f, double& value, char decimal) {
  size_t begin = f.find_first_not_of(" \t"), end = f.find_last_not_of(" \t");
  if (begin == f.npos || f == "NA" || f == "N/A" || f == "null" || f == "NULL" || f == "?") return Cell::missing;
  if (f[begin] == '+') ++begin;
  std::string_view text = std::string_view(f).substr(begin, end + 1 - begin);
  char pointed[64];
  if (decimal == ',') {
    if (text.size() > sizeof pointed || text.find('.') != text.npos) return Cell::word;
    std::replace_copy(text.begin(), text.end(), pointed, ',', '.');
    text = {pointed, text.size()};
  }
  const char* last = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), last, value);
  if (rest != last) return Cell::word;
  if (error == std::errc::result_out_of_range) {
    // Too small for a double is 0, too large is none of its numbers.
    const bool small = text.find("e-") != text.npos || text.find("E-") != text.npos ||
                       text.substr(text[0] == '-' ? 1 : 0).starts_with("0.");
    value = 0;
    return small ? Cell::number : Cell::not_finite;
  }
  if (error != std::errc{}) return Cell::word;
  return std::isfinite(value) ? Cell::number : Cell::not_finite;
}

namespace {

char find_decimal(const Table& t) {
  if (t.separator == ',') return '.';
  bool commas = false;
  double v = 0;
  for (const auto& row : t.rows)
    for (const std::string& f : row) {
      if (f.find_first_of(".,") == f.npos) continue;
      if (f.find('.') != f.npos && csv_cell(f, v, '.') == Cell::number) return '.';
      commas |= csv_cell(f, v, ',') == Cell::number;
    }
  return commas ? ',' : '.';
}

/// The text as UTF-8; what is as it should be is not copied.
std::string_view decoded(std::string_view text, const std::string& name, const CsvOptions& options, Encoding& encoding,
                         std::string& copy) {
  encoding = options.encoding.value_or(find_encoding(text));
  if (encoding == Encoding::utf8) {
    size_t bad = 0;
    if (!is_utf8(text, bad))
      throw Error(name + ", line " +
                      std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(bad), '\n')) +
                      ": it is no UTF-8 from here on",
                  "name the encoding: data.encoding = latin-1");
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    return text;
  }
  return copy = to_utf8(text, encoding);
}

}  // namespace

Table parse_csv(std::string_view bytes, const std::string& name, const CsvOptions& options) {
  Table table;
  std::string copy;
  const std::string_view text = decoded(bytes, name, options, table.encoding, copy);
  if (text.substr(0, 4096).find('\0') != text.npos) throw Error(name + " is no table of text: it holds zero bytes");
  table.separator = options.separator ? options.separator : find_separator(text);
  Reader reader(text, name, table.separator);
  while (!reader.done()) {
    int64_t line = reader.line();
    auto row = reader.row();
    if (row.size() == 1 && row[0].empty()) continue;  // an empty line
    if (!table.rows.empty() && row.size() != table.rows[0].size())
      throw Error(name + ", line " + std::to_string(line) + ": it has " + std::to_string(row.size()) +
                      " fields; the first line has " + std::to_string(table.rows[0].size()),
                  "give every line the same number of fields, or say what separates them: data.separator");
    table.rows.push_back(std::move(row));
    table.lines.push_back(line);
  }
  if (table.rows.empty()) throw Error(name + " is empty");
  table.decimal = options.decimal ? options.decimal : find_decimal(table);
  table.header = options.header == 1;
  if (options.header < 0) {
    auto numbers = [&](const std::vector<std::string>& row) {
      double v = 0;
      return std::count_if(row.begin(), row.end(),
                           [&](const std::string& f) { return csv_cell(f, v, table.decimal) == Cell::number; });
    };
    // Without a number anywhere, names that differ from each other are taken for a header.
    auto names = table.rows[0];
    std::sort(names.begin(), names.end());
    bool distinct = std::adjacent_find(names.begin(), names.end()) == names.end();
    table.header = table.rows.size() > 1 && distinct && numbers(table.rows[0]) == 0;
  }
  if (table.header) {
    table.columns = std::move(table.rows[0]);
    table.rows.erase(table.rows.begin());
    table.lines.erase(table.lines.begin());
  } else {
    for (size_t i = 0; i < table.rows[0].size(); ++i) table.columns.push_back("column " + std::to_string(i + 1));
  }
  if (table.rows.empty()) throw Error(name + " holds a header and nothing else");
  return table;
}

}  // namespace tenon::data
