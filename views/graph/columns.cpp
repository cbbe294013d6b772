#include "views/graph/columns.h"

#include <algorithm>
#include <cmath>

namespace tenon::views {

namespace {
/// Cuts that part the ranks into at most so many columns, the tallest as short as it can be; none where that is one.
std::vector<size_t> shortest(const TallPicture& p, size_t count) {
  const auto fill = [&](float height, std::vector<size_t>& cuts) {
    cuts.clear();
    size_t from = 0, last = 0;  // the last gap that could end the column
    for (size_t gap = 1; gap < p.upto.size(); ++gap) {
      if (p.upto[gap] - p.upto[from] > height) {
        if (last == from || p.upto[gap] - p.upto[last] > height) return false;
        cuts.push_back(from = last);
      }
      if (gap + 1 < p.upto.size() && p.wires[gap] >= 0) last = gap;
    }
    return cuts.size() < count;
  };
  float low = 0, high = p.upto.back();
  std::vector<size_t> cuts, kept;
  for (int i = 0; i < 24; ++i) {
    const float middle = (low + high) / 2;
    if (fill(middle, cuts))
      high = middle, kept = cuts;
    else
      low = middle;
  }
  return kept;
}

/// How tall a canvas of the aspect has to be for it; more where wires lead from column to column.
float cost(const TallPicture& p, const std::vector<size_t>& cuts) {
  float tallest = 0, wide = 0;
  size_t from = 0;
  int wires = 0;
  for (size_t c = 0; c <= cuts.size(); ++c) {
    const size_t end = c < cuts.size() ? cuts[c] : p.left.size();
    tallest = std::max(tallest, p.upto[end] - p.upto[from]);
    float left = p.left[from], right = p.right[from];
    for (size_t k = from; k < end; ++k) left = std::min(left, p.left[k]), right = std::max(right, p.right[k]);
    wide += right - left + p.gutter;
    if (c < cuts.size()) wires += p.wires[end];
    from = end;
  }
  return std::max(tallest, wide / p.aspect) * (1 + 0.02f * static_cast<float>(wires));
}
}  // namespace

std::vector<size_t> choose_cuts(const TallPicture& p) {
  std::vector<size_t> best;
  float least = cost(p, best);
  const float width =
      *std::max_element(p.right.begin(), p.right.end()) - *std::min_element(p.left.begin(), p.left.end());
  // Twice as many as columns of equal width would take, and some: wide ranks may stand in one of them.
  const auto most = static_cast<size_t>(std::min(static_cast<float>(p.left.size()) / 2,
                                                 3 + 2 * std::sqrt(p.upto.back() * p.aspect / std::max(width, 1.f))));
  for (size_t count = 2; count <= most; ++count) {
    std::vector<size_t> cuts = shortest(p, count);
    if (cuts.empty()) break;
    const float now = cost(p, cuts);
    if (now < least * 0.92f) least = now, best = std::move(cuts);
    if (now > least * 2) break;
  }
  return best;
}

}  // namespace tenon::views
