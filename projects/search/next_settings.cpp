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

/// The results that a model is made of: a Gaussian process of n takes n^3, so of many those that tell the most, the
/// best and the last ones.
std::vector<const Result*> that_tell(const SweepPlan& plan, std::vector<const Result*> all) {
  constexpr size_t kHalf = 150;
  if (all.size() <= 2 * kHalf) return all;
  std::vector<const Result*> kept(all.end() - kHalf, all.end());
  all.resize(all.size() - kHalf);
  std::stable_sort(all.begin(), all.end(), [&](const Result* a, const Result* b) {
    return a->value && (!b->value || plan.is_better(*a->value, *b->value));
  });
  kept.insert(kept.end(), all.begin(), all.begin() + kHalf);
  std::sort(kept.begin(), kept.end(), [](const Result* a, const Result* b) { return a->number < b->number; });
  return kept;
}

std::optional<Settings> by_model(const SweepPlan& plan, int64_t number, const std::vector<Result>& before) {
  std::vector<const Result*> ended, open;  // of earlier rounds, and of this one, whose results do not count
  for (const Result& r : before) (r.number < plan.round_of(number) ? ended : open).push_back(&r);
  ended = that_tell(plan, std::move(ended));
  // Low values are better from here on. A failed trial counts as the worst that was seen.
  const double sign = plan.direction > 0 ? -1 : 1;
  const Settings* best = nullptr;
  double lowest = 0, highest = 0;
  size_t known = 0;
  for (const Result* r : ended) {
    if (!r->value) continue;
    const double v = sign * *r->value;
    if (!best || v < lowest) lowest = v, best = &r->settings;
    highest = known++ ? std::max(highest, v) : v;
  }
  if (known < 2) return plan.space.settings(random_point(plan, numbers_of(plan, number), 0));
  GaussianProcess::Points points;
  std::vector<double> values;
  for (const Result* r : ended) {
    points.push_back(plan.space.features(r->settings));
    values.push_back(r->value ? sign * *r->value : highest);
  }
  // Trials of the same round count as if they had what the model expects of them (the "kriging believer" of
  // Ginsbourger, Le Riche & Carraro, Kriging Is Well-Suited to Parallelize Optimization, 2010): the next one goes
  // elsewhere.
  for (const Result* r : open) {
    points.push_back(plan.space.features(r->settings));
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
  // Of a space of which little is left all may have been tried: chance finds the rest.
  return chosen ? chosen : plan.space.settings(random_point(plan, numbers_of(plan, number), 0));
}

}  // namespace

bool all_tried(const SweepPlan& plan, const std::vector<Result>& before) {
  const int64_t all = plan.space.different(kCountable);
  if (plan.method != SweepPlan::Method::bayes || all >= kCountable) return false;
  std::vector<Settings> seen;
  for (const Result& r : before) seen.push_back(r.settings);
  std::sort(seen.begin(), seen.end());
  return std::unique(seen.begin(), seen.end()) - seen.begin() >= all;
}

std::optional<Settings> next_settings(const SweepPlan& plan, int64_t number, const std::vector<Result>& before) {
  if (number > plan.runs) return {};
  if (plan.method == SweepPlan::Method::grid) return plan.space.grid_point(number - 1);
  if (plan.method == SweepPlan::Method::random || before.size() < first_ones(plan))
    return plan.space.settings(random_point(plan, numbers_of(plan, number), 0));
  if (all_tried(plan, before)) return {};
  return by_model(plan, number, before);
}

}  // namespace tenon::projects
