#include "engine/train/umap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/random.h"
#include "engine/train/nearest_rows.h"

namespace tenon {
namespace {

using UmapPoint = std::array<double, 2>;

/// How much a row is held to each of its neighbours, 0 to 1: the nearest wholly, the others by a width of their own
/// that makes all of them count for log2 of their number.
std::vector<double> memberships(const std::vector<Beside>& near) {
  std::vector<double> distance;
  for (const Beside& b : near) distance.push_back(std::sqrt(static_cast<double>(b.distance)));
  double nearest = 0;  // that is not the same row again
  for (const double d : distance)
    if (d > 0) {
      nearest = d;
      break;
    }
  const double wanted = std::log2(static_cast<double>(near.size()));
  double lo = 0, hi = std::numeric_limits<double>::infinity(), width = 1;
  for (int round = 0; round < 64; ++round) {
    double sum = 0;
    for (const double d : distance) sum += d > nearest ? std::exp(-(d - nearest) / width) : 1;
    if (std::fabs(sum - wanted) < 1e-5) break;
    (sum > wanted ? hi : lo) = width;
    width = std::isinf(hi) ? width * 2 : (lo + hi) / 2;
  }
  std::vector<double> held;
  for (const double d : distance) held.push_back(d > nearest && width > 0 ? std::exp(-(d - nearest) / width) : 1);
  return held;
}

struct Link {
  int32_t from = 0, to = 0;
  double weight = 0;
};

/// The union of what either of two rows is to the other: a + b - ab. Edges by their ends, the smaller one first.
std::vector<Link> edges_of(const std::vector<std::vector<Beside>>& near) {
  std::vector<Link> all;
  for (size_t i = 0; i < near.size(); ++i) {
    const std::vector<double> held = memberships(near[i]);
    for (size_t k = 0; k < near[i].size(); ++k) {
      const auto a = static_cast<int32_t>(i), b = near[i][k].row;
      all.push_back({std::min(a, b), std::max(a, b), held[k]});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Link& a, const Link& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
  size_t kept = 0;
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].from == all[kept].from && all[i].to == all[kept].to)
      all[kept].weight += all[i].weight - all[kept].weight * all[i].weight;
    else
      all[++kept] = all[i];
  all.resize(std::min(all.size(), kept + 1));
  return all;
}

/// a and b of 1 / (1 + a d^2b), the curve nearest to one that is 1 up to the least distance and falls as exp behind it:
/// Gauss-Newton over the logarithms, on the 300 places that UMAP's authors fit it at.
std::array<double, 2> curve_of(double min_distance) {
  double log_a = 0.5, b = 0.9, damping = 1e-3, best = std::numeric_limits<double>::infinity();
  auto square = [&](double la, double bb, double(&jj)[3], double(&jr)[2]) {
    double sum = 0;
    std::fill(std::begin(jj), std::end(jj), 0.0);
    std::fill(std::begin(jr), std::end(jr), 0.0);
    for (int i = 1; i < 300; ++i) {
      const double x = 3.0 * i / 299, y = x < min_distance ? 1 : std::exp(-(x - min_distance));
      const double z = std::exp(la) * std::pow(x, 2 * bb), f = 1 / (1 + z), r = y - f;
      const double da = -f * f * z, db = da * 2 * std::log(x);
      sum += r * r;
      jj[0] += da * da, jj[1] += da * db, jj[2] += db * db;
      jr[0] += da * r, jr[1] += db * r;
    }
    return sum;
  };
  double jj[3], jr[2];
  best = square(log_a, b, jj, jr);
  for (int round = 0; round < 60; ++round) {
    const double p = jj[0] * (1 + damping), q = jj[2] * (1 + damping), det = p * q - jj[1] * jj[1];
    const double step_a = (jr[0] * q - jr[1] * jj[1]) / det, step_b = (jr[1] * p - jr[0] * jj[1]) / det;
    double next_jj[3], next_jr[2];
    const double sum = square(log_a + step_a, b + step_b, next_jj, next_jr);
    if (!(sum < best)) {
      damping *= 10;
      continue;
    }
    log_a += step_a, b += step_b, best = sum, damping /= 5;
    std::copy(std::begin(next_jj), std::end(next_jj), jj);
    std::copy(std::begin(next_jr), std::end(next_jr), jr);
  }
  return {std::exp(log_a), b};
}

/// The principal plane, ten units wide, shaken a little: points of one place would stay so.
std::vector<UmapPoint> umap_beginning(const std::vector<UmapPoint>& plane) {
  double widest = 0;
  for (const UmapPoint& p : plane) widest = std::max({widest, std::fabs(p[0]), std::fabs(p[1])});
  const Philox random{0, stream_of("umap")};
  std::vector<UmapPoint> out(plane.size());
  for (size_t i = 0; i < plane.size(); ++i)
    for (size_t k = 0; k < 2; ++k)
      out[i][k] = (widest > 0 ? plane[i][k] * 10 / widest : 0) + 1e-4 * random.normal(2 * i + k);
  return out;
}

/// Points that are drawn together along edges and pushed apart from others taken by chance, one after the other.
class UmapLayout {
 public:
  UmapLayout(std::vector<Link> edges, std::vector<UmapPoint> places, const std::array<double, 2>& curve)
      : edges_(std::move(edges)), at_(std::move(places)), a_(curve[0]), b_(curve[1]) {
    double most = 0;
    for (const Link& e : edges_) most = std::max(most, e.weight);
    for (const Link& e : edges_) every_.push_back(e.weight > 0 ? most / e.weight : 0);
    due_ = every_;
  }

