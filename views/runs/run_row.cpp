#include "views/runs/run_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/train/metric.h"
#include "views/shared/format.h"

namespace tenon::views {

using projects::MetricPoint;
using projects::Project;
using projects::RunInfo;

namespace {
void flatten(const nlohmann::json& j, const std::string& path, std::map<std::string, RunValue>& to) {
  if (j.is_object()) {
    for (const auto& [key, value] : j.items()) flatten(value, path.empty() ? key : path + "." + key, to);
    return;
  }
  RunValue v;
  v.number = j.is_number();
  if (v.number) v.x = j.get<double>();
  v.text = j.is_string() ? j.get<std::string>() : v.number ? format_exact(v.x) : j.dump();
  to[path] = std::move(v);
}

MetricEnd end_of(const std::vector<MetricPoint>& points, int direction) {
  MetricEnd e{points.back().value, std::numeric_limits<double>::quiet_NaN(), 0};
  if (direction == 0) return e;
  for (const MetricPoint& p : points)
    if (std::isfinite(p.value) && (std::isnan(e.best) || (direction > 0 ? p.value > e.best : p.value < e.best))) {
      e.best = p.value;
      e.best_step = p.step;
    }
  return e;
}

bool unchanged(const RunInfo& a, const RunInfo& b) {
  return a.id == b.id && a.name == b.name && a.status == b.status && a.steps == b.steps && a.seconds == b.seconds &&
         a.best == b.best && a.created == b.created && a.note == b.note && a.tags == b.tags &&
         a.changes.size() == b.changes.size() && a.total_steps == b.total_steps;
}
}  // namespace

std::string tags_text(const RunInfo& run) {
  std::string text;
  for (const std::string& t : run.tags) text += (text.empty() ? "" : ", ") + t;
  return text;
}

std::vector<RunRow> read_runs(const Project& project, const std::vector<RunInfo>& runs,
                              const std::vector<RunRow>& known) {
  std::vector<RunRow> rows;
  for (const RunInfo& info : runs) {
    const auto old = std::find_if(known.begin(), known.end(), [&](const RunRow& r) { return unchanged(r.info, info); });
    if (old != known.end()) {
      rows.push_back(*old);
      continue;
    }
    RunRow row;
    row.info = info;
    flatten(info.recipe, "", row.recipe);
    std::map<std::string, RunValue> last = row.recipe;
    for (const projects::RecipeChange& c : info.changes) {
      std::map<std::string, RunValue> now;
      flatten(c.recipe, "", now);
      for (const auto& [key, value] : now) {
        if (last[key] == value) continue;
        RunValue& shown = row.recipe[key];
        shown = {value.number, value.x, shown.text.empty() ? value.text : shown.text + " → " + value.text};
      }
      last = std::move(now);
    }
    for (const std::string& name : project.metric_names(info.id))
      if (const auto points = project.metric(info.id, name); !points.empty())
        row.metrics[name] = end_of(points, better(name));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> differing_keys(const std::vector<RunRow>& rows) {
  std::set<std::string> keys;
  for (const RunRow& r : rows)
    for (const auto& [key, value] : r.recipe)
      if (key != "init.sha256") keys.insert(key);  // init.from and init.run say what it is of
  std::vector<std::string> out;
  for (const std::string& key : keys) {
    const auto first = rows.front().recipe.find(key);
    const bool same = first != rows.front().recipe.end() && std::all_of(rows.begin(), rows.end(), [&](const RunRow& r) {
                        const auto at = r.recipe.find(key);
                        return at != r.recipe.end() && at->second == first->second;
                      });
    if (!same) out.push_back(key);
  }
  return out;
}

}  // namespace tenon::views
