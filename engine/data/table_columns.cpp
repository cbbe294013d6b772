#include "engine/data/table_columns.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/error.h"
#include "core/parallel.h"

namespace tenon::data {
namespace {

constexpr const char* kKinds[] = {"number", "words", "out"};

std::string trimmed(const std::string& s) {
  const size_t begin = s.find_first_not_of(" \t"), end = s.find_last_not_of(" \t");
  return begin == s.npos ? "" : s.substr(begin, end + 1 - begin);
}

}  // namespace

Source RowPlaces::source(int64_t row) const {
  const auto f =
      std::upper_bound(files.begin(), files.end(), row, [](int64_t r, const File& file) { return r < file.end; });
  return {f->path, "line " + std::to_string(lines[static_cast<size_t>(row)])};
}

TableRows::TableRows(Table table, std::vector<RowPlaces::File> files)
    : table_(std::move(table)), kinds_(table_.cells.size()), values_(table_.cells.size()) {
  places_ = std::make_shared<const RowPlaces>(RowPlaces{std::move(files), table_.lines});
  parallel_for(static_cast<int64_t>(kinds_.size()), 1 << 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      kinds_[i] = csv_cell(table_.cells[i], values_[i], table_.decimal);
  });
}

void TableRows::add_to(Remark& remark, int64_t row) const {
  if (remark.places.size() < Remark::kMostPlaces)
    remark.add(source(row));
  else
    ++remark.count;
}

const char* name(Column::Kind k) { return kKinds[static_cast<size_t>(k)]; }

int64_t Column::width() const {
  return kind == Kind::number ? 1 : kind == Kind::words ? static_cast<int64_t>(words.size()) : 0;
}

int64_t Column::find(std::string_view word) const {
  const auto at = std::lower_bound(words.begin(), words.end(), word);
  return at != words.end() && *at == word ? at - words.begin() : -1;
}

std::vector<int> column_kinds(const std::string& text, const Table& table, const std::string& key) {
  std::vector<int> kinds(table.columns.size(), -1);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const std::string one = trimmed(text.substr(at, end - at));
    at = end + 1;
    if (one.empty()) continue;
    const size_t sign = one.rfind('=');
    const std::string column = trimmed(one.substr(0, sign)),
                      kind = sign == one.npos ? "" : trimmed(one.substr(sign + 1));
    const auto c = std::find(table.columns.begin(), table.columns.end(), column);
    if (c == table.columns.end()) {
      const std::string near = near_names(column, table.columns.data(), table.columns.size());
      throw Error::usage(
          fmt::format("{}: there is no column \"{}\"{}", key, column, near.empty() ? "" : " (" + near + ")"),
          fmt::format("the table has {}", fmt::join(table.columns, ", ")));
    }
    const auto k = std::find(std::begin(kKinds), std::end(kKinds), kind);
    if (k == std::end(kKinds))
      throw Error::usage(fmt::format("{}: column {} is to be \"{}\"", key, column, kind),
                         "it is number, words or out, as in: age=number; zip=words; id=out");
    kinds[static_cast<size_t>(c - table.columns.begin())] = static_cast<int>(k - std::begin(kKinds));
  }
  return kinds;
}

std::string column_kinds_text(const std::vector<Column>& columns) {
  std::string text;
  for (const Column& c : columns)
    if (c.name.find_first_of(";=") == c.name.npos && c.name == trimmed(c.name) && !c.name.empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : "; ", c.name, name(c.kind));
  return text;
}

