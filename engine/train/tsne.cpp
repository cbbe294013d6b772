#include "engine/train/tsne.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "engine/kernels/neighbours.h"
#include "engine/train/nearest_rows.h"

namespace tenon {
namespace {

using PlanePoint = std::array<double, 2>;

using Neighbours = std::vector<std::vector<Beside>>;

constexpr int64_t kRowsAtOnce = 32;

/// Gaussian shares of a row's neighbours, as wide as makes them count for `perplexity` equal ones.
std::vector<double> shares_of(const std::vector<Beside>& near, double perplexity) {
  std::vector<double> p(near.size());
  double lo = 0, hi = std::numeric_limits<double>::infinity(), narrow = 1, sum = 1;
  for (int round = 0; round < 100; ++round) {
    double weighted = 0;
    sum = 0;
    for (size_t i = 0; i < near.size(); ++i) {
      const double beyond = near[i].distance - near.front().distance;
      p[i] = std::exp(-narrow * beyond);
      sum += p[i];
      weighted += p[i] * beyond;
    }
    const double too_even = std::log(sum) + narrow * weighted / sum - std::log(perplexity);  // of the entropy
    if (std::fabs(too_even) < 1e-5) break;
    (too_even > 0 ? lo : hi) = narrow;
    narrow = std::isinf(hi) ? narrow * 2 : (lo + hi) / 2;
  }
  for (double& v : p) v /= sum;
  return p;
}

struct Pull {
  int32_t to = 0;
  double share = 0;
};

/// What holds a row to others: the mean of what either is to the other, by row; all of them add up to 1.
std::vector<std::vector<Pull>> pulls_of(const Neighbours& near, double perplexity) {
  std::vector<std::vector<double>> shares(near.size());
  parallel_for(static_cast<int64_t>(near.size()), kRowsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) shares[i] = shares_of(near[i], perplexity);
  });
  std::vector<std::vector<Pull>> both(near.size());
  const double part = 0.5 / static_cast<double>(near.size());
  for (size_t i = 0; i < near.size(); ++i)
    for (size_t k = 0; k < near[i].size(); ++k) {
      both[i].push_back({near[i][k].row, shares[i][k] * part});
      both[near[i][k].row].push_back({static_cast<int32_t>(i), shares[i][k] * part});
    }
  for (auto& of : both) {
    std::stable_sort(of.begin(), of.end(), [](const Pull& a, const Pull& b) { return a.to < b.to; });
    size_t kept = 0;
    for (size_t k = 1; k < of.size(); ++k)
      if (of[k].to == of[kept].to)
        of[kept].share += of[k].share;
      else
        of[++kept] = of[k];
    of.resize(kept + 1);
  }
  return both;
}

/// Points that move, each with a speed and a rate of its own along both axes.
class Swarm {
 public:
  Swarm(std::vector<std::vector<Pull>> pulls, std::vector<PlanePoint> places)
      : pulls_(std::move(pulls)), at_(std::move(places)), speed_(at_.size()), gain_(at_.size(), {1, 1}) {
    const size_t lanes = kernels::kPushLanes;
    constexpr float kNowhere = 1e15f;  // so far away that it pushes nobody
    xs_.assign((at_.size() + lanes - 1) / lanes * lanes, kNowhere);
    ys_ = xs_;
    pushed_.resize(at_.size());
    pulled_.resize(at_.size());
  }

  void move(double exaggeration, double momentum, double rate) {
    measure();
    double all = 0;
    for (const kernels::Push& p : pushed_) all += p.q - 1;  // a point's q with itself is 1
    all = std::max(all, 1e-12);
    PlanePoint mean{};
    for (size_t i = 0; i < at_.size(); ++i)
      for (int k = 0; k < 2; ++k) {
        const double slope = 4 * (exaggeration * pulled_[i][k] - (k ? pushed_[i].y : pushed_[i].x) / all);
        double &gain = gain_[i][k], &speed = speed_[i][k];
        gain = (slope > 0) == (speed > 0) ? std::max(gain * 0.8, 0.01) : gain + 0.2;
        speed = momentum * speed - rate * gain * slope;
        at_[i][k] += speed;
        mean[k] += at_[i][k];
      }
    for (PlanePoint& p : at_)
      for (int k = 0; k < 2; ++k) p[k] -= mean[k] / static_cast<double>(at_.size());
  }
  const std::vector<PlanePoint>& places() const { return at_; }

