#include "projects/search/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tenon::projects {
namespace {

constexpr double kScales[] = {0.05, 0.1, 0.2, 0.35, 0.6, 1, 1.8, 3.2, 6};
constexpr double kNoises[] = {1e-6, 1e-4, 1e-3, 1e-2, 5e-2, 0.2};

double matern(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& scales) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = (a[i] - b[i]) / scales[i];
    square += d * d;
  }
  const double r = std::sqrt(5 * square);
  return (1 + r + r * r / 3) * std::exp(-r);
}

/// Solves L x = b in place; L is a lower triangle, row by row.
void solve_lower(const std::vector<double>& l, std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    double sum = b[i];
    for (size_t k = 0; k < i; ++k) sum -= l[i * n + k] * b[k];
    b[i] = sum / l[i * n + i];
  }
}
void solve_upper(const std::vector<double>& l, std::vector<double>& b) {
  const size_t n = b.size();
  for (size_t i = n; i-- > 0;) {
    double sum = b[i];
    for (size_t k = i + 1; k < n; ++k) sum -= l[k * n + i] * b[k];
    b[i] = sum / l[i * n + i];
  }
}

}  // namespace

GaussianProcess::GaussianProcess(Points points, const std::vector<double>& values) : points_(std::move(points)) {
  const auto n = static_cast<double>(values.size());
  for (double v : values) centre_ += v / n;
  double square = 0;
  for (double v : values) square += (v - centre_) * (v - centre_) / n;
  width_ = square > 0 ? std::sqrt(square) : 1;
  for (double v : values) y_.push_back((v - centre_) / width_);

  scales_.assign(points_[0].size(), 0.6);
  double noise = 1e-3, best = fit(scales_, noise);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < scales_.size(); ++i)
      for (const double s : kScales) {
        std::vector<double> tried = scales_;
        tried[i] = s;
        if (const double likely = fit(tried, noise); likely > best) best = likely, scales_ = tried;
      }
    for (const double s : kNoises)
      if (const double likely = fit(scales_, s); likely > best) best = likely, noise = s;
  }
  fit(scales_, noise);
}

double GaussianProcess::fit(const std::vector<double>& scales, double noise) {
  const size_t n = y_.size();
  factor_.assign(n * n, 0);
  double log_determinant = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = matern(points_[i], points_[j], scales) + (i == j ? noise : 0);
      for (size_t k = 0; k < j; ++k) sum -= factor_[i * n + k] * factor_[j * n + k];
      if (i != j) {
        factor_[i * n + j] = sum / factor_[j * n + j];
        continue;
      }
      if (!(sum > 0)) return -std::numeric_limits<double>::infinity();
      factor_[i * n + i] = std::sqrt(sum);
      log_determinant += std::log(sum);
    }
  weights_ = y_;
  solve_lower(factor_, weights_);
  double square = 0;
  for (double v : weights_) square += v * v;
  solve_upper(factor_, weights_);
  signal_ = std::max(square / static_cast<double>(n), 1e-12);
  double prior = 0;
  for (double s : scales) prior += std::pow(std::log(s / 0.6), 2);
  return -0.5 * (static_cast<double>(n) * std::log(signal_) + log_determinant + prior);
}

GaussianProcess::Guess GaussianProcess::at(const std::vector<double>& point) const {
  const size_t n = points_.size();
  std::vector<double> k(n);
  double mean = 0;
  for (size_t i = 0; i < n; ++i) {
    k[i] = matern(points_[i], point, scales_);
    mean += k[i] * weights_[i];
  }
  solve_lower(factor_, k);
  double explained = 0;
  for (double v : k) explained += v * v;
  return {centre_ + width_ * mean, width_ * std::sqrt(signal_ * std::max(1 - explained, 0.0))};
}

double expected_improvement(const GaussianProcess::Guess& guess, double best) {
  if (!(guess.deviation > 0)) return std::max(best - guess.mean, 0.0);
  const double z = (best - guess.mean) / guess.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double share = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return (best - guess.mean) * share + guess.deviation * density;
}

}  // namespace tenon::projects
