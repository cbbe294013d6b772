#pragma once
#include <functional>
#include <vector>

namespace tenon::optim {

/// A point on a line: its distance t, the function there, its derivative along the line and its gradient.
template <class T>
struct LinePoint {
  double t = 0, f = 0, slope = 0;
  std::vector<T> gradient;
};

/// A step that satisfies the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, algorithms 3.5
/// and 3.6) with cubic interpolation; as PyTorch's _strong_wolfe. `start` is t = 0, `longest` the largest element of
/// the direction. Counts its evaluations.
template <class T>
LinePoint<T> strong_wolfe(const std::function<LinePoint<T>(double t)>& at, LinePoint<T> start, double t, double longest,
                          double tolerance_change, int& evaluations);

extern template LinePoint<float> strong_wolfe(const std::function<LinePoint<float>(double)>&, LinePoint<float>, double,
                                              double, double, int&);
extern template LinePoint<double> strong_wolfe(const std::function<LinePoint<double>(double)>&, LinePoint<double>,
                                               double, double, double, int&);

}  // namespace tenon::optim
