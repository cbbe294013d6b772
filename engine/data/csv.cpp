#include "engine/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/utf8.h"

namespace tenon::data {
namespace {

constexpr size_t kLinesSeen = 1000;

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

/// Cuts a text into fields. A field is a piece of it: what quotes hold is moved together where it stands.
class Reader {
 public:
  Reader(std::string& text, size_t begin, const std::string& name, char separator)
      : text_(text.data()), size_(text.size()), name_(name), separator_(separator), at_(begin) {}
  bool done() const { return at_ >= size_; }
  int64_t line() const { return line_; }
  size_t at() const { return at_; }
  /// Puts the fields of a row behind others; how many there are.
  size_t row(std::vector<std::string_view>& fields) {
    for (size_t n = 1;; ++n) {
      fields.push_back(field());
      if (done()) return n;
      const char c = text_[at_++];
      if (c == separator_) continue;
      if (c == '\r' && !done() && text_[at_] == '\n') ++at_;
      ++line_;
      return n;
    }
  }

 private:
  bool ends(char c) const { return c == separator_ || c == '\n' || c == '\r'; }
  std::string_view field() {
    const size_t begin = at_;
    if (done() || text_[at_] != '"') {
      while (!done() && !ends(text_[at_])) ++at_;
      return {text_ + begin, at_ - begin};
    }
    const int64_t from = line_;
    ++at_;
    size_t to = begin;  // where the next character of the field is put
    for (;; ++at_) {
      if (done()) throw Error(name_ + ", line " + std::to_string(from) + ": a quoted field does not end");
      const char c = text_[at_];
      line_ += c == '\n';
      if (c != '"') {
        text_[to++] = c;
        continue;
      }
      ++at_;
      if (done() || ends(text_[at_])) return {text_ + begin, to - begin};
      if (text_[at_] != '"')
        throw Error(name_ + ", line " + std::to_string(line_) + ": there is text behind a quoted field",
                    "a quote inside a quoted field is written twice");
      text_[to++] = '"';
    }
  }

  char* text_;
  size_t size_;
  const std::string& name_;
  char separator_;
  size_t at_;
  int64_t line_ = 1;
};

}  // namespace

Cell csv_cell(std::string_view f, double& value, char decimal) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  std::string_view text = f;
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.empty() || f == "NA" || f == "N/A" || f == "null" || f == "NULL" || f == "?") return Cell::missing;
  // What begins otherwise is neither a number nor infinity or nan.
  if (std::string_view("0123456789+-.,iInN").find(text[0]) == f.npos) return Cell::word;
  if (text[0] == '+') text.remove_prefix(1);
  char pointed[64];
  if (decimal == ',') {
    if (text.size() > sizeof pointed || text.find('.') != text.npos) return Cell::word;
    std::replace_copy(text.begin(), text.end(), pointed, ',', '.');
    text = {pointed, text.size()};
  }
  const char* last = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), last, value);
  if (rest != last || text.empty()) return Cell::word;
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
  for (std::string_view f : t.cells) {
    if (f.find_first_of(".,") == f.npos) continue;
    if (f.find('.') != f.npos && csv_cell(f, v, '.') == Cell::number) return '.';
    commas |= csv_cell(f, v, ',') == Cell::number;
  }
  return commas ? ',' : '.';
}

/// Makes the text UTF-8, and says where it begins behind its mark.
size_t decode(std::string& text, const std::string& name, const CsvOptions& options, Encoding& encoding) {
  encoding = options.encoding.value_or(find_encoding(text));
  size_t bad = 0;
  if (encoding != Encoding::utf8) {
    text = to_utf8(text, encoding);
  } else if (options.encoding && !is_utf8(text, bad)) {
    throw Error(name + ", line " +
                    std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(bad), '\n')) +
                    ": it is no UTF-8 from here on",
                "name the encoding: data.encoding = latin-1");
  }
  return encoding == Encoding::utf8 && text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

/// Whether the first line is names: no field of it is a number, and they differ from each other.
bool has_header(const Table& t, size_t width) {
  std::vector<std::string_view> first(t.cells.begin(), t.cells.begin() + static_cast<std::ptrdiff_t>(width));
  double v = 0;
  for (std::string_view f : first)
    if (csv_cell(f, v, t.decimal) == Cell::number) return false;
  std::sort(first.begin(), first.end());
  return t.lines.size() > 1 && std::adjacent_find(first.begin(), first.end()) == first.end();
}

}  // namespace

void Table::append(Table other) {
  lines.insert(lines.end(), other.lines.begin(), other.lines.end());
  cells.insert(cells.end(), other.cells.begin(), other.cells.end());
  texts.insert(texts.end(), other.texts.begin(), other.texts.end());
}

Table parse_csv(std::string bytes, const std::string& name, const CsvOptions& options) {
  Table table;
  const size_t begin = decode(bytes, name, options, table.encoding);
  const auto whole = std::make_shared<std::string>(std::move(bytes));
  const std::string_view text = std::string_view(*whole).substr(begin);
  if (text.substr(0, 4096).find('\0') != text.npos) throw Error(name + " is no table of text: it holds zero bytes");
  table.separator = options.separator ? options.separator : find_separator(text);
  Reader reader(*whole, begin, name, table.separator);
  size_t width = 0;
  while (!reader.done()) {
    const int64_t line = reader.line();
    const size_t fields = reader.row(table.cells);
    if (fields == 1 && table.cells.back().empty()) {  // an empty line
      table.cells.pop_back();
      continue;
    }
    if (table.lines.empty()) width = fields;
    if (fields != width)
      throw Error(name + ", line " + std::to_string(line) + ": it has " + std::to_string(fields) +
                      " fields; the first line has " + std::to_string(width),
                  "give every line the same number of fields, or say what separates them: data.separator");
    table.lines.push_back(line);
    if (table.lines.size() == kLinesSeen) {
      // As many more as the first lines say: a vector that grows moves what it holds again and again.
      const size_t rows = text.size() / (reader.at() - begin) * kLinesSeen * 17 / 16;
      table.lines.reserve(rows), table.cells.reserve(rows * width);
    }
  }
  if (table.lines.empty()) throw Error(name + " is empty");
  table.texts.push_back(whole);
  table.decimal = options.decimal ? options.decimal : find_decimal(table);
  table.header = options.header < 0 ? has_header(table, width) : options.header == 1;
  for (size_t i = 0; i < width; ++i)
    table.columns.push_back(table.header ? std::string(table.cells[i]) : "column " + std::to_string(i + 1));
  if (table.header) {
    table.cells.erase(table.cells.begin(), table.cells.begin() + static_cast<std::ptrdiff_t>(width));
    table.lines.erase(table.lines.begin());
  }
  if (table.lines.empty()) throw Error(name + " holds a header and nothing else");
  return table;
}

}  // namespace tenon::data