 private:
  void measure() {
    for (size_t i = 0; i < at_.size(); ++i) {
      xs_[i] = static_cast<float>(at_[i][0]);
      ys_[i] = static_cast<float>(at_[i][1]);
    }
    parallel_for(static_cast<int64_t>(at_.size()), kRowsAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        pushed_[i] = kernels::push_apart(xs_[i], ys_[i], xs_.data(), ys_.data(), static_cast<int64_t>(xs_.size()));
        PlanePoint sum{};
        for (const Pull& p : pulls_[i]) {
          const double dx = at_[i][0] - at_[p.to][0], dy = at_[i][1] - at_[p.to][1];
          const double held = p.share / (1 + dx * dx + dy * dy);
          sum[0] += held * dx;
          sum[1] += held * dy;
        }
        pulled_[i] = sum;
      }
    });
  }

  std::vector<std::vector<Pull>> pulls_;
  std::vector<PlanePoint> at_, speed_, gain_, pulled_;
  std::vector<float> xs_, ys_;
  std::vector<kernels::Push> pushed_;
};

/// The principal plane made small, and shaken a little: points of one place would stay so.
std::vector<PlanePoint> beginning(const std::vector<PlanePoint>& plane) {
  double square = 0;
  for (const PlanePoint& p : plane) square += p[0] * p[0];
  const double deviation = std::sqrt(square / static_cast<double>(plane.size()));
  const Philox random{0, stream_of("tsne")};
  std::vector<PlanePoint> out(plane.size());
  for (size_t i = 0; i < plane.size(); ++i)
    for (size_t k = 0; k < 2; ++k)
      out[i][k] = (deviation > 0 ? plane[i][k] * 1e-4 / deviation : 0) + 1e-6 * random.normal(2 * i + k);
  return out;
}

}  // namespace

std::vector<PlanePoint> tsne(const std::vector<float>& rows, int64_t width, const PrincipalPlane& start,
                             const TsneOptions& options,
                             const std::function<bool(int64_t done, int64_t total)>& progress) {
  std::vector<const float*> real;
  std::vector<PlanePoint> plane;
  for (size_t i = 0; i < start.points.size(); ++i)
    if (!std::isnan(start.points[i][0])) {
      real.push_back(rows.data() + static_cast<int64_t>(i) * width);
      plane.push_back(start.points[i]);
    }
  constexpr size_t kFew = 4;  // nothing to choose among
  std::vector<PlanePoint> out = start.points;
  if (real.size() < kFew) return out;

  const auto n = static_cast<double>(real.size());
  const double perplexity = std::clamp(options.perplexity, 1.0, (n - 1) / 3);
  const auto count = std::min<int64_t>(static_cast<int64_t>(real.size()) - 1, std::ceil(3 * perplexity));
  Swarm swarm(pulls_of(nearest_rows(real, width, count), perplexity), beginning(plane));
  // At first neighbours are held twelve times as fast, so that groups find together. Rates as scikit-learn's "auto".
  constexpr double kEarly = 12;
  const int early = options.iterations / 3;
  const double rate = std::max(n / kEarly / 4, 50.0);
  for (int i = 0; i < options.iterations; ++i) {
    if (progress && !progress(i, options.iterations)) throw Error("cancelled");
    swarm.move(i < early ? kEarly : 1, i < early ? 0.5 : 0.8, rate);
  }
  auto next = swarm.places().begin();
  for (PlanePoint& p : out)
    if (!std::isnan(p[0])) p = *next++;
  return out;
}

}  // namespace tenon
