#include "app/cli/findings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/output.h"
#include "tracing/analyses/finding_json.h"

namespace tenon::app {

int show_finding(const tracing::Finding& f, bool json, const About& about) {
  if (json) {
    nlohmann::json j = tracing::finding_json(f);
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
  const bool several =
      std::count_if(f.tables.begin(), f.tables.end(), [](const tracing::Table& t) { return !t.rows.empty(); }) > 1;
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
        if (!t.columns[i].wide) cells.push_back(shortened(cell_text(row[i], t.columns[i].unit)));
    }
    print((several ? "\n" + t.title() + "\n" : "\n") + table(rows, right));
  }
  return f.ok ? 0 : 1;
}

}  // namespace tenon::app