namespace {

/// Mean and deviation of a column of numbers; false: a row holds a word, whose place is then `at`.
bool study_numbers(const TableRows& t, size_t column, const std::vector<int64_t>& train, Column& c, int64_t& at) {
  double sum = 0, squares = 0, v = 0, first = 0;
  int64_t n = 0;
  for (int64_t r : train) {
    const Cell cell = t.read(r, column, v);
    if (cell == Cell::missing || cell == Cell::not_finite) continue;
    if (cell != Cell::number) return at = r, false;
    if (n == 0) first = v;
    if (n == 0 || v != first) c.different = n == 0 ? 1 : 2;
    sum += v, squares += v * v, ++n;
  }
  c.mean = n ? sum / static_cast<double>(n) : 0;
  const double variance = n ? squares / static_cast<double>(n) - c.mean * c.mean : 0;
  c.deviation = variance > 1e-24 * (1 + c.mean * c.mean) ? std::sqrt(variance) : 1;
  return true;
}

/// The words of a column; of too many the frequent ones.
void study_words(const TableRows& t, size_t column, const std::vector<int64_t>& train, int64_t most_words, Column& c) {
  std::unordered_map<std::string_view, int64_t> words;
  double v = 0;
  for (int64_t r : train) {
    const Cell cell = t.read(r, column, v);
    if (cell != Cell::missing && cell != Cell::not_finite) ++words[t.cell(r, column)];
  }
  c.different = static_cast<int64_t>(words.size());
  std::vector<std::pair<int64_t, std::string_view>> ranked;
  for (const auto& [w, count] : words) ranked.emplace_back(-count, w);
  const auto kept = std::min(ranked.size(), static_cast<size_t>(most_words));
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept), ranked.end());
  for (size_t i = 0; i < kept; ++i) c.words.emplace_back(ranked[i].second);
  std::sort(c.words.begin(), c.words.end());
}

}  // namespace

Column study_column(const TableRows& t, size_t column, const std::vector<int64_t>& train, int64_t most_words,
                    int kind) {
  Column c;
  c.name = t.table().columns[column];
  if (kind == static_cast<int>(Column::Kind::out)) {
    c.kind = Column::Kind::out;
    return c;
  }
  int64_t word = 0;
  if (kind != static_cast<int>(Column::Kind::words) && study_numbers(t, column, train, c, word)) return c;
  if (kind == static_cast<int>(Column::Kind::number))
    throw Error::usage(fmt::format("{}: {} is \"{}\", and data.columns says that it is a number", t.source(word).text(),
                                   c.name, t.cell(word, column)),
                       fmt::format("data.columns: {}=words or {}=out", c.name, c.name));
  c.kind = Column::Kind::words;
  study_words(t, column, train, most_words, c);
  return c;
}

std::vector<Remark> column_remarks(const TableRows& t, size_t column, const Column& c, const std::vector<int64_t>& all,
                                   int64_t train) {
  std::vector<Remark> remarks;
  if (c.kind == Column::Kind::out) return remarks;
  Remark missing{Remark::Kind::warning, "missing", {}}, bad{Remark::Kind::warning, "not_finite", {}},
      words{Remark::Kind::warning, "words_among_numbers", {}};
  double v = 0;
  for (int64_t r : all) {
    const Cell cell = t.read(r, column, v);
    if (cell == Cell::missing) t.add_to(missing, r);
    if (cell == Cell::not_finite) t.add_to(bad, r);
    if (cell == Cell::word && c.kind == Column::Kind::number) t.add_to(words, r);
  }
  const auto rows = all.size();
  const char* as = c.kind == Column::Kind::number ? "its mean" : "none of its words";
  auto cells = [&](const Remark& r) { return fmt::format("{}: {} of {} cells", c.name, r.count, rows); };
  auto take = [&](Remark& r, const std::string& is) {
    if (r.count == 0) return;
    r.text = fmt::format("{} {}, and count as {}", cells(r), is, as);
    remarks.push_back(std::move(r));
  };
  take(bad, "are no finite number (nan, inf)");
  take(missing, "are missing");
  take(words, "of the test hold a word in a column of numbers");
  auto tell = [&](const char* id, std::string text) {
    remarks.push_back({Remark::Kind::warning, id, std::move(text), {}, 0});
  };
  if (c.different == 1)
    tell("constant", fmt::format("{} is the same in every row of the training set: it tells nothing", c.name));
  if (c.kind == Column::Kind::words && c.different > c.width())
    tell("rare_words", fmt::format("{} has {} different words; the {} most frequent have a place (data.most_words)",
                                   c.name, c.different, c.width()));
  if (c.kind == Column::Kind::words && c.different > 1 && 10 * c.different > 9 * train)
    tell("identifies",
         fmt::format("{} is another word in nearly every row, as a name or a number of the row is: leave it out with "
                     "data.columns = {}=out",
                     c.name, c.name));
  return remarks;
}

}  // namespace tenon::data
