#include "projects/query/query_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tenon::projects {

using tracing::Unit;

namespace {
Registry<QueryTable>* made_registry(const char* what) {
  return new Registry<QueryTable>(what,
                                  [](const QueryTable& t) -> std::string { return fmt::format("{:08}", t.order); });
}
Registry<QueryTable>& tables_of(QueryKind of) {
  static Registry<QueryTable>* const all[] = {
      made_registry("table of traces"), made_registry("table of memory snapshots"), made_registry("table of projects"),
      made_registry("table of model files")};
  return *all[static_cast<int>(of)];
}
}  // namespace

const char* name(QueryKind kind) {
  static constexpr const char* names[] = {"trace", "snapshot", "project", "model file"};
  return names[static_cast<int>(kind)];
}

QueryKind kind_of(const QuerySubject& s) {
  return s.trace      ? QueryKind::trace
         : s.snapshot ? QueryKind::snapshot
         : s.model    ? QueryKind::model
                      : QueryKind::project;
}

bool register_query_table(QueryKind of, QueryTable table, Place place) {
  return tables_of(of).add(std::move(table), place);
}
const Registry<QueryTable>& query_tables(QueryKind of) { return tables_of(of); }

std::vector<QueryExample> query_examples(QueryKind of) {
  std::vector<QueryExample> all;
  for (const QueryTable& t : query_tables(of)) all.insert(all.end(), t.examples.begin(), t.examples.end());
  return all;
}

QueryValue QueryCell::value() const {
  switch (kind_) {
    case Kind::integer:
      return integer_;
    case Kind::real:
      return real_;
    case Kind::text:
      return std::string(text_);
    case Kind::null:
      break;
  }
  return {};
}

const char* QueryColumn::type() const {
  switch (unit) {
    case Unit::text:
      return "TEXT";
    case Unit::share:
    case Unit::number:
      return "REAL";
    default:
      return "INTEGER";
  }
}

const QueryColumn* QueryTable::column(std::string_view wanted) const {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  for (const QueryColumn& c : columns)
    if (std::equal(c.name.begin(), c.name.end(), wanted.begin(), wanted.end(), same)) return &c;
  return nullptr;
}

void QueryTest::narrow(int64_t& low, int64_t& high) const {
  constexpr double kFar = 9e18;  // beyond it a double is no integer any more
  int64_t down = 0, up = 0;
  if (const auto* n = std::get_if<int64_t>(&value)) {
    down = up = *n;
  } else if (const auto* x = std::get_if<double>(&value); x && std::abs(*x) < kFar) {
    down = static_cast<int64_t>(std::floor(*x));
    up = static_cast<int64_t>(std::ceil(*x));
  } else {
    return;
  }
  if (op != Op::less && op != Op::less_equal) low = std::max(low, down);
  if (op != Op::greater && op != Op::greater_equal) high = std::min(high, up);
}

}  // namespace tenon::projects
