#include "projects/search/next_settings.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "projects/search/gaussian_process.h"

namespace tenon::projects {
namespace {

constexpr int kAnywhere = 1500, kNear = 500;
constexpr int64_t kCountable = 4096;

/// Trial `number` draws from a stream of its own: no draw depends on another.
Philox numbers_of(const SweepPlan& plan, int64_t number) { return {plan.seed, static_cast<uint64_t>(number)}; }

std::vector<double> random_point(const SweepPlan& plan, const Philox& random, uint64_t at) {
  std::vector<double> point(plan.space.size());
  for (size_t i = 0; i < point.size(); ++i) point[i] = random.uniform_double(at * point.size() + i);
  return point;
}

bool tried(const std::vector<Result>& before, const Settings& s) {
  return std::any_of(before.begin(), before.end(), [&](const Result& r) { return r.settings == s; });
}

/// How many trials are drawn at random before a model of the results is asked.
size_t first_ones(const SweepPlan& plan) { return std::max<size_t>(4, plan.space.size() + 2); }

/// Points to ask the model about: anywhere, and around the best so far at ever smaller distances.
std::vector<Settings> candidates(const SweepPlan& plan, int64_t number, const Settings& best) {
  const Philox random = numbers_of(plan, number);
  std::vector<Settings> out;
  for (uint64_t i = 0; i < kAnywhere; ++i) out.push_back(plan.space.settings(random_point(plan, random, i + 1)));
  const std::vector<double> centre = plan.space.point(best);
  const Philox shift{plan.seed, stream_of("near") + static_cast<uint64_t>(number)};
  for (uint64_t i = 0; i < kNear; ++i) {
    std::vector<double> point = centre;
    for (size_t k = 0; k < point.size(); ++k) {
      const double far = 0.3 * std::pow(0.5, static_cast<double>(i % 6));
      point[k] = std::clamp(point[k] + far * shift.normal(i * point.size() + k), 0.0, 1.0);
    }
    out.push_back(plan.space.settings(point));
  }
  return out;
}

std::optional<Settings> by_model(const SweepPlan& plan, int64_t number, const std::vector<Result>& before) {
  // Low values are better from here on. A failed trial counts as the worst that was seen.
  GaussianProcess::Points points;
  std::vector<double> values;
  std::vector<const Settings*> open;
  const Settings* best = nullptr;
  double lowest = 0, highest = 0;
  const auto known = [&](const Result& r) { return r.value && r.number < plan.round_of(number); };
  for (const Result& r : before)
    if (known(r)) {
      const double v = plan.direction > 0 ? -*r.value : *r.value;
      if (!best || v < lowest) lowest = v, best = &r.settings;
      highest = values.empty() ? v : std::max(highest, v);
      points.push_back(plan.space.features(r.settings));
      values.push_back(v);
    }
  if (values.size() < 2) return plan.space.settings(random_point(plan, numbers_of(plan, number), 0));
  for (const Result& r : before) {
    if (known(r)) continue;
    if (r.number >= plan.round_of(number)) {
      open.push_back(&r.settings);
      continue;
    }
    points.push_back(plan.space.features(r.settings));
    values.push_back(highest);
  }
  // Trials of the same round count as if they had what the model expects of them (the "kriging believer" of
  // Ginsbourger, Le Riche & Carraro, Kriging Is Well-Suited to Parallelize Optimization, 2010): the next one goes
  // elsewhere.
  for (const Settings* s : open) {
    points.push_back(plan.space.features(*s));
    const std::vector<double> there = points.back();
    GaussianProcess so_far({points.begin(), points.end() - 1}, values);
    values.push_back(so_far.at(there).mean);
  }
  const GaussianProcess model(points, values);
  std::optional<Settings> chosen;
  double most = -1;
  for (Settings& s : candidates(plan, number, *best)) {
    if (tried(before, s)) continue;
    const double gain = expected_improvement(model.at(plan.space.features(s)), lowest);
    if (gain > most) most = gain, chosen = std::move(s);
  }
  return chosen;
}

}  // namespace

std::optional<Settings> next_settings(const SweepPlan& plan, int64_t number, const std::vector<Result>& before) {
  if (number > plan.runs) return {};
  if (plan.method == SweepPlan::Method::grid) return plan.space.grid_point(number - 1);
  if (plan.method == SweepPlan::Method::random || before.size() < first_ones(plan))
    return plan.space.settings(random_point(plan, numbers_of(plan, number), 0));
  // Trials before this one whose settings differ: where those are all there are, the search is over.
  if (const int64_t all = plan.space.different(kCountable); all < kCountable) {
    std::vector<Settings> seen;
    for (const Result& r : before) seen.push_back(r.settings);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    if (static_cast<int64_t>(seen.size()) >= all) return {};
  }
  return by_model(plan, number, before);
}

}  // namespace tenon::projects
