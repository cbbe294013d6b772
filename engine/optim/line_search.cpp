#include "engine/optim/line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon::optim {
namespace {

constexpr double kDecrease = 1e-4, kCurvature = 0.9;
constexpr int kMost = 25;

/// The lowest point of the cubic through two points with their slopes, within bounds; the middle where it has none.
template <class P>
double cubic(const P& a, const P& b, double low, double high) {
  double d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  double d2 = std::sqrt(square);
  double at = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                         : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

}  // namespace

template <class T>
LinePoint<T> strong_wolfe(const std::function<LinePoint<T>(double)>& at, LinePoint<T> start, double t, double longest,
                          double tolerance_change, int& evaluations) {
  const double f0 = start.f, slope0 = start.slope;
  LinePoint<T> previous = start, now = at(t);
  evaluations = 1;
  int rounds = 0;
  bool done = false;
  LinePoint<T> bracket[2];
  // A bracket that holds such a point.
  for (; rounds < kMost; ++rounds) {
    if (now.f > f0 + kDecrease * t * slope0 || (rounds > 1 && now.f >= previous.f) || now.slope >= 0) {
      done = !(now.f > f0 + kDecrease * t * slope0 || (rounds > 1 && now.f >= previous.f)) &&
             std::abs(now.slope) <= -kCurvature * slope0;
      if (done) break;
      bracket[0] = previous;
      bracket[1] = now;
      break;
    }
    if (std::abs(now.slope) <= -kCurvature * slope0) {
      done = true;
      break;
    }
    double next = cubic(previous, now, t + 0.01 * (t - previous.t), t * 10);
    previous = std::move(now);
    t = next;
    now = at(t);
    ++evaluations;
  }
  if (done) return now;
  if (rounds == kMost) {
    bracket[0] = start;
    bracket[1] = now;
  }
  // Closing in on it.
  bool stuck = false;
  int low = bracket[0].f <= bracket[1].f ? 0 : 1, high = 1 - low;
  while (!done && rounds < kMost) {
    if (std::abs(bracket[1].t - bracket[0].t) * longest < tolerance_change) break;
    double least = std::min(bracket[0].t, bracket[1].t), most = std::max(bracket[0].t, bracket[1].t);
    t = cubic(bracket[0], bracket[1], least, most);
    // Too near an end twice, or at one: a tenth of the way inside instead.
    double margin = 0.1 * (most - least);
    if (std::min(most - t, t - least) < margin) {
      if (stuck || t >= most || t <= least) {
        t = std::abs(t - most) < std::abs(t - least) ? most - margin : least + margin;
        stuck = false;
      } else {
        stuck = true;
      }
    } else {
      stuck = false;
    }
    now = at(t);
    ++evaluations;
    ++rounds;
    if (now.f > f0 + kDecrease * t * slope0 || now.f >= bracket[low].f) {
      bracket[high] = now;
      low = bracket[0].f <= bracket[1].f ? 0 : 1, high = 1 - low;
    } else {
      if (std::abs(now.slope) <= -kCurvature * slope0)
        done = true;
      else if (now.slope * (bracket[high].t - bracket[low].t) >= 0)
        bracket[high] = bracket[low];
      bracket[low] = now;
    }
  }
  return bracket[low];
}

template LinePoint<float> strong_wolfe(const std::function<LinePoint<float>(double)>&, LinePoint<float>, double, double,
                                       double, int&);
template LinePoint<double> strong_wolfe(const std::function<LinePoint<double>(double)>&, LinePoint<double>, double,
                                        double, double, int&);

}  // namespace tenon::optim
