#include "views/runs/run_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "engine/train/metric.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr double kNothing = -1e308;  ///< sorts before every number

std::string shown(const RunValue& v) { return v.text.empty() && v.number ? format_exact(v.x) : v.text; }

Table::Cell cell(const std::string& metric, double v) {
  if (std::isnan(v)) return {"–", kNothing, {}, Ink::none};
  Table::Cell c = Table::Cell::number(v, format_metric(metric, v));
  c.tip = format_exact(v);
  return c;
}
}  // namespace

double Spread::mean() const {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double Spread::deviation() const {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const double v : values) sum += (v - mean()) * (v - mean());
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

Spread spread_of(const RunGroup& group, const std::string& metric) {
  Spread s;
  const RunField field{RunField::Kind::best, metric};
  double best = 0;
  for (const RunRow* r : group.runs) {
    const auto v = value_of(field, *r);
    if (!v || !std::isfinite(v->x)) continue;
    s.values.push_back(v->x);
    if (s.best && (better(metric) > 0 ? v->x <= best : v->x >= best)) continue;
    s.best = r;
    best = v->x;
  }
  return s;
}

std::vector<RunGroup> groups_of(const RunRows& rows, const RunField& field) {
  // Runs without the field, or with words, stand behind those with numbers.
  using Key = std::tuple<int, double, std::string>;
  std::map<Key, RunGroup> found;
  for (const auto& r : rows) {
    const auto v = value_of(field, *r);
    const bool number = v && v->number && std::isfinite(v->x);
    const std::string text = v ? shown(*v) : "–";
    RunGroup& g = found[{!v ? 2 : number ? 0 : 1, number ? v->x : 0, text}];
    g.value = text;
    g.runs.push_back(r.get());
  }
  std::vector<RunGroup> out;
  for (auto& [key, group] : found) {
    group.key = static_cast<double>(out.size());
    out.push_back(std::move(group));
  }
  return out;
}

Table group_table(const RunRows& rows, const RunField& field) {
  std::vector<std::string> metrics;
  for (const RunField& f : result_fields(rows))
    if (f.kind == RunField::Kind::best) metrics.push_back(f.key);
  const std::vector<RunGroup> groups = groups_of(rows, field);
  const auto numbers = std::all_of(rows.begin(), rows.end(), [&](const auto& r) {
    const auto v = value_of(field, *r);
    return !v || v->number;
  });
  Table t;
  t.wide = true;
  t.columns = {{field.text(), numbers, tr("Runs that have this in common")}, {tr("Runs"), true}, {tr("Best run")}};
  for (const std::string& m : metrics) {
    t.columns.push_back({tr("mean {}", m), true, tr("The mean of the runs' best {}", m)});
    t.columns.push_back({"± sd", true, tr("The standard deviation of the runs' best {}", m)});
    t.columns.push_back({tr("best {}", m), true, tr("The best of the runs' best {}", m)});
  }
  for (const RunGroup& g : groups) {
    Table::Row row;
    const RunRow* best = nullptr;
    std::vector<Table::Cell> cells;
    for (const std::string& m : metrics) {
      const Spread s = spread_of(g, m);
      const double none = std::numeric_limits<double>::quiet_NaN();
      cells.push_back(cell(m, s.best ? s.mean() : none));
      cells.push_back(cell(m, s.deviation()));
      cells.push_back(cell(m, s.best ? value_of({RunField::Kind::best, m}, *s.best)->x : none));
      if (s.best) cells.back().tip = tr("{} of {}", cells.back().tip.str(), s.best->info.name);
      if (!best) best = s.best;
    }
    if (!best) best = g.runs.front();
    row.selection = Selection::run(best->info.id, "runs");
    row.cells = {
        {g.value, g.key, field.text() + " = " + g.value, Ink::none},
        Table::Cell::number(static_cast<double>(g.runs.size()), format_grouped(static_cast<int64_t>(g.runs.size()))),
        {best->info.name, 0, {}, Ink::none}};
    row.cells.insert(row.cells.end(), cells.begin(), cells.end());
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
