#include "projects/query/query_functions.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

namespace tenon::projects {
namespace {

/// The values of one group.
struct Gathered {
  std::vector<double> values;
  double percent = 50;
};

void gather(sqlite3_context* context, int count, sqlite3_value** args) {
  auto** slot = static_cast<Gathered**>(sqlite3_aggregate_context(context, sizeof(Gathered*)));
  if (!slot) return sqlite3_result_error_nomem(context);
  try {
    if (!*slot) *slot = new Gathered;
    if (count > 1) {
      const double p = sqlite3_value_double(args[1]);
      if (sqlite3_value_numeric_type(args[1]) == SQLITE_NULL || !(p >= 0 && p <= 100))
        return sqlite3_result_error(context, "percentile(x, p) wants a p from 0 to 100", -1);
      (*slot)->percent = p;
    }
    const int type = sqlite3_value_numeric_type(args[0]);
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) (*slot)->values.push_back(sqlite3_value_double(args[0]));
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

void tell_percentile(sqlite3_context* context) {
  auto** slot = static_cast<Gathered**>(sqlite3_aggregate_context(context, 0));
  if (!slot || !*slot) return sqlite3_result_null(context);
  std::vector<double>& v = (*slot)->values;
  if (v.empty()) {
    sqlite3_result_null(context);
  } else {
    const double place = (*slot)->percent / 100 * static_cast<double>(v.size() - 1);
    const auto low = static_cast<size_t>(place);
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(low), v.end());
    double value = v[low];
    if (const double part = place - std::floor(place); part > 0)
      value += part * (*std::min_element(v.begin() + static_cast<std::ptrdiff_t>(low) + 1, v.end()) - value);
    sqlite3_result_double(context, value);
  }
  delete *slot;
  *slot = nullptr;
}

}  // namespace

void add_query_functions(sqlite3* db) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  sqlite3_create_function_v2(db, "median", 1, kFlags, nullptr, nullptr, gather, tell_percentile, nullptr);
  sqlite3_create_function_v2(db, "percentile", 2, kFlags, nullptr, nullptr, gather, tell_percentile, nullptr);
}

}  // namespace tenon::projects
