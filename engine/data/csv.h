#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/text_encoding.h"

namespace tenon::data {

/// The fields of a table of text, as RFC 4180 has it: quotes round fields with separators, quotes (doubled) or line
/// ends in them. Line ends are \n or \r\n. Every row has as many fields as the first. Texts are UTF-8.
struct Table {
  std::vector<std::string> columns;  ///< names; "column 1" ... where the file has no header
  std::vector<int64_t> lines;        ///< of the file, on which each row begins; from 1
  // How it was read: what CsvOptions said, or what was found.
  char separator = ',', decimal = '.';
  Encoding encoding = Encoding::utf8;
  bool header = false;

  int64_t rows() const { return static_cast<int64_t>(lines.size()); }
  std::string_view cell(int64_t row, size_t column) const {
    return cells[static_cast<size_t>(row) * columns.size() + column];
  }
  /// Puts the rows of a table of the same columns behind its own.
  void append(Table other);

  std::vector<std::string_view> cells;  ///< row by row, within `texts`
  std::vector<std::shared_ptr<const std::string>> texts;
};
struct CsvOptions {
  char separator = 0;  ///< 0: found among , ; tab | by the first line
  char decimal = 0;    ///< '.' or ','; 0: a comma where the separator is another, and numbers have commas and no points
  std::optional<Encoding> encoding = {};  ///< none: see find_encoding()
  int header = -1;  ///< 1: the first line is names; 0: it is not; -1: it is where no field of it is a number and one of
                    ///< the next line's is
};
/// Throws Error naming `name` and the line for a quote that does not end, text behind a closing quote, a row of another
/// length, or bytes that are not of the encoding that the options name.
Table parse_csv(std::string text, const std::string& name, const CsvOptions& options = {});
/// What a field is: missing ("", "NA", "N/A", "null", "?"), a number that is none ("nan", "inf"), a number, or a word.
enum class Cell : uint8_t { missing, not_finite, number, word };
/// `value` is set for a number.
Cell csv_cell(std::string_view field, double& value, char decimal = '.');

}  // namespace tenon::data
