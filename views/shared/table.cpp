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

/// Breaks and tabs end a cell in what is made of it: they become blanks. A bar ends one in Markdown alone.
static std::string one_line(const std::string& s, bool markdown) {
  std::string out;
  for (char c : s) {
    if (c == '|' && markdown) out += '\\';
    out += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  }
  return out;
}

std::string Table::markdown() const {
  std::string out = "|", rule = "|";
  for (const Column& c : columns) {
    out += " " + one_line(c.title, true) + " |";
    rule += c.number ? " ---: |" : " --- |";
  }
  out += "\n" + rule + "\n";
  for (const Row& row : rows) {
    out += '|';
    for (const Cell& cell : row.cells) out += " " + one_line(cell.text, true) + " |";
    out += '\n';
  }
  return out;
}

std::string Table::tabbed() const {
  std::string out;
  for (size_t i = 0; i < columns.size(); ++i) out += (i ? "\t" : "") + one_line(columns[i].title, false);
  out += '\n';
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) out += (i ? "\t" : "") + one_line(row.cells[i].text, false);
    out += '\n';
  }
  return out;
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
