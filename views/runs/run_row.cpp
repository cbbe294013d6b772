#include "views/runs/run_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "engine/train/metric.h"
#include "engine/train/recipe.h"
#include "projects/recipe_keys.h"
#include "projects/surgery.h"
#include "views/shared/format.h"

namespace tenon::views {

using projects::Project;
using projects::RunInfo;

namespace {
void flatten(const nlohmann::json& recipe, std::map<std::string, RunValue>& to) {
  projects::each_recipe_key(recipe, [&to](const std::string& key, const nlohmann::json& j) {
    RunValue v;
    v.number = j.is_number();
    if (v.number) v.x = j.get<double>();
    v.text = j.is_string() ? j.get<std::string>() : v.number ? format_exact(v.x) : j.dump();
    to[key] = std::move(v);
  });
}

MetricEnd end_of(const projects::MetricSum& sum) {
  const int direction = better(sum.name);
  if (direction == 0) return {sum.last, std::numeric_limits<double>::quiet_NaN(), 0};
  return direction > 0 ? MetricEnd{sum.last, sum.high, sum.high_step} : MetricEnd{sum.last, sum.low, sum.low_step};
}

bool unchanged(const RunInfo& a, const RunInfo& b) {
  return a.id == b.id && a.name == b.name && a.status == b.status && a.steps == b.steps && a.seconds == b.seconds &&
         a.best == b.best && a.created == b.created && a.note == b.note && a.tags == b.tags &&
         a.changes.size() == b.changes.size() && a.total_steps == b.total_steps;
}
}  // namespace

std::string branch_changes(const RunInfo& parent, const RunInfo& branch) {
  const std::string model = projects::model_changes(parent.model, branch.model);
  const std::string keys = difference_text(
      differences(Recipe::from_json(parent.recipe_after(branch.branch.step)), Recipe::from_json(branch.recipe)));
  return model + (model.empty() || keys.empty() ? "" : ", ") + keys;
}

std::string tags_text(const RunInfo& run) {
  std::string text;
  for (const std::string& t : run.tags) text += (text.empty() ? "" : ", ") + t;
  return text;
}

namespace {
RunRow row_of(RunInfo info) {
  std::map<std::string, RunValue> told, last;
  flatten(info.recipe, told);
  if (!info.changes.empty()) last = told;
  for (const projects::RecipeChange& c : info.changes) {
    std::map<std::string, RunValue> now;
    flatten(c.recipe, now);
    for (const auto& [key, value] : now) {
      if (last[key] == value) continue;
      RunValue& shown = told[key];
      shown = {value.number, value.x, shown.text.empty() ? value.text : shown.text + " → " + value.text};
    }
    last = std::move(now);
  }
  RunRow row;
  row.recipe = KeyedValues<RunValue>(std::move(told));
  row.info = std::move(info);
  return row;
}
}  // namespace

RunRows read_runs(const Project& project, std::vector<RunInfo> runs) {
  constexpr size_t kFew = 8;  // are asked for one by one
  std::unordered_map<int64_t, std::vector<projects::MetricSum>> sums;
  if (runs.size() > kFew)
    for (projects::MetricSum& s : project.metric_sums()) sums[s.run].push_back(std::move(s));
  RunRows rows;
  rows.reserve(runs.size());
  std::unordered_map<int64_t, const RunRow*> known;
  for (RunInfo& info : runs) {
    if (runs.size() <= kFew) sums[info.id] = project.metric_sums(info.id);
    auto row = std::make_shared<RunRow>(row_of(std::move(info)));
    if (row->info.branch) {
      const auto parent = known.find(row->info.branch.run);
      row->surgery = projects::model_changes(
          parent == known.end() ? project.run(row->info.branch.run).model : parent->second->info.model,
          row->info.model);
    }
    known[row->info.id] = row.get();
    std::map<std::string, MetricEnd> ends;
    for (const projects::MetricSum& s : sums[row->info.id]) ends.emplace(s.name, end_of(s));
    row->metrics = KeyedValues<MetricEnd>(std::move(ends));
    if (!rows.empty()) {
      row->recipe.share_keys(rows.back()->recipe);
      row->metrics.share_keys(rows.back()->metrics);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

RunRows take_over(const std::vector<RunInfo>& runs, const RunRows& known) {
  std::unordered_map<int64_t, const std::shared_ptr<const RunRow>*> by_id;
  for (const auto& row : known) by_id.emplace(row->info.id, &row);
  RunRows rows;
  rows.reserve(runs.size());
  for (const RunInfo& info : runs) {
    const auto at = by_id.find(info.id);
    rows.push_back(at != by_id.end() && unchanged((*at->second)->info, info) ? *at->second : nullptr);
  }
  return rows;
}

std::vector<std::string> differing_keys(const RunRows& rows) {
  std::set<std::string> differ;
  for (const auto& row : rows) {
    const auto &first = rows.front()->recipe, &these = row->recipe;
    if (first.same_keys(these)) {  // nearly always
      for (size_t i = 0; i < first.size(); ++i)
        if (!(first.value(i) == these.value(i))) differ.insert(first.keys()[i]);
      continue;
    }
    for (size_t i = 0; i < first.size(); ++i)
      if (const RunValue* v = these.find(first.keys()[i]); !v || !(*v == first.value(i)))
        differ.insert(first.keys()[i]);
    for (const std::string& key : these.keys())
      if (!first.find(key)) differ.insert(key);
  }
  differ.erase("init.sha256");  // init.from and init.run say what it is of
  differ.erase("distill.sha256");
  return {differ.begin(), differ.end()};
}

RunFields::RunFields(const RunRows& rows) {
  const RunRow* last = nullptr;
  for (const auto& row : rows) {
    if (!last || !last->recipe.same_keys(row->recipe))
      keys.insert(row->recipe.keys().begin(), row->recipe.keys().end());
    if (!last || !last->metrics.same_keys(row->metrics))
      metrics.insert(row->metrics.keys().begin(), row->metrics.keys().end());
    last = row.get();
  }
}

}  // namespace tenon::views
