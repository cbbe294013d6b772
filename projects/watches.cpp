#include "projects/watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "projects/lineage.h"

namespace tenon::projects {
namespace {

/// The points of a run in the order in which it recorded them: those of a step before those of the evaluation behind
/// it.
class RecordedMetric {
 public:
  RecordedMetric(const Project& project, int64_t run, std::string name)
      : name_(std::move(name)), points_(metric_along(project, lineage(project, run, INT64_MAX), name_)) {}
  /// Gives the memory what was recorded up to a step.
  void give_to(WatchMemory& memory, int64_t until) {
    for (; at_ < points_.size() && points_[at_].step <= until; ++at_) memory.take(name_, points_[at_].value);
  }
  bool of_evaluations() const { return name_.starts_with("test_"); }

 private:
  std::string name_;
  std::vector<MetricPoint> points_;
  size_t at_ = 0;
};

std::vector<RecordedMetric> wanted_by(const WatchMemory& memory, const Project& project, int64_t run) {
  std::vector<RecordedMetric> all;
  for (const auto& [metric, count] : memory.wants()) all.emplace_back(project, run, metric);
  return all;
}

/// The step at which a watch was looked at last, up to `done`.
int64_t last_look(const Watch& w, const Project& project, int64_t run, int64_t done) {
  if (!w.of_evaluations()) return done / w.every * w.every;
  int64_t last = 0;
  for (const MetricPoint& p : metric_along(project, lineage(project, run, done), w.of)) last = p.step;
  return last;
}

FoundStep find_in_metrics(const Project& project, int64_t run, const Watch& w) {
  FoundStep found;
  WatchMemory memory({w});
  std::vector<RecordedMetric> others = wanted_by(memory, project, run);
  for (const MetricPoint& p : project.metric(run, w.of)) {
    // An evaluation comes behind its step, whose metrics are there by then.
    for (RecordedMetric& m : others) m.give_to(memory, w.of_evaluations() && !m.of_evaluations() ? p.step : p.step - 1);
    ++found.looked_at;
    const double value = w.of_metric(p.value), median = memory.median(w);
    if (!w.holds(value, median)) continue;
    found.found = true;
    found.hit = {w.condition, p.step, w.of, value, w.bound(value, median), true, w.action};
    break;
  }
  return found;
}

/// A run that is replayed under the eyes of watches.
class WatchedReplay {
 public:
  WatchedReplay(Project& project, int64_t run, std::vector<Watch> watches)
      : project_(project), run_(project.run(run)), watches_(std::move(watches)), replayer_(run_) {}

  const RunInfo& run() const { return run_; }
  /// The steps behind a checkpoint, up to `to`; ends after the first hit where `first` is set.
  std::vector<WatchHit> look(const Checkpoint& from, int64_t to, bool first, const std::function<void()>& tick) {
    TrainingSession& session = replayer_.load(from);
    WatchList list(session, session.recipe(), watches_);
    recall_watches(list, project_, run_.id, from.step);
    std::vector<RecordedMetric> evaluated = wanted_by(list.memory(), project_, run_.id);
    std::erase_if(evaluated, [](const RecordedMetric& m) { return !m.of_evaluations(); });
    WatchMemory known;  // they gave that already
    for (RecordedMetric& m : evaluated) m.give_to(known, from.step);
    std::vector<WatchHit> all;
    for (int64_t done = from.step; done < to && (!first || all.empty()); ++done) {
      if (tick) tick();
      replayer_.step();
      ++replayed_;
      for (WatchHit& h : list.take()) all.push_back(std::move(h));
      for (RecordedMetric& m : evaluated) m.give_to(list.memory(), done + 1);
    }
    return all;
  }
  int64_t replayed() const { return replayed_; }

