#include "views/shared/table.h"

namespace tenon::views {

static std::string csv_field(const std::string& s) {
  if (s.find_first_of(",\"\n") == std::string::npos) return s;
  std::string out = "\"";
  for (char c : s) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string Table::csv() const {
  std::string out;
  for (size_t i = 0; i < columns.size(); ++i) out += (i ? "," : "") + csv_field(columns[i].title);
  out += '\n';
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) out += (i ? "," : "") + csv_field(row.cells[i].text);
    out += '\n';
  }
  return out;
}

}  // namespace tenon::views
