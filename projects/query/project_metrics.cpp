// The metrics of the runs of a project: every point, and what they come to.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "projects/project.h"
#include "projects/query/query_table.h"

namespace tenon::projects {
namespace {

using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

/// Series by run and name, of the runs that are not deleted.
struct SeriesList {
  explicit SeriesList(const Project& p) : sums(p.metric_sums()) {
    for (RunInfo& r : p.runs()) runs.emplace(r.id, std::move(r));
    std::erase_if(sums, [this](const MetricSum& s) { return !runs.count(s.run); });
  }
  const RunInfo& run_of(const MetricSum& s) const { return runs.at(s.run); }
  std::vector<MetricSum> sums;
  std::unordered_map<int64_t, RunInfo> runs;
};

/// The number of a point: its series' place in the list, and its own in the series. One series is read at a time, when
/// a walk comes to it.
class MetricPoints final : public QueryRows {
 public:
  explicit MetricPoints(std::shared_ptr<const Project> p) : project(std::move(p)), series(*project) {}
  static constexpr int kShift = 40;
  int64_t end() const override { return static_cast<int64_t>(series.sums.size()) << kShift; }
  double count() const override {
    double n = 0;
    for (const MetricSum& s : series.sums) n += static_cast<double>(s.points);
    return n;
  }
  Scan scan(const std::vector<QueryTest>& tests) const override {
    int64_t least_run = INT64_MIN, most_run = INT64_MAX;
    std::vector<bool> wanted(series.sums.size(), true);
    for (const QueryTest& t : tests) {
      if (t.column == "run") t.narrow(least_run, most_run);
      const auto* text = std::get_if<std::string>(&t.value);
      for (size_t i = 0; text && i < wanted.size(); ++i) {
        if (t.column == "metric") wanted[i] = wanted[i] && series.sums[i].name == *text;
        if (t.column == "run_name") wanted[i] = wanted[i] && series.run_of(series.sums[i]).name == *text;
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = wanted[i] && series.sums[i].run >= least_run && series.sums[i].run <= most_run;
    return [this, wanted = std::move(wanted)](int64_t from) {
      auto at = static_cast<size_t>(from >> kShift);
      int64_t point = from & ((int64_t{1} << kShift) - 1);
      for (; at < wanted.size(); ++at, point = 0)
        if (wanted[at] && point < static_cast<int64_t>(points(at).size()))
          return (static_cast<int64_t>(at) << kShift) | point;
      return end();
    };
  }
  const MetricSum& sum(int64_t row) const { return series.sums[static_cast<size_t>(row >> kShift)]; }
  const RunInfo& run(int64_t row) const { return series.run_of(sum(row)); }
  const MetricPoint& point(int64_t row) const {
    return points(static_cast<size_t>(row >> kShift))[static_cast<size_t>(row & ((int64_t{1} << kShift) - 1))];
  }
  std::optional<double> epoch(int64_t row) const {
    const auto at = static_cast<size_t>(row >> kShift);
    if (epoch_at_ != at) {
      epoch_ = epoch_of(run(row));
      epoch_at_ = at;
    }
    return epoch_.epochs_after(point(row).step);
  }

  const std::shared_ptr<const Project> project;
  const SeriesList series;

 private:
  const std::vector<MetricPoint>& points(size_t at) const {
    if (read_ != at) {
      points_ = project->metric(series.sums[at].run, series.sums[at].name);
      read_ = at;
    }
    return points_;
  }
  mutable size_t read_ = ~size_t{0}, epoch_at_ = ~size_t{0};
  mutable std::vector<MetricPoint> points_;
  mutable EpochLength epoch_;
};

const bool registered_metrics = register_query_table(
    QueryKind::project,
    {"metrics",
     30,
     "every point of every metric of every run",
     QueryColumns<MetricPoints>()
         .add(
             "run", Unit::count, "id in runs",
             [](const MetricPoints& m, int64_t i, QueryCell& c) { c.put(m.sum(i).run); }, Found::scanned, Leads::run)
         .add(
             "run_name", Unit::text, "its name",
             [](const MetricPoints& m, int64_t i, QueryCell& c) { c.put_standing(m.run(i).name); }, Found::scanned,
             Leads::run)
         .add(
             "metric", Unit::text, "loss, test_accuracy, ...",
             [](const MetricPoints& m, int64_t i, QueryCell& c) { c.put_standing(m.sum(i).name); }, Found::scanned)
         .add(
             "step", Unit::count, "after which it was taken",
             [](const MetricPoints& m, int64_t i, QueryCell& c) { c.put(m.point(i).step); }, Found::by_looking,
             Leads::step)
         .add("epoch", Unit::number, "the step in epochs; NULL where their length is not known",
              [](const MetricPoints& m, int64_t i, QueryCell& c) {
                if (const auto e = m.epoch(i)) c.put(*e);
              })
         .add("seconds", Unit::number, "of training until then",
              [](const MetricPoints& m, int64_t i, QueryCell& c) { c.put(m.point(i).wall); })
         .add("value", Unit::number, "NaN is NULL, as SQL has none",
              [](const MetricPoints& m, int64_t i, QueryCell& c) { c.put(m.point(i).value); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<MetricPoints>(s.project); },
     {{"Loss of the latest run",
       "SELECT step, value, run\nFROM metrics WHERE metric = 'loss' AND run = (SELECT max(id) FROM runs)"}}});

class MetricSums final : public QueryList<MetricSum> {
 public:
  explicit MetricSums(SeriesList all) : QueryList(std::move(all.sums)), runs(std::move(all.runs)) {}
  const std::unordered_map<int64_t, RunInfo> runs;
};

const bool registered_metric_sums = register_query_table(
    QueryKind::project,
    {"metric_sums",
     40,
     "what the points of each metric of each run come to",
     QueryColumns<MetricSums>()
         .add(
             "run", Unit::count, "id in runs", [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].run); },
             Found::sorted, Leads::run)
         .add(
             "run_name", Unit::text, "its name",
             [](const MetricSums& m, int64_t i, QueryCell& c) { c.put_standing(m.runs.at(m[i].run).name); },
             Found::by_looking, Leads::run)
         .add("metric", Unit::text, "loss, test_accuracy, ...",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put_standing(m[i].name); })
         .add("points", Unit::count, "how many",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].points); })
         .add("not_finite", Unit::count, "how many of them are NaN or infinite",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].bad); })
         .add("last", Unit::number, "its last value; NULL where that is NaN",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].last); })
         .add("last_step", Unit::count, "where that was",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].last_step); })
         .add("low", Unit::number, "the lowest finite value; NULL where there is none",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].low); })
         .add("low_step", Unit::count, "where that was first",
              [](const MetricSums& m, int64_t i, QueryCell& c) {
                if (!std::isnan(m[i].low)) c.put(m[i].low_step);
              })
         .add("high", Unit::number, "the highest finite value; NULL where there is none",
              [](const MetricSums& m, int64_t i, QueryCell& c) { c.put(m[i].high); })
         .add("high_step", Unit::count, "where that was first",
              [](const MetricSums& m, int64_t i, QueryCell& c) {
                if (!std::isnan(m[i].high)) c.put(m[i].high_step);
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<MetricSums>(SeriesList(*s.project));
     },
     {{"Runs by lowest loss",
       "SELECT run_name, low AS lowest_loss, low_step, run\nFROM metric_sums WHERE metric = 'loss' ORDER BY low"}}});

}  // namespace
}  // namespace tenon::projects
