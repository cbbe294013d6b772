#include "views/query/query_page.h"

#include <limits>
#include <optional>

#include "views/query/file_sight.h"

namespace tenon::views {

using projects::QueryColumn;
using projects::QueryResult;
using projects::QueryValue;
using tracing::Unit;
using Leads = QueryColumn::Leads;

namespace {
constexpr size_t kFewColumns = 8;  // that are cut to the width of a view

Table::Cell cell_of(const QueryValue& value, const QueryResult::Column& column) {
  Table::Cell cell{QueryResult::text_of(value), 0, {}, Ink::none};
  if (value.index() == 0) {
    cell.tip = "NULL";
    cell.key = -std::numeric_limits<double>::infinity();
    return cell;
  }
  tracing::Cell number;
  if (const auto* n = std::get_if<int64_t>(&value))
    number = *n, cell.key = static_cast<double>(*n);
  else if (const auto* x = std::get_if<double>(&value))
    number = *x, cell.key = *x;
  else
    return cell;
  if (column.unit && *column.unit != Unit::text && *column.unit != Unit::number)
    cell.tip = tracing::cell_text(number, *column.unit);
  return cell;
}

/// The number in the first column that leads to one of a kind; of runs also by their name. -1: none.
int64_t led_to(const QueryResult& result, const std::vector<QueryValue>& row, Leads where, const QuerySight& sight) {
  for (size_t c = 0; c < row.size(); ++c) {
    if (result.columns[c].leads != where) continue;
    if (const auto* n = std::get_if<int64_t>(&row[c])) return *n;
    if (const auto* text = std::get_if<std::string>(&row[c]); text && where == Leads::run && sight.run_named)
      if (const int64_t run = sight.run_named(*text)) return run;
  }
  return -1;
}

/// Of a snapshot or model file: by the first column from the left that leads anywhere.
Selection selection_in(const QueryResult& result, const std::vector<QueryValue>& row, FileSight& sight) {
  for (size_t c = 0; c < row.size(); ++c)
    if (Selection s = sight.led_to(result.columns[c].leads, row[c])) return s;
  return {};
}

Selection selection_of(const QueryResult& result, const std::vector<QueryValue>& row, const QuerySight& sight) {
  if (const int64_t e = led_to(result, row, Leads::event, sight); e >= 0 && e < sight.events)
    return Selection::event(sight.document, e + sight.first_event, "query");
  if (sight.document != Document::kProject || !sight.has_run) return {};
  if (const int64_t id = led_to(result, row, Leads::checkpoint, sight); id > 0)
    return Selection::checkpoint(id, "query");
  const int64_t run = led_to(result, row, Leads::run, sight), step = led_to(result, row, Leads::step, sight);
  if (step > 0 && (run == sight.shown_run || run < 0) && sight.shown_run) return Selection::step(step, "query");
  return run > 0 && sight.has_run(run) ? Selection::run(run, "query") : Selection();
}
}  // namespace

const char* unit_word(const std::optional<Unit>& unit) {
  if (!unit) return "";
  return *unit == Unit::nanoseconds || *unit == Unit::time ? "ns" : *unit == Unit::bytes ? "bytes" : "";
}

Table make_table(const QueryResult& result, const QuerySight& sight) {
  Table t;
  t.wide = result.columns.size() > kFewColumns;
  for (const QueryResult::Column& c : result.columns) {
    const std::string unit = unit_word(c.number ? c.unit : std::nullopt);
    t.columns.push_back({unit.empty() ? c.name : c.name + ", " + unit, c.number});
  }
  std::optional<FileSight> in_file;
  if (sight.file) in_file.emplace(*sight.file);
  t.rows.reserve(result.rows.size());
  for (const auto& row : result.rows) {
    Table::Row shown;
    shown.selection = in_file ? selection_in(result, row, *in_file) : selection_of(result, row, sight);
    for (size_t c = 0; c < row.size(); ++c) shown.cells.push_back(cell_of(row[c], result.columns[c]));
    t.rows.push_back(std::move(shown));
  }
  return t;
}

}  // namespace tenon::views
