#include "tracing/analyses/finding_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tenon::tracing {

nlohmann::json json_number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

static nlohmann::json json_cell(const Cell& cell) {
  if (auto* text = std::get_if<std::string>(&cell)) return *text;
  if (auto* n = std::get_if<int64_t>(&cell)) return *n;
  return json_number(std::get<double>(cell));
}

nlohmann::json finding_json(const Finding& f) {
  nlohmann::json j = {{"sentence", f.sentence}};
  for (const auto& fact : f.facts) j[fact.name] = json_cell(fact.value);
  for (const auto& t : f.tables) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& row : t.rows) {
      nlohmann::json r;
      for (size_t i = 0; i < row.size(); ++i) r[t.columns[i].name] = json_cell(row[i]);
      rows.push_back(std::move(r));
    }
    j[t.name] = std::move(rows);
  }
  return j;
}

}  // namespace tenon::tracing
