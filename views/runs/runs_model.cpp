#include "views/runs/runs_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "engine/train/metric.h"
#include "projects/finish.h"
#include "views/runs/run_groups.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/meaning.h"
#include "views/shared/project_contents.h"

namespace tenon::views {

using projects::RunStatus;

void RunsModel::set_rows(RunRows rows) {
  rows_ = std::move(rows);
  shown_.reset();
  fields_ = RunFields(rows_);
  std::unordered_map<const RunRow*, Cells> kept;
  for (const auto& row : rows_)
    if (auto known = cells_.extract(row.get())) kept.insert(std::move(known));
  cells_ = std::move(kept);
  find_columns();
  set_filter(text_);  // a key or metric of a new run is a field from now on
}

void RunsModel::find_columns() {
  std::vector<std::string> differing = rows_.empty() ? std::vector<std::string>() : differing_keys(rows_);
  std::set<std::string> judged;
  for (const auto& row : rows_)
    for (const std::string& name : row->metrics.keys())
      if (!judged.count(name) && better(name) != 0) judged.insert(name);
  const bool same = differing == differing_ && std::equal(judged.begin(), judged.end(), judged_.begin(), judged_.end());
  if (same) return;
  cells_.clear();
  differing_ = std::move(differing);
  judged_.assign(judged.begin(), judged.end());
}

void RunsModel::set_status(const RunStatus& status) {
  for (auto& row : rows_) {
    if (row->info.id != status.run) continue;
    RunRow now = *row;
    follow(now.info, status);
    const size_t metrics = now.metrics.size();
    if (status.step > 0) now.metrics["loss"].last = status.loss;
    const bool more = now.metrics.size() > metrics;
    cells_.erase(row.get());
    row = std::make_shared<RunRow>(std::move(now));
    shown_.reset();
    if (more) find_columns();
  }
}

bool RunsModel::set_filter(const std::string& text) {
  text_ = text;
  why_.clear();
  try {
    filter_ = RunFilter(text, fields_);
    shown_.reset();
    return true;
  } catch (const Error& e) {
    why_ = e.message() + ". " + e.hint();
    return false;
  }
}

const RunRows& RunsModel::shown() const {
  if (shown_) return *shown_;
  shown_.emplace();
  for (auto r = rows_.rbegin(); r != rows_.rend(); ++r)
    if (filter_.fits(**r)) shown_->push_back(*r);
  return *shown_;
}

namespace {
/// The end of a key where no other key of these ends alike, nor anything else that a run has is called so.
std::string short_key(const std::string& key, const std::vector<std::string>& all) {
  const std::string end = key.substr(key.rfind('.') + 1);  // the whole key where it has no point
  const auto ends = [&](const std::string& k) { return k == end || k.ends_with("." + end); };
  const auto own = [&](const auto& field) { return field.first == end; };
  const bool alone = end != "run" && std::none_of(own_fields().begin(), own_fields().end(), own) &&
                     std::count_if(all.begin(), all.end(), ends) <= 1;
  return alone ? end : key;
}
Table::Cell none() { return {"–", -1e308, {}, Ink::none}; }
Table::Cell metric_cell(const std::string& name, double v, const std::string& tip) {
  Table::Cell c = Table::Cell::number(std::isnan(v) ? -1e308 : v, format_metric(name, v));
  c.tip = format_exact(v) + tip;
  if (!std::isfinite(v)) c.mark = Ink::bad;
  return c;
}
}  // namespace

const RunsModel::Cells& RunsModel::cells_of(const std::shared_ptr<const RunRow>& row) const {
  const auto known = cells_.find(row.get());
  return known != cells_.end() ? known->second : cells_.emplace(row.get(), make_cells(row)).first->second;
}

RunsModel::Cells RunsModel::make_cells(const std::shared_ptr<const RunRow>& row) const {
  const projects::RunInfo& r = row->info;
  Cells c;
  c.of = row;
  std::string about = r.name;
  for (const std::string& more : {r.note, r.error})
    if (!more.empty()) about += "\n" + more;
  c.name = {r.name, 0, std::move(about), Ink::none};
  c.status = {state_word(projects::status_text(r)), 0, r.error, ink_of_state(r.status)};
  c.steps = Table::Cell::number(static_cast<double>(r.steps),
                                format_grouped(r.steps) + " / " + format_grouped(r.total_steps));
  c.time = Table::Cell::number(r.seconds, format_seconds(r.seconds));
  c.parent = {"–", 0, {}, Ink::none};
  if (r.branch) {
    const std::string from = r.branch.name + " @ " + format_grouped(r.branch.step);
    std::string tip = tr("A branch of {} after step {}", r.branch.name, format_grouped(r.branch.step));
    if (!row->surgery.empty()) tip += "\n" + tr("With another model: {}", row->surgery);
    c.parent = {row->surgery.empty() ? from : tr("{}, other model", from), 0, tip, Ink::none};
  }
  for (const std::string& key : differing_) {
    const RunValue* v = row->recipe.find(key);
    if (v)
      c.recipe.push_back({{v->text, v->x, key + " = " + v->text, Ink::none}, true, v->number});
    else
      c.recipe.push_back({none()});
  }
  for (const std::string& name : judged_) {
    Cells::Metric& m = c.metrics.emplace_back(Cells::Metric{none(), none()});
    const MetricEnd* end = row->metrics.find(name);
    if (!end) continue;
    m.there = true;
    m.last = metric_cell(name, end->last, "");
    if (!std::isnan(end->best))
      m.best = metric_cell(name, end->best, " " + tr("at step {}", format_grouped(end->best_step)));
  }
  c.tags = {tags_text(r), 0, r.note, Ink::none};
  std::string begun = r.created.substr(0, r.created.find('Z'));  // to the second, in UTC
  if (begun.size() > 10) begun[10] = ' ';
  c.begun = {std::move(begun), 0, r.created, Ink::none};
  return c;
}

const RunRow* RunsModel::baseline_row() const {
  const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const auto& r) { return r->info.id == baseline_; });
  return baseline_ && at != rows_.end() ? at->get() : nullptr;
}

