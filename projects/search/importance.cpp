#include "projects/search/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace tenon::projects {
namespace {

constexpr int kTrees = 48;
constexpr size_t kLeaf = 2;  ///< the fewest trials on a side of a cut

struct Sample {
  std::vector<double> at;
  double value;
};
using Samples = std::vector<const Sample*>;

/// A part of the unit cube in which a tree says one value.
struct Leaf {
  std::vector<double> lo, hi;
  double value = 0;
  double volume() const {
    double v = 1;
    for (size_t i = 0; i < lo.size(); ++i) v *= hi[i] - lo[i];
    return v;
  }
};

double sum_of_squares(double sum, double squares, double n) { return squares - sum * sum / n; }

/// The cut that leaves the least variance on its two sides; false where none leaves less.
bool best_cut(Samples& samples, size_t keys, size_t& key, double& at) {
  double sum = 0, squares = 0;
  for (const Sample* s : samples) sum += s->value, squares += s->value * s->value;
  const auto n = static_cast<double>(samples.size());
  double least = sum_of_squares(sum, squares, n) * (1 - 1e-9) - 1e-300;
  bool found = false;
  for (size_t k = 0; k < keys; ++k) {
    std::sort(samples.begin(), samples.end(), [k](const Sample* a, const Sample* b) {
      return std::pair(a->at[k], a->value) < std::pair(b->at[k], b->value);
    });
    double left = 0, left_squares = 0;
    for (size_t i = 0; i + kLeaf < samples.size(); ++i) {
      left += samples[i]->value;
      left_squares += samples[i]->value * samples[i]->value;
      if (i + 1 < kLeaf || samples[i]->at[k] == samples[i + 1]->at[k]) continue;
      const auto m = static_cast<double>(i + 1);
      const double rest =
          sum_of_squares(left, left_squares, m) + sum_of_squares(sum - left, squares - left_squares, n - m);
      if (rest >= least) continue;
      least = rest;
      key = k;
      at = (samples[i]->at[k] + samples[i + 1]->at[k]) / 2;
      found = true;
    }
  }
  return found;
}

void grow(Samples samples, Leaf box, std::vector<Leaf>& leaves) {
  size_t key = 0;
  double at = 0;
  if (samples.size() < 2 * kLeaf || !best_cut(samples, box.lo.size(), key, at)) {
    for (const Sample* s : samples) box.value += s->value / static_cast<double>(samples.size());
    return leaves.push_back(std::move(box));
  }
  const auto middle =
      std::stable_partition(samples.begin(), samples.end(), [&](const Sample* s) { return s->at[key] < at; });
  Leaf left = box, right = std::move(box);
  left.hi[key] = right.lo[key] = at;
  grow({samples.begin(), middle}, std::move(left), leaves);
  grow({middle, samples.end()}, std::move(right), leaves);
}

/// The variance of the mean along one key.
double variance_along(const std::vector<Leaf>& leaves, size_t key, double mean) {
  std::vector<double> cuts;
  for (const Leaf& l : leaves) cuts.push_back(l.lo[key]), cuts.push_back(l.hi[key]);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  double variance = 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    double marginal = 0;
    for (const Leaf& l : leaves)
      if (l.lo[key] <= cuts[i] && cuts[i + 1] <= l.hi[key]) marginal += l.value * l.volume() / (l.hi[key] - l.lo[key]);
    variance += (marginal - mean) * (marginal - mean) * (cuts[i + 1] - cuts[i]);
  }
  return variance;
}

}  // namespace

Importance importance(const SweepPlan& plan, const std::vector<Result>& finished) {
  Importance out;
  const size_t keys = plan.space.size(), wanted = std::max<size_t>(8, 4 * keys);
  std::vector<Sample> all;
  for (const Result& r : finished)
    if (r.value) all.push_back({plan.space.point(r.settings), *r.value});
  if (all.size() < wanted) {
    out.too_few = fmt::format("too few trials to tell: {} finished, {} are needed for {} {}", all.size(), wanted, keys,
                              keys == 1 ? "key" : "keys");
    return out;
  }
  std::vector<double> shares(keys, 0);
  int trees = 0;
  for (int t = 0; t < kTrees; ++t) {
    const Philox random{plan.seed, stream_of("importance") + static_cast<uint64_t>(t)};
    Samples drawn;
    for (size_t i = 0; i < all.size(); ++i) drawn.push_back(&all[random.below(i, all.size())]);
    std::vector<Leaf> leaves;
    grow(std::move(drawn), {std::vector<double>(keys, 0), std::vector<double>(keys, 1), 0}, leaves);
    double mean = 0, variance = 0;
    for (const Leaf& l : leaves) mean += l.value * l.volume();
    for (const Leaf& l : leaves) variance += (l.value - mean) * (l.value - mean) * l.volume();
    if (!(variance > 0)) continue;
    ++trees;
    for (size_t k = 0; k < keys; ++k) shares[k] += variance_along(leaves, k, mean) / variance;
  }
  if (trees == 0) {
    out.too_few = fmt::format("the {} finished trials all came to the same value", all.size());
    return out;
  }
  double sum = 0;
  for (size_t k = 0; k < keys; ++k) {
    out.shares.push_back({plan.space.keys()[k].key, shares[k] / trees});
    sum += out.shares.back().share;
  }
  out.together = std::max(0.0, 1 - sum);
  return out;
}

}  // namespace tenon::projects
