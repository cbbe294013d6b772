#include "engine/train/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {

namespace {
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double ratio(int64_t part, int64_t all) {
  return all ? static_cast<double>(part) / static_cast<double>(all) : kNothing;
}

/// One point a share that occurs.
std::vector<Ranking::Point> all_points(const std::vector<Ranking::Share>& falling) {
  std::vector<Ranking::Point> points;
  Ranking::Point at;
  for (size_t i = 0; i < falling.size();) {
    at.threshold = falling[i].value;
    for (; i < falling.size() && falling[i].value == at.threshold; ++i)
      ++(falling[i].positive ? at.true_positives : at.false_positives);
    points.push_back(at);
  }
  return points;
}

/// Leaves out what is not seen. The ends stay, and both sides of a jump: the line between them is the curve.
std::vector<Ranking::Point> thinned(const Ranking& r, const std::vector<Ranking::Point>& all) {
  auto apart = [&](const Ranking::Point& a, const Ranking::Point& b) {
    auto far = [](double d) { return std::fabs(d) >= Ranking::kResolution; };  // not where it is NaN
    return far(r.true_positive_rate(a) - r.true_positive_rate(b)) ||
           far(r.false_positive_rate(a) - r.false_positive_rate(b)) || far(a.precision() - b.precision());
  };
  std::vector<Ranking::Point> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!kept.empty() && i + 1 < all.size() && !apart(kept.back(), all[i])) continue;
    if (!kept.empty() && kept.back() != all[i - 1] && apart(all[i - 1], all[i])) kept.push_back(all[i - 1]);
    kept.push_back(all[i]);
  }
  return kept;
}

double mean_of(const std::vector<Ranking>& classes, double Ranking::*area) {
  double sum = 0;
  int64_t n = 0;
  for (const Ranking& r : classes)
    if (!std::isnan(r.*area)) sum += r.*area, ++n;
  return n ? sum / static_cast<double>(n) : kNothing;
}
}  // namespace

double Ranking::true_positive_rate(const Point& p) const { return ratio(p.true_positives, positives); }
double Ranking::false_positive_rate(const Point& p) const { return ratio(p.false_positives, negatives); }

Ranking rank_shares(std::vector<Ranking::Share> shares) {
  std::sort(shares.begin(), shares.end(),
            [](const Ranking::Share& a, const Ranking::Share& b) { return a.value > b.value; });
  Ranking r;
  for (const Ranking::Share& s : shares) ++(s.positive ? r.positives : r.negatives);
  const std::vector<Ranking::Point> all = all_points(shares);
  // Twice the area in pairs of samples: whole numbers, which add up without an error.
  int64_t pairs = 0;
  double precision = 0;
  Ranking::Point before;
  for (const Ranking::Point& p : all) {
    pairs += (p.false_positives - before.false_positives) * (p.true_positives + before.true_positives);
    precision += static_cast<double>(p.true_positives - before.true_positives) * p.precision();
    before = p;
  }
  r.auroc = r.positives && r.negatives ? static_cast<double>(pairs) / 2 / static_cast<double>(r.positives * r.negatives)
                                       : kNothing;
  r.average_precision = r.positives ? precision / static_cast<double>(r.positives) : kNothing;
  r.points = thinned(r, all);
  return r;
}

double mean_auroc(const std::vector<Ranking>& classes) { return mean_of(classes, &Ranking::auroc); }
double mean_average_precision(const std::vector<Ranking>& classes) {
  return mean_of(classes, &Ranking::average_precision);
}

}  // namespace tenon
