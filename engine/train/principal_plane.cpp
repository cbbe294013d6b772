#include "engine/train/principal_plane.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace tenon {
namespace {

constexpr int kBasis = 8;  ///< directions that are followed; the first two come true the sooner for the others
constexpr int kMostRounds = 60;
constexpr double kSettled = 1e-6;  ///< of the variance, from round to round
using Lane = std::array<double, kBasis>;

/// Columns made orthonormal, the first first (modified Gram-Schmidt); one that the others span becomes zero.
void orthonormalize(std::vector<Lane>& basis) {
  for (int k = 0; k < kBasis; ++k) {
    double before = 0;
    for (const Lane& row : basis) before += row[k] * row[k];
    for (int j = 0; j < k; ++j) {
      double dot = 0;
      for (const Lane& row : basis) dot += row[j] * row[k];
      for (Lane& row : basis) row[k] -= dot * row[j];
    }
    double square = 0;
    for (const Lane& row : basis) square += row[k] * row[k];
    const double scale = square > 1e-24 * before && square > 0 ? 1 / std::sqrt(square) : 0;
    for (Lane& row : basis) row[k] *= scale;
  }
}

/// Eigenvectors of a small symmetric matrix as columns, the largest eigenvalue first: Jacobi's rotations.
std::array<Lane, kBasis> eigenvectors(std::array<Lane, kBasis> a, Lane& values) {
  std::array<Lane, kBasis> v{};
  for (int i = 0; i < kBasis; ++i) v[i][i] = 1;
  for (int sweep = 0; sweep < 50; ++sweep) {
    double off = 0, on = 0;
    for (int i = 0; i < kBasis; ++i)
      for (int j = 0; j < kBasis; ++j) (i == j ? on : off) += a[i][j] * a[i][j];
    if (off <= 1e-30 * on) break;
    for (int p = 0; p < kBasis; ++p)
      for (int q = p + 1; q < kBasis; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < kBasis; ++k) {
          const double x = a[k][p], y = a[k][q];
          a[k][p] = c * x - s * y, a[k][q] = s * x + c * y;
        }
        for (int k = 0; k < kBasis; ++k) {
          const double x = a[p][k], y = a[q][k];
          a[p][k] = c * x - s * y, a[q][k] = s * x + c * y;
        }
        for (int k = 0; k < kBasis; ++k) {
          const double x = v[k][p], y = v[k][q];
          v[k][p] = c * x - s * y, v[k][q] = s * x + c * y;
        }
      }
  }
  std::array<int, kBasis> order;
  for (int i = 0; i < kBasis; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return a[x][x] > a[y][y]; });
  std::array<Lane, kBasis> sorted{};
  for (int k = 0; k < kBasis; ++k) {
    values[k] = std::max(0.0, a[order[k]][order[k]]);
    for (int i = 0; i < kBasis; ++i) sorted[i][k] = v[i][order[k]];
  }
  return sorted;
}

void rotate(std::vector<Lane>& rows, const std::array<Lane, kBasis>& by) {
  for (Lane& row : rows) {
    Lane out{};
    for (int i = 0; i < kBasis; ++i)
      for (int k = 0; k < kBasis; ++k) out[k] += row[i] * by[i][k];
    row = out;
  }
}

/// Rows that hold numbers, and their mean.
class Centred {
 public:
  Centred(const std::vector<float>& rows, int64_t width) : rows_(rows), width_(width), mean_(width) {
    const auto n = static_cast<int64_t>(rows.size()) / width;
    for (int64_t i = 0; i < n; ++i) {
      const float* r = rows.data() + i * width;
      if (std::all_of(r, r + width, [](float v) { return std::isfinite(v); })) finite_.push_back(i);
    }
    for (int64_t i : finite_)
      for (int64_t j = 0; j < width; ++j) mean_[j] += at(i)[j];
    for (double& m : mean_) m /= static_cast<double>(std::max<size_t>(finite_.size(), 1));
    for (int64_t i : finite_)
      for (int64_t j = 0; j < width; ++j) variance_ += (at(i)[j] - mean_[j]) * (at(i)[j] - mean_[j]);
  }
  const std::vector<int64_t>& finite() const { return finite_; }
  double variance() const { return variance_; }  ///< times the number of rows
  /// Where the rows lie along the basis: rows times basis.
  std::vector<Lane> along(const std::vector<Lane>& basis) const {
    std::vector<Lane> out(finite_.size());
    for (size_t i = 0; i < finite_.size(); ++i) {
      const float* r = at(finite_[i]);
      Lane sum{};
      for (int64_t j = 0; j < width_; ++j) {
        const double x = r[j] - mean_[j];
        for (int k = 0; k < kBasis; ++k) sum[k] += x * basis[j][k];
      }
      out[i] = sum;
    }
    return out;
  }
  /// The transposed rows times what lies along the basis.
  std::vector<Lane> back(const std::vector<Lane>& along) const {
    std::vector<Lane> out(width_);
    for (size_t i = 0; i < finite_.size(); ++i) {
      const float* r = at(finite_[i]);
      for (int64_t j = 0; j < width_; ++j) {
        const double x = r[j] - mean_[j];
        for (int k = 0; k < kBasis; ++k) out[j][k] += x * along[i][k];
      }
    }
    return out;
  }

 private:
  const float* at(int64_t i) const { return rows_.data() + i * width_; }
  const std::vector<float>& rows_;
  int64_t width_;
  std::vector<double> mean_;
  std::vector<int64_t> finite_;
  double variance_ = 0;
};

/// A start that is no direction of the data's own, the same every time.
std::vector<Lane> start(int64_t width) {
  std::vector<Lane> basis(width);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (Lane& row : basis)
    for (double& v : row) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      v = static_cast<double>(state >> 11) / static_cast<double>(uint64_t{1} << 53) - 0.5;
    }
  return basis;
}

}  // namespace

PrincipalPlane principal_plane(const std::vector<float>& rows, int64_t width) {
  if (width < 1 || rows.size() % static_cast<size_t>(width)) throw Error("rows of unequal width have no plane");
  PrincipalPlane plane;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  plane.points.assign(rows.size() / static_cast<size_t>(width), {kNaN, kNaN});
  const Centred data(rows, width);
  if (data.finite().empty()) return plane;
  std::vector<Lane> basis = start(width);
  orthonormalize(basis);
  std::vector<Lane> along = data.along(basis);
  double told = -1;
  for (int round = 0; round < kMostRounds && data.variance() > 0; ++round) {
    basis = data.back(along);
    orthonormalize(basis);
    along = data.along(basis);
    std::array<Lane, kBasis> within{};
    for (const Lane& row : along)
      for (int i = 0; i < kBasis; ++i)
        for (int k = 0; k < kBasis; ++k) within[i][k] += row[i] * row[k];
    Lane values{};
    const auto by = eigenvectors(within, values);
    rotate(basis, by);
    rotate(along, by);
    plane.share = {values[0] / data.variance(), values[1] / data.variance()};
    const double now = plane.share[0] + plane.share[1];
    if (std::fabs(now - told) < kSettled) break;
    told = now;
  }
  for (int k = 0; k < 2; ++k) {
    const auto largest = std::max_element(
        basis.begin(), basis.end(), [k](const Lane& a, const Lane& b) { return std::fabs(a[k]) < std::fabs(b[k]); });
    const double sign = (*largest)[k] < 0 ? -1 : 1;
    for (size_t i = 0; i < along.size(); ++i)
      plane.points[static_cast<size_t>(data.finite()[i])][k] = data.variance() > 0 ? sign * along[i][k] : 0;
  }
  return plane;
}

}  // namespace tenon
