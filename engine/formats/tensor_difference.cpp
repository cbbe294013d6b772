#include "engine/formats/tensor_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "core/tensor_values.h"

namespace tenon::formats {
namespace {

constexpr int64_t kPiece = int64_t{1} << 14;  // elements that are summed up together
constexpr int64_t kRound = 256;               // pieces between two looks at whether to go on

/// What the values of a piece add up to, where B has the same bits as A.
TensorDifference same_piece(const std::vector<double>& values) {
  TensorDifference d;
  for (const double v : values) {
    if (std::isfinite(v)) {
      d.square_a += v * v;
      d.largest_a = std::max(d.largest_a, std::abs(v));
    } else {
      ++d.not_finite;
    }
  }
  d.square_b = d.dot = d.square_a;
  return d;
}

/// `differs(i)`: whether element i of the piece counts as changed.
template <class Differs>
TensorDifference other_piece(const std::vector<double>& x, const std::vector<double>& y, int64_t from,
                             Differs differs) {
  TensorDifference d;
  d.same_bits = false;
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = x[i], q = y[i];
    const bool changed = differs(i);
    d.changed += changed;
    if (!std::isfinite(p) || !std::isfinite(q)) {
      ++d.not_finite;
      d.apart |= !(p == q || (std::isnan(p) && std::isnan(q)));
      if (changed && d.first_not_finite < 0) d.first_not_finite = from + static_cast<int64_t>(i);
      continue;
    }
    const double change = q - p;
    d.square_a += p * p;
    d.largest_a = std::max(d.largest_a, std::abs(p));
    d.square_b += q * q;
    d.dot += p * q;
    d.square += change * change;
    if (changed && (d.largest_at < 0 || std::abs(change) > d.largest)) {
      d.largest = std::abs(change);
      d.largest_at = from + static_cast<int64_t>(i);
      d.a_there = p, d.b_there = q;
    }
  }
  return d;
}

TensorDifference piece_difference(const Tensor& a, const Tensor& b, int64_t from, int64_t to) {
  const auto n = static_cast<size_t>(to - from);
  const bool one_type = a.dtype() == b.dtype();
  std::vector<double> x(n);
  read_values(a, from, to, x.data());
  TensorDifference d;
  if (one_type && same_bits(a, b, from, to)) {
    d = same_piece(x);
    d.count = to - from;
    return d;
  }
  std::vector<double> y(n);
  read_values(b, from, to, y.data());
  if (one_type) {
    std::vector<uint64_t> bits_a(n), bits_b(n);
    read_bits(a, from, to, bits_a.data());
    read_bits(b, from, to, bits_b.data());
    d = other_piece(x, y, from, [&](size_t i) { return bits_a[i] != bits_b[i]; });
  } else {
    d = other_piece(x, y, from, [&](size_t i) { return !(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))); });
  }
  d.count = to - from;
  return d;
}

void add(TensorDifference& all, const TensorDifference& d) {
  all.count += d.count;
  all.changed += d.changed;
  all.not_finite += d.not_finite;
  all.same_bits &= d.same_bits;
  all.apart |= d.apart;
  all.square_a += d.square_a;
  all.square_b += d.square_b;
  all.dot += d.dot;
  all.square += d.square;
  all.largest_a = std::max(all.largest_a, d.largest_a);
  if (all.first_not_finite < 0) all.first_not_finite = d.first_not_finite;
  if (d.largest_at >= 0 && (all.largest_at < 0 || d.largest > all.largest)) {
    all.largest = d.largest;
    all.largest_at = d.largest_at;
    all.a_there = d.a_there, all.b_there = d.b_there;
  }
}

}  // namespace

double TensorDifference::norm() const { return std::sqrt(square); }
double TensorDifference::norm_a() const { return std::sqrt(square_a); }
double TensorDifference::norm_b() const { return std::sqrt(square_b); }
double TensorDifference::relative() const {
  if (square == 0) return 0;
  return square_a > 0 ? norm() / norm_a() : std::numeric_limits<double>::infinity();
}
double TensorDifference::worst() const { return apart ? std::numeric_limits<double>::infinity() : largest; }
double TensorDifference::worst_relative() const { return largest_a > 0 ? worst() / largest_a : worst(); }
double TensorDifference::cosine() const {
  if (square_a == 0 && square_b == 0) return 1;
  if (square_a == 0 || square_b == 0) return std::numeric_limits<double>::quiet_NaN();
  if (square == 0) return 1;
  return std::clamp(dot / (norm_a() * norm_b()), -1.0, 1.0);
}

TensorDifference tensor_difference(const Tensor& a, const Tensor& b, const std::function<bool(int64_t)>& go_on) {
  if (!(a.size() == b.size())) throw Error("tensors of two sizes have no difference");
  TensorDifference all;
  all.same_bits = a.dtype() == b.dtype();
  const int64_t n = a.numel();
  std::vector<TensorDifference> pieces(static_cast<size_t>(kRound));
  for (int64_t begin = 0; begin < n; begin += kRound * kPiece) {
    if (go_on && !go_on(begin)) throw Error("cancelled");
    const int64_t end = std::min(n, begin + kRound * kPiece), count = (end - begin + kPiece - 1) / kPiece;
    parallel_for(count, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        pieces[static_cast<size_t>(i)] =
            piece_difference(a, b, begin + i * kPiece, std::min(end, begin + (i + 1) * kPiece));
    });
    for (int64_t i = 0; i < count; ++i) add(all, pieces[static_cast<size_t>(i)]);
  }
  return all;
}

}  // namespace tenon::formats
