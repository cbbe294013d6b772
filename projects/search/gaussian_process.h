#pragma once
#include <vector>

namespace tenon::projects {

/// Regression by a Gaussian process over points of the unit cube: what is known of a function from a few of its values,
/// and how surely.
///
/// Rasmussen & Williams, Gaussian Processes for Machine Learning (2006): the covariance is Matern's of 5/2 (eq. 4.17)
/// with a length scale a coordinate, fitting and predicting is algorithm 2.1. The variance of the signal that makes the
/// values likeliest has a closed form and is profiled out; length scales and noise are those of the largest marginal
/// likelihood (eq. 2.30) on a fixed ladder, climbed a coordinate at a time, with a broad log-normal prior on the length
/// scales, which few values leave open. The same values give the same bits.
class GaussianProcess {
 public:
  using Points = std::vector<std::vector<double>>;
  /// As many points as values, one at least.
  GaussianProcess(Points points, const std::vector<double>& values);

  struct Guess {
    double mean = 0, deviation = 0;
  };
  Guess at(const std::vector<double>& point) const;

 private:
  /// Factors the covariance of these scales; the log of the likelihood, up to a constant.
  double fit(const std::vector<double>& scales, double noise);

  Points points_;
  std::vector<double> y_;          ///< centred, of deviation 1
  double centre_ = 0, width_ = 1;  ///< of the values
  std::vector<double> scales_;
  double signal_ = 1;
  std::vector<double> factor_, weights_;  ///< Cholesky's lower triangle, row by row; K^-1 y
};

/// By how much a value is expected to lie below `best` (Jones, Schonlau & Welch, Efficient Global Optimization of
/// Expensive Black-Box Functions, 1998, eq. 15).
double expected_improvement(const GaussianProcess::Guess& guess, double best);

}  // namespace tenon::projects