RunRows RunsModel::listed() const {
  RunRows rows = shown();
  const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const auto& r) { return r->info.id == baseline_; });
  if (!baseline_ || at == rows_.end()) return rows;
  std::erase(rows, *at);
  rows.insert(rows.begin(), *at);
  return rows;
}

namespace {
double beside(const RunRow* baseline, const std::string& metric, const RunRow& run) {
  if (!baseline || &run == baseline) return std::nan("");
  const MetricEnd *mine = run.metrics.find(metric), *theirs = baseline->metrics.find(metric);
  return mine && theirs ? mine->best - theirs->best : std::nan("");
}
/// Green where it is better, red where it is worse.
Table::Cell difference_cell(const std::string& metric, double d) {
  if (!std::isfinite(d)) return none();
  Table::Cell c = Table::Cell::number(d, (d < 0 ? "−" : d > 0 ? "+" : "±") + format_metric(metric, std::abs(d)));
  if (d != 0) c.mark = d * better(metric) > 0 ? Ink::good : Ink::bad;
  c.tip = format_exact(d);
  return c;
}
}  // namespace

double RunsModel::beside_baseline(const std::string& metric, const RunRow& run) const {
  return beside(baseline_row(), metric, run);
}

Table RunsModel::table() const {
  if (group_) return group_table(shown(), *group_);
  const RunRow* baseline = baseline_row();
  const RunRows rows = listed();
  std::vector<const Cells*> cells;
  for (const auto& r : rows) cells.push_back(&cells_of(r));
  std::vector<size_t> differ, judged;  // of differing_, those in which these runs do; of judged_, those that they have
  std::vector<std::string> keys;
  for (size_t k = 0; k < differing_.size(); ++k) {
    // A key that only some have follows from what those chose: it is told where those that have it differ.
    const Cells::Told* first = nullptr;
    if (std::any_of(cells.begin(), cells.end(), [&](const Cells* c) {
          const Cells::Told& told = c->recipe[k];
          if (!told.there) return false;
          if (!first) first = &told;
          return told.cell.text != first->cell.text || told.cell.key != first->cell.key;
        })) {
      differ.push_back(k);
      keys.push_back(differing_[k]);
    }
  }
  for (size_t m = 0; m < judged_.size(); ++m)
    if (std::any_of(cells.begin(), cells.end(), [m](const Cells* c) { return c->metrics[m].there; }))
      judged.push_back(m);
  Table t;
  t.wide = true;
  // The result that most people ask for first stands where it is seen without scrolling.
  const auto main = std::min_element(judged.begin(), judged.end(), [&](size_t a, size_t b) {
    return result_rank(judged_[a]) < result_rank(judged_[b]);
  });
  const auto add_best = [&](size_t m) {
    t.columns.push_back({tr("best {}", judged_[m]), true, "best." + judged_[m]});
    if (baseline)
      t.columns.push_back({tr("± {}", judged_[m]), true, tr("best {} beside {}", judged_[m], baseline->info.name)});
  };
  t.columns = {{tr("Run")}, {tr("Status")}};
  if (main != judged.end()) add_best(*main);
  t.columns.push_back({tr("Steps"), true});
  t.columns.push_back({tr("Time"), true});
  const bool branched = std::any_of(rows.begin(), rows.end(), [](const auto& r) { return bool(r->info.branch); });
  if (branched) t.columns.push_back({tr("Parent")});
  for (size_t k : differ) {
    const std::string& key = differing_[k];
    const bool numbers = std::all_of(cells.begin(), cells.end(),
                                     [k](const Cells* c) { return c->recipe[k].number || !c->recipe[k].there; });
    t.columns.push_back({short_key(key, keys), numbers, tr("{} of the recipe", key)});
  }
  for (size_t m : judged) {
    t.columns.push_back({tr("last {}", judged_[m]), true, "last." + judged_[m]});
    if (m != *main) add_best(m);
  }
  const bool tagged = std::any_of(rows.begin(), rows.end(), [](const auto& r) { return !r->info.tags.empty(); });
  if (tagged) t.columns.push_back({tr("Tags")});
  t.columns.push_back({tr("Begun (UTC)")});
  t.rows.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Cells& c = *cells[i];
    const int64_t id = rows[i]->info.id;
    Table::Row row;
    row.selection = Selection::run(id, "runs");
    const auto picked = std::find(picked_.begin(), picked_.end(), id);
    row.picked = picked != picked_.end();
    row.cells.reserve(t.columns.size());
    const auto give_best = [&](size_t m) {
      row.cells.push_back(c.metrics[m].best);
      if (baseline) row.cells.push_back(difference_cell(judged_[m], beside(baseline, judged_[m], *rows[i])));
    };
    for (const Table::Cell* first : {&c.name, &c.status}) row.cells.push_back(*first);
    if (main != judged.end()) give_best(*main);
    for (const Table::Cell* then : {&c.steps, &c.time}) row.cells.push_back(*then);
    if (branched) row.cells.push_back(c.parent);
    if (rows[i].get() == baseline) {
      row.cells[0].text += " · " + tr("baseline");
      row.cells[0].mark = Ink::baseline;
    }
    if (*row.picked) row.cells[0].mark = compared_ink(static_cast<int>(picked - picked_.begin()));
    for (size_t k : differ) row.cells.push_back(c.recipe[k].cell);
    for (size_t m : judged) {
      row.cells.push_back(c.metrics[m].last);
      if (m != *main) give_best(m);
    }
    if (tagged) row.cells.push_back(c.tags);
    row.cells.push_back(c.begun);
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace tenon::views
