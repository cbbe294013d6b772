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

bool csv_missing(const std::string& f) {
  return f.empty() || f == "NA" || f == "N/A" || f == "NaN" || f == "nan" || f == "null" || f == "NULL" || f == "?";
}

bool csv_number(const std::string& f, double& value) {
  size_t begin = f.find_first_not_of(" \t"), end = f.find_last_not_of(" \t");
  if (begin == f.npos || csv_missing(f)) return false;
  if (f[begin] == '+') ++begin;
  auto [rest, error] = std::from_chars(f.data() + begin, f.data() + end + 1, value);
  return error == std::errc{} && rest == f.data() + end + 1 && std::isfinite(value);
}

Table parse_csv(std::string_view text, const std::string& name, const CsvOptions& options) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.substr(0, 4096).find('\0') != text.npos) throw Error(name + " is no table of text: it holds zero bytes");
  Reader reader(text, name, options.separator ? options.separator : find_separator(text));
  Table table;
  while (!reader.done()) {
    int64_t line = reader.line();
    auto row = reader.row();
    if (row.size() == 1 && row[0].empty()) continue;  // an empty line
    if (!table.rows.empty() && row.size() != table.rows[0].size())
      throw Error(name + ", line " + std::to_string(line) + ": it has " + std::to_string(row.size()) +
                      " fields; the first line has " + std::to_string(table.rows[0].size()),
                  "give every line the same number of fields, or say what separates them: data.separator");
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) throw Error(name + " is empty");
  bool header = options.header == 1;
  if (options.header < 0) {
    auto numbers = [](const std::vector<std::string>& row) {
      double v;
      return std::count_if(row.begin(), row.end(), [&](const std::string& f) { return csv_number(f, v); });
    };
    // Without a number anywhere, names that differ from each other are taken for a header.
    auto names = table.rows[0];
    std::sort(names.begin(), names.end());
    bool distinct = std::adjacent_find(names.begin(), names.end()) == names.end();
    header = table.rows.size() > 1 && distinct && numbers(table.rows[0]) == 0;
  }
  if (header) {
    table.columns = std::move(table.rows[0]);
    table.rows.erase(table.rows.begin());
  } else {
    for (size_t i = 0; i < table.rows[0].size(); ++i) table.columns.push_back("column " + std::to_string(i + 1));
  }
  if (table.rows.empty()) throw Error(name + " holds a header and nothing else");
  return table;
}

}  // namespace tenon::data
