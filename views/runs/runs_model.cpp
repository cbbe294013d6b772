#include "views/runs/runs_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/train/metric.h"
#include "projects/finish.h"
#include "views/runs/run_groups.h"
#include "views/shared/format.h"
#include "views/shared/meaning.h"
#include "views/shared/project_contents.h"

namespace tenon::views {

using projects::RunStatus;

void RunsModel::set_rows(RunRows rows) {
  rows_ = std::move(rows);
  fields_ = RunFields(rows_);
  set_filter(text_);  // a key or metric of a new run is a field from now on
}

void RunsModel::set_status(const RunStatus& status) {
  for (auto& row : rows_) {
    if (row->info.id != status.run) continue;
    RunRow now = *row;
    follow(now.info, status);
    if (status.step > 0) now.metrics["loss"].last = status.loss;
    row = std::make_shared<RunRow>(std::move(now));
  }
}

bool RunsModel::set_filter(const std::string& text) {
  text_ = text;
  why_.clear();
  try {
    filter_ = RunFilter(text, fields_);
    return true;
  } catch (const Error& e) {
    why_ = e.message() + ". " + e.hint();
    return false;
  }
}

RunRows RunsModel::shown() const {
  RunRows out;
  for (auto r = rows_.rbegin(); r != rows_.rend(); ++r)
    if (filter_.fits(**r)) out.push_back(*r);
  return out;
}

namespace {
/// The end of a key where no other key of these ends alike.
std::string short_key(const std::string& key, const std::vector<std::string>& all) {
  const std::string end = key.substr(key.rfind('.') + 1);  // the whole key where it has no point
  const bool alone = std::count_if(all.begin(), all.end(),
                                   [&](const std::string& k) { return k == end || k.ends_with("." + end); }) <= 1;
  return alone ? end : key;
}
Ink ink_of_status(const std::string& status) {
  if (status == "running") return Ink::accent;
  if (status == "paused" || status == "interrupted") return Ink::warning;
  if (status == "failed") return Ink::bad;
  return status == "finished" ? Ink::good : Ink::secondary;
}
Table::Cell none() { return {"–", -1e308, {}, Ink::none}; }
Table::Cell metric_cell(const std::string& name, double v, const std::string& tip) {
  Table::Cell c = Table::Cell::number(std::isnan(v) ? -1e308 : v, format_metric(name, v));
  c.tip = format_exact(v) + tip;
  if (!std::isfinite(v)) c.mark = Ink::bad;
  return c;
}
}  // namespace

Table RunsModel::table() const {
  const RunRows rows = shown();
  if (group_) return group_table(rows, *group_);
  const std::vector<std::string> keys = rows.empty() ? std::vector<std::string>() : differing_keys(rows);
  std::set<std::string> judged;  // metrics that say how good a run is
  for (const auto& r : rows)
    for (const auto& [name, end] : r->metrics)
      if (!judged.count(name) && better(name) != 0) judged.insert(name);
  Table t;
  t.wide = true;
  t.columns = {{"Run"}, {"Status"}, {"Steps", true}, {"Time", true}};
  std::vector<bool> numbers;
  for (const std::string& key : keys) {
    numbers.push_back(std::all_of(rows.begin(), rows.end(), [&](const auto& r) {
      const auto at = r->recipe.find(key);
      return at == r->recipe.end() || at->second.number;
    }));
    t.columns.push_back({short_key(key, keys), numbers.back(), key + " of the recipe"});
  }
  for (const std::string& m : judged) {
    for (const char* which : {"last", "best"})
      t.columns.push_back({std::string(which) + " " + m, true, std::string(which) + "." + m});
  }
  const bool tagged = std::any_of(rows.begin(), rows.end(), [](const auto& r) { return !r->info.tags.empty(); });
  if (tagged) t.columns.push_back({"Tags"});
  t.columns.push_back({"Begun"});
  t.rows.reserve(rows.size());
  for (const auto& one : rows) {
    const RunRow& r = *one;
    Table::Row row;
    row.selection = Selection::run(r.info.id, "runs");
    const auto picked = std::find(picked_.begin(), picked_.end(), r.info.id);
    row.picked = picked != picked_.end();
    const Ink ink = *row.picked ? compared_ink(static_cast<int>(picked - picked_.begin())) : Ink::none;
    std::string about = r.info.name;
    for (const std::string& more : {r.info.note, r.info.error})
      if (!more.empty()) about += "\n" + more;
    row.cells = {{r.info.name, 0, std::move(about), ink},
                 {projects::status_text(r.info), 0, r.info.error, ink_of_status(r.info.status)},
                 Table::Cell::number(static_cast<double>(r.info.steps),
                                     format_grouped(r.info.steps) + " / " + format_grouped(r.info.total_steps)),
                 Table::Cell::number(r.info.seconds, format_seconds(r.info.seconds))};
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto at = r.recipe.find(keys[k]);
      if (at == r.recipe.end())
        row.cells.push_back(none());
      else
        row.cells.push_back({at->second.text, at->second.x, keys[k] + " = " + at->second.text, Ink::none});
    }
    for (const std::string& m : judged) {
      const auto at = r.metrics.find(m);
      row.cells.push_back(at == r.metrics.end() ? none() : metric_cell(m, at->second.last, ""));
      row.cells.push_back(at == r.metrics.end() || std::isnan(at->second.best)
                              ? none()
                              : metric_cell(m, at->second.best, " at step " + format_grouped(at->second.best_step)));
    }
    if (tagged) row.cells.push_back({tags_text(r.info), 0, r.info.note, Ink::none});
    std::string begun = r.info.created.substr(0, r.info.created.find('Z'));  // to the second, in UTC
    if (begun.size() > 10) begun[10] = ' ';
    row.cells.push_back({std::move(begun), 0, r.info.created, Ink::none});
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