 private:
  Project& project_;
  RunInfo run_;
  std::vector<Watch> watches_;
  Replayer replayer_;
  int64_t replayed_ = 0;
};

/// Those from which steps of the run can be replayed.
std::vector<CheckpointInfo> starts_of(const RunInfo& run, std::vector<CheckpointInfo> all) {
  std::erase_if(all, [&](const CheckpointInfo& c) { return c.step >= run.steps; });
  return all;
}

int64_t halvings(size_t n) { return n ? static_cast<int64_t>(std::ceil(std::log2(static_cast<double>(n) + 1))) : 0; }

}  // namespace

void recall_watches(WatchList& list, const Project& project, int64_t run, int64_t done) {
  for (RecordedMetric& m : wanted_by(list.memory(), project, run)) m.give_to(list.memory(), done);
  std::vector<WatchHit> hits;
  for (const Ancestry& part : lineage(project, run, done))
    for (WatchHit& h : project.watch_hits(part.run))
      if (h.step > part.after && h.step <= part.upto) hits.push_back(std::move(h));
  for (size_t i = 0; i < list.watches().size(); ++i) {
    const Watch& w = list.watches()[i];
    const int64_t looked = last_look(w, project, run, done);
    list.recall_held(i, std::any_of(hits.begin(), hits.end(),
                                    [&](const WatchHit& h) { return h.step == looked && h.watch == w.condition; }));
  }
}

std::vector<WatchSummary> watch_summaries(const Project& project, const RunInfo& run) {
  std::vector<WatchSummary> all;
  const auto of = [&](const std::string& condition) -> WatchSummary& {
    for (WatchSummary& s : all)
      if (s.condition == condition) return s;
    all.push_back({.condition = condition, .armed = false, .first = {}, .last = {}});
    return all.back();
  };
  const auto take = [&](const nlohmann::json& recipe) {
    for (WatchSummary& s : all) s.armed = false;
    try {
      for (const Watch& w : parse_watches(Recipe::from_json(recipe).text("watches"))) {
        WatchSummary& s = of(w.condition);
        s.action = w.action;
        s.armed = true;
      }
    } catch (const Error&) {  // of a plug-in that is not here: what it saw is listed all the same
    }
  };
  take(run.recipe);
  for (const RecipeChange& c : run.changes) take(c.recipe);
  for (const WatchHit& h : project.watch_hits(run.id)) {
    WatchSummary& s = of(h.watch);
    if (s.held++ == 0) s.first = h;
    s.last = h;
    s.began += h.begins;
    if (!s.armed) s.action = h.action;
    s.armed |= s.condition == kOwnWatch;
  }
  for (const WatchCost& c : project.watch_costs(run.id))
    if (c.trained > 0) of(c.watch).share = c.seconds / c.trained;
  return all;
}

FindPlan plan_find(const RunInfo& run, const std::vector<CheckpointInfo>& checkpoints, const Watch& condition,
                   bool bisect) {
  FindPlan plan;
  if (condition.only_metrics()) return plan;
  const std::vector<CheckpointInfo> starts = starts_of(run, checkpoints);
  if (starts.empty()) return plan;
  plan.replayed = run.steps - starts.front().step;
  if (bisect) {
    int64_t widest = 0;
    for (size_t i = 0; i < starts.size(); ++i)
      widest = std::max(widest, (i + 1 < starts.size() ? starts[i + 1].step + 1 : run.steps) - starts[i].step);
    plan.replayed = std::min(plan.replayed, widest + halvings(starts.size()));
  }
  if (run.steps > 0 && run.seconds > 0)
    plan.seconds = run.seconds / static_cast<double>(run.steps) * static_cast<double>(plan.replayed);
  return plan;
}

FoundStep find_first(Project& project, int64_t run, const Watch& condition, bool bisect, const Progress& progress) {
  if (condition.only_metrics()) return find_in_metrics(project, run, condition);
  WatchedReplay replay(project, run, {condition});
  const std::vector<CheckpointInfo> starts = starts_of(replay.run(), project.checkpoints(run));
  const int64_t wanted = plan_find(replay.run(), starts, condition, bisect).replayed;
  const auto tick = [&] {
    if (progress && !progress(std::min(replay.replayed(), wanted), wanted)) throw Error("cancelled");
  };
  if (starts.empty())
    throw Error(fmt::format("run {} has no checkpoint from which a step could be replayed", replay.run().name),
                "Resume it: it begins with one.");
  const auto look = [&](size_t start, int64_t to) {
    return replay.look(project.load_checkpoint(starts[start].id), to, true, tick);
  };
  const int64_t steps = replay.run().steps;
  std::vector<WatchHit> hits;
  if (bisect) {
    // It does not hold behind the checkpoints before `low`, and holds behind that of `high`.
    size_t low = 0, high = starts.size();
    std::vector<WatchHit> at_high;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      std::vector<WatchHit> there = look(middle, starts[middle].step + 1);
      if (there.empty())
        low = middle + 1;
      else
        high = middle, at_high = std::move(there);
    }
    if (low > 0) hits = look(low - 1, high < starts.size() ? starts[high].step : steps);
    if (hits.empty()) hits = std::move(at_high);
  } else {
    hits = look(0, steps);
  }
  FoundStep found{.found = !hits.empty(), .hit = {}, .looked_at = replay.replayed(), .replayed = replay.replayed()};
  if (found.found) found.hit = hits.front();
  return found;
}

std::vector<WatchHit> replay_watches(Project& project, int64_t run, const std::vector<Watch>& watches, int64_t from,
                                     int64_t to, const Progress& progress) {
  WatchedReplay replay(project, run, watches);
  const Checkpoint start = project.checkpoint_before(run, std::max<int64_t>(from, 1) - 1);
  const int64_t last = std::min(to, replay.run().steps);
  std::vector<WatchHit> hits = replay.look(start, last, false, [&] {
    if (progress && !progress(replay.replayed(), last - start.step)) throw Error("cancelled");
  });
  std::erase_if(hits, [&](const WatchHit& h) { return h.step < from; });
  return hits;
}

}  // namespace tenon::projects
