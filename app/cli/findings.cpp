#include "app/cli/findings.h"

#include <nlohmann/json.hpp>

#include "app/cli/output.h"

namespace tenon::app {
namespace {

nlohmann::json value(const tracing::Cell& cell) {
  if (auto* text = std::get_if<std::string>(&cell)) return *text;
  if (auto* n = std::get_if<int64_t>(&cell)) return *n;
  return json_number(std::get<double>(cell));
}

}  // namespace

nlohmann::json finding_json(const tracing::Finding& f) {
  nlohmann::json j = {{"sentence", f.sentence}};
  for (const auto& fact : f.facts) j[fact.name] = value(fact.value);
  for (const auto& t : f.tables) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& row : t.rows) {
      nlohmann::json r;
      for (size_t i = 0; i < row.size(); ++i) r[t.columns[i].name] = value(row[i]);
      rows.push_back(std::move(r));
    }
    j[t.name] = std::move(rows);
  }
  return j;
}

namespace {

/// Names of kernels run to hundreds of characters; a line shows their beginning.
std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  std::string beginning = text.substr(0, most - 3);
  beginning += "...";
  return beginning;
}

}  // namespace

int show_finding(const tracing::Finding& f, bool json, const About& about) {
  if (json) {
    nlohmann::json j = finding_json(f);
    for (const auto& [key, value] : about) j[key] = value;
    print_json(j);
    return f.ok ? 0 : 1;
  }
  std::string heading;
  for (const auto& [key, value] : about) heading += (heading.empty() ? "" : ", ") + key + " " + value;
  if (!heading.empty()) print("--- " + heading + "\n");
  print(f.sentence + "\n");
  std::vector<std::vector<std::string>> facts;
  for (const auto& fact : f.facts) facts.push_back({"  " + fact.head, cell_text(fact.value, fact.unit)});
  if (!facts.empty()) {
    facts.insert(facts.begin(), {"", ""});
    print(table(facts));
  }
  for (const auto& t : f.tables) {
    if (t.rows.empty()) continue;
    std::vector<std::vector<std::string>> rows{{}};
    std::vector<bool> right;
    for (const auto& c : t.columns) {
      if (c.wide) continue;
      rows[0].push_back(c.head);
      right.push_back(c.unit != tracing::Unit::text);
    }
    for (const auto& row : t.rows) {
      auto& cells = rows.emplace_back();
      for (size_t i = 0; i < row.size(); ++i)
        if (!t.columns[i].wide) cells.push_back(shortened(cell_text(row[i], t.columns[i].unit), 90));
    }
    print("\n" + table(rows, right));
  }
  return f.ok ? 0 : 1;
}

}  // namespace tenon::app
