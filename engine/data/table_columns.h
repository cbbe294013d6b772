#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/csv.h"
#include "engine/data/dataset.h"

namespace tenon::data {

/// Where the rows of a table come from: its files, one behind the other.
struct RowPlaces {
  struct File {
    std::string path;
    int64_t end;  ///< one past its last row, among all
  };
  std::vector<File> files;
  std::vector<int64_t> lines;
  Source source(int64_t row) const;
  /// What the table is called in errors and remarks: its first file.
  const std::string& name() const { return files.front().path; }
};

/// A table whose cells are read once, for they are looked at from several sides.
class TableRows {
 public:
  TableRows(Table table, std::vector<RowPlaces::File> files);
  const Table& table() const { return table_; }
  int64_t rows() const { return table_.rows(); }
  std::string_view cell(int64_t row, size_t column) const { return table_.cell(row, column); }
  Cell read(int64_t row, size_t column, double& value) const {
    const size_t at = static_cast<size_t>(row) * table_.columns.size() + column;
    value = values_[at];
    return kinds_[at];
  }
  const std::shared_ptr<const RowPlaces>& places() const { return places_; }
  Source source(int64_t row) const { return places_->source(row); }
  const std::string& name() const { return places_->name(); }
  /// The place is made for the first of many only.
  void add_to(Remark& remark, int64_t row) const;

 private:
  Table table_;
  std::shared_ptr<const RowPlaces> places_;
  std::vector<Cell> kinds_;
  std::vector<double> values_;
};

/// How a column becomes numbers, learnt from the training rows alone: a number less its mean over its deviation
/// (missing, or not finite: 0), or one place for each of its words (missing and new ones: none of them). A column that
/// is left out has no place.
struct Column {
  enum class Kind : uint8_t { number, words, out };
  std::string name;
  Kind kind = Kind::number;
  double mean = 0, deviation = 1;
  std::vector<std::string> words;  ///< sorted
  /// Words in all, of which those that are frequent have a place; of a number's column 1 where all are the same.
  int64_t different = 0;
  int64_t width() const;
  /// The place of a word; -1: it has none.
  int64_t find(std::string_view word) const;
};
const char* name(Column::Kind k);

/// The kinds that "age=number; zip=words; id=out" gives to columns, by column; -1: to be found. Throws Error (usage)
/// that begins with `key` for a column that the table does not have, and for what is no kind.
std::vector<int> column_kinds(const std::string& text, const Table& table, const std::string& key);
/// The same words for columns that were studied. One whose name has a sign of that language is left out of it.
std::string column_kinds_text(const std::vector<Column>& columns);

/// What the rows `train` hold in a column. `kind`: as column_kinds() says. Throws Error naming the line where a column
/// of numbers has a word.
Column study_column(const TableRows& t, size_t column, const std::vector<int64_t>& train, int64_t most_words, int kind);
/// What a person should know of a column of inputs: cells that are missing or not finite, words without a place, one
/// value in all rows. `all`: the rows of both parts, `train`: how many of them are the training set's.
std::vector<Remark> column_remarks(const TableRows& t, size_t column, const Column& c, const std::vector<int64_t>& all,
                                   int64_t train);

}  // namespace tenon::data