  /// Link e is looked at in every most/weight-th epoch, so that what counts for more moves more often.
  void move(int epoch, int epochs) {
    const double rate = 1 - static_cast<double>(epoch) / epochs;
    for (size_t e = 0; e < edges_.size(); ++e) {
      if (every_[e] <= 0 || due_[e] > epoch + 1) continue;
      due_[e] += every_[e];
      attract(edges_[e], rate);
      for (int k = 0; k < kPushes; ++k) {
        repel(edges_[e].from, rate);
        repel(edges_[e].to, rate);
      }
    }
  }
  const std::vector<UmapPoint>& places() const { return at_; }

 private:
  static constexpr int kPushes = 3;  // of either end: the authors push one end five times, and come by both
  static double clipped(double v) { return std::clamp(v, -4.0, 4.0); }

  void attract(const Link& e, double rate) {
    UmapPoint &p = at_[static_cast<size_t>(e.from)], &q = at_[static_cast<size_t>(e.to)];
    const double dx = p[0] - q[0], dy = p[1] - q[1], square = dx * dx + dy * dy;
    if (square <= 0) return;
    const double power = std::pow(square, b_);
    const double pull = -2 * a_ * b_ * power / square / (1 + a_ * power);
    const double x = rate * clipped(pull * dx), y = rate * clipped(pull * dy);
    p[0] += x, p[1] += y;
    q[0] -= x, q[1] -= y;
  }
  void repel(int32_t row, double rate) {
    const auto other = static_cast<size_t>(random_.below(drawn_++, at_.size()));
    if (other == static_cast<size_t>(row)) return;
    UmapPoint& p = at_[static_cast<size_t>(row)];
    const double dx = p[0] - at_[other][0], dy = p[1] - at_[other][1], square = dx * dx + dy * dy;
    const double push = 2 * b_ / ((0.001 + square) * (1 + a_ * std::pow(square, b_)));
    p[0] += rate * clipped(push * dx);
    p[1] += rate * clipped(push * dy);
  }

  std::vector<Link> edges_;
  std::vector<double> every_, due_;  // by edge: epochs between two looks, and the epoch of the next
  std::vector<UmapPoint> at_;
  double a_, b_;
  Philox random_{0, stream_of("umap pushes")};
  uint64_t drawn_ = 0;
};

}  // namespace

std::vector<UmapPoint> umap(const std::vector<float>& rows, int64_t width, const PrincipalPlane& start,
                            const UmapOptions& options,
                            const std::function<bool(int64_t done, int64_t total)>& progress) {
  std::vector<const float*> real;
  std::vector<UmapPoint> plane;
  for (size_t i = 0; i < start.points.size(); ++i)
    if (!std::isnan(start.points[i][0])) {
      real.push_back(rows.data() + static_cast<int64_t>(i) * width);
      plane.push_back(start.points[i]);
    }
  std::vector<UmapPoint> out = start.points;
  constexpr size_t kTooFew = 4;  // nothing to choose among
  if (real.size() < kTooFew) return out;
  if (progress && !progress(0, options.epochs)) throw Error("cancelled");
  const auto count = std::min<int64_t>(static_cast<int64_t>(real.size()) - 1, std::max<int64_t>(options.neighbours, 2));
  UmapLayout layout(edges_of(nearest_rows(real, width, count)), umap_beginning(plane), curve_of(options.min_distance));
  for (int i = 0; i < options.epochs; ++i) {
    if (progress && !progress(i, options.epochs)) throw Error("cancelled");
    layout.move(i, options.epochs);
  }
  UmapPoint mean{};
  for (const UmapPoint& p : layout.places())
    for (size_t k = 0; k < 2; ++k) mean[k] += p[k] / static_cast<double>(real.size());
  auto next = layout.places().begin();
  for (UmapPoint& p : out)
    if (!std::isnan(p[0])) {
      p = {(*next)[0] - mean[0], (*next)[1] - mean[1]};
      ++next;
    }
  return out;
}

}  // namespace tenon
