#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/csv.h"
#include "engine/data/dataset.h"

namespace tenon::data {

/// A table with the files that its rows come from, one behind the other.
struct TableRows {
  Table table;
  struct File {
    std::string path;
    int64_t end;  ///< one past its last row, among all
  };
  std::vector<File> files;
  const std::string& cell(int64_t row, size_t column) const { return table.rows[static_cast<size_t>(row)][column]; }
  Cell read(int64_t row, size_t column, double& value) const {
    return csv_cell(cell(row, column), value, table.decimal);
  }
  Source source(int64_t row) const;
  /// What it is called in errors and remarks: its first file.
  const std::string& name() const { return files.front().path; }
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
  int64_t different = 0;           ///< words in all; those that are frequent have a place
  int64_t width() const;
  /// The place of a word; -1: it has none.
  int64_t find(const std::string& word) const;
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
/// value in all rows.
std::vector<Remark> column_remarks(const TableRows& t, size_t column, const Column& c, const Parts& parts);

}  // namespace tenon::data
