#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {

/// The fields of a table of text, as RFC 4180 has it: quotes round fields with separators, quotes (doubled) or line
/// ends in them. Line ends are \n or \r\n. Every row has as many fields as the first.
struct Table {
  std::vector<std::string> columns;  ///< names; "column 1" ... where the file has no header
  std::vector<std::vector<std::string>> rows;
};
struct CsvOptions {
  char separator = 0;  ///< 0: found among , ; tab | by the first line
  int header = -1;  ///< 1: the first line is names; 0: it is not; -1: it is where no field of it is a number and one of
                    ///< the next line's is
};
/// Throws Error naming `name` and the line for a quote that does not end, text behind a closing quote, or a row of
/// another length.
Table parse_csv(std::string_view text, const std::string& name, const CsvOptions& options = {});
/// Whether a field is a number; missing ones ("", "NA", "NaN", "null", "?") are not.
bool csv_number(const std::string& field, double& value);
bool csv_missing(const std::string& field);

}  // namespace tenon::data
