// The points of a run's metrics, and what they come to.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "projects/project.h"
#include "projects/project_impl.h"

namespace tenon::projects {
namespace {

// Note [Sums of series]
// Tables of runs want the last and best of every metric, of thousands of runs with a hundred thousand points each. So
// the points of a series are summed up in one row, written in the transaction of the points: it never says anything
// else than they do. Points that only come behind the known ones are added to it. Where a point is replaced or dropped
// the row goes, and a series without one is summed up from its points by whoever needs it next, which is also how a
// file of before there were sums comes to them.

constexpr const char* kSumOf =
    "SELECT points, bad, last_step, last, low, low_step, high, high_step FROM series_sums WHERE series = ?";
constexpr const char* kPoints = "SELECT step, wall, value FROM points WHERE series = ? ORDER BY step";

MetricSum nothing() {
  MetricSum s;
  s.last = s.low = s.high = std::numeric_limits<double>::quiet_NaN();
  return s;
}

void add(MetricSum& s, int64_t step, double value) {
  ++s.points;
  s.last_step = step;
  s.last = value;
  if (!std::isfinite(value)) {
    ++s.bad;
    return;
  }
  if (!(s.low <= value)) s.low = value, s.low_step = step;
  if (!(s.high >= value)) s.high = value, s.high_step = step;
}

/// The columns of kSumOf, from one on.
MetricSum read_sum(const Query& q, int from = 0) {
  MetricSum s;
  s.points = q.integer(from);
  s.bad = q.integer(from + 1);
  s.last_step = q.integer(from + 2);
  s.last = q.real(from + 3);
  s.low = q.real(from + 4);
  s.low_step = q.integer(from + 5);
  s.high = q.real(from + 6);
  s.high_step = q.integer(from + 7);
  return s;
}

MetricSum sum_up(Database& db, int64_t series) {
  MetricSum s = nothing();
  Query q = db.query(kPoints, series);
  while (q.next()) add(s, q.integer(0), q.real(2));
  return s;
}

void put_sum(Database& db, int64_t series, const MetricSum& s) {
  if (s.points == 0) return;
  db.run(
      "INSERT OR REPLACE INTO series_sums (series, points, bad, last_step, last, low, low_step, high, high_step) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      series, s.points, s.bad, s.last_step, s.last, s.low, s.low_step, s.high, s.high_step);
}

/// A series that rows are written to.
struct Written {
  std::string name;
  int64_t id = 0;
  std::optional<MetricSum> sum;  ///< nothing: it is to be summed up anew
};

}  // namespace

void Project::Impl::put_metrics(int64_t run, const std::vector<MetricRow>& rows) {
  // Rows of one series mostly come together or in turn: remember the few names of this call.
  std::vector<Written> known;
  for (const MetricRow& row : rows) {
    auto at = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.name == row.name; });
    if (at == known.end()) {
      writer->run("INSERT INTO series (run, name) VALUES (?, ?) ON CONFLICT DO NOTHING", run, row.name);
      Query q = writer->query("SELECT id FROM series WHERE run = ? AND name = ?", run, row.name);
      q.next();
      at = known.insert(known.end(), {row.name, q.integer(0), {}});
      if (Query s = writer->query(kSumOf, at->id); s.next())
        at->sum = read_sum(s);
      else if (!writer->query("SELECT 1 FROM points WHERE series = ? LIMIT 1", at->id).next())
        at->sum = nothing();
    }
    writer->run("INSERT OR REPLACE INTO points (series, step, wall, value) VALUES (?, ?, ?, ?)", at->id, row.point.step,
                row.point.wall, row.point.value);
    if (at->sum && at->sum->points > 0 && row.point.step <= at->sum->last_step) at->sum.reset();
    if (at->sum) add(*at->sum, row.point.step, row.point.value);
  }
  for (const Written& w : known) put_sum(*writer, w.id, w.sum ? *w.sum : sum_up(*writer, w.id));
}

void Project::Impl::drop_metrics(int64_t run, int64_t step) {
  writer->run("DELETE FROM series_sums WHERE series IN (SELECT id FROM series WHERE run = ?) AND last_step > ?", run,
              step);
  writer->run("DELETE FROM points WHERE series IN (SELECT id FROM series WHERE run = ?) AND step > ?", run, step);
  writer->run("DELETE FROM watch_hits WHERE run = ? AND step > ?", run, step);
  writer->run("DELETE FROM run_events WHERE run = ? AND step > ?", run, step);
}

void Project::Impl::put_missing_sums() {
  Transaction t(*writer);
  std::vector<int64_t> missing;
  {
    Query q = writer->query("SELECT id FROM series WHERE id NOT IN (SELECT series FROM series_sums)");
    while (q.next()) missing.push_back(q.integer(0));
  }
  for (int64_t series : missing) put_sum(*writer, series, sum_up(*writer, series));
  t.commit();
}

void Project::append_metrics(int64_t run, const std::vector<MetricRow>& rows) {
  if (rows.empty()) return;
  int64_t last = 0;
  double trained = 0;
  for (const MetricRow& row : rows) {
    last = std::max(last, row.point.step);
    trained = std::max(trained, row.point.wall);
  }
  Transaction t(impl_->write());
  impl_->put_metrics(run, rows);
  // A step that has a metric is done: curves and the way back in time reach equally far, also after a kill.
  impl_->writer->run("UPDATE runs SET steps = max(steps, ?) WHERE id = ?", last, run);
  if (trained > 0) impl_->writer->run("UPDATE runs SET seconds = ? WHERE id = ?", trained, run);
  t.commit();
}

void Project::truncate_metrics(int64_t run, int64_t step) {
  Transaction t(impl_->write());
  impl_->drop_metrics(run, step);
  t.commit();
}

std::vector<std::string> Project::metric_names(int64_t run) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query("SELECT name FROM series WHERE run = ? ORDER BY name", run);
  std::vector<std::string> out;
  while (q.next()) out.push_back(q.text(0));
  return out;
}

std::vector<MetricPoint> Project::metric(int64_t run, const std::string& name) const {
  Database& db = impl_->read();
  std::lock_guard lock(db.mutex);
  Query q = db.query(
      "SELECT step, wall, value FROM points WHERE series = (SELECT id FROM series WHERE run = ? AND name = ?) ORDER BY "
      "step",
      run, name);
  std::vector<MetricPoint> out;
  while (q.next()) out.push_back({q.integer(0), q.real(1), q.real(2)});
  return out;
}

std::vector<MetricSum> Project::metric_sums(int64_t run) const {
  Database& db = impl_->read();
  const auto read = [&](bool& all) {
    std::lock_guard lock(db.mutex);
    Query q = db.query(
        "SELECT s.run, s.name, s.id, x.points, x.bad, x.last_step, x.last, x.low, x.low_step, x.high, x.high_step "
        "FROM series s LEFT JOIN series_sums x ON x.series = s.id WHERE ?1 = 0 OR s.run = ?1 ORDER BY s.run, s.name",
        run);
    std::vector<MetricSum> out;
    all = true;
    while (q.next()) {
      const bool known = !q.is_null(3);
      MetricSum s = known ? read_sum(q, 3) : sum_up(db, q.integer(2));
      if (s.points == 0) continue;
      all &= known;
      s.run = q.integer(0);
      s.name = q.text(1);
      out.push_back(std::move(s));
    }
    return out;
  };
  bool all = true;
  std::vector<MetricSum> out = read(all);
  if (all || !impl_->writer) return out;
  try {
    impl_->put_missing_sums();
  } catch (const Error&) {  // no room, or another process writes: it is worked out again the next time
  }
  return out;
}

}  // namespace tenon::projects
