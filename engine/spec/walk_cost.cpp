#include "engine/spec/walk_cost.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tenon {
namespace {

constexpr int64_t kLineBytes = 64, kMostWalked = int64_t{1} << 20;

/// A first-level cache as processors have them.
class LineCache {
 public:
  /// True where the line had to be fetched.
  bool fetch(int64_t line) {
    auto& set = sets_[static_cast<size_t>(line) % kSets];
    const auto at = std::find(set.begin(), set.end(), line);
    const bool there = at != set.end();
    std::rotate(set.begin(), there ? at : set.end() - 1, there ? at + 1 : set.end());
    set[0] = line;
    return !there;
  }

 private:
  static constexpr size_t kSets = 64, kWays = 8;
  std::array<std::array<int64_t, kWays>, kSets> sets_ = [] {
    std::array<std::array<int64_t, kWays>, kSets> none;
    for (auto& set : none) set.fill(-1);
    return none;
  }();
};

}  // namespace

WalkCost walk_cost(const Layout& l, int64_t item_bytes) {
  WalkCost cost;
  const int64_t numel = l.numel();
  cost.elements = std::min(numel, kMostWalked);
  cost.whole = cost.elements == numel;
  cost.least = (cost.elements * item_bytes + kLineBytes - 1) / kLineBytes;
  LineCache cache;
  std::vector<int64_t> lines;
  Dims index = Dims::filled(l.ndim(), 0);
  int64_t position = l.offset, last = -1;
  for (int64_t n = 0; n < cost.elements; ++n) {
    const int64_t line = position * item_bytes / kLineBytes;
    if (line != last) {
      last = line;
      if (cache.fetch(line)) lines.push_back(line);
    }
    for (int a = l.ndim() - 1; a >= 0; --a) {
      position += l.stride[a];
      if (++index[a] < l.size[a]) break;
      position -= l.size[a] * l.stride[a];
      index[a] = 0;
    }
  }
  cost.fetched = static_cast<int64_t>(lines.size());
  std::sort(lines.begin(), lines.end());
  cost.lines = std::unique(lines.begin(), lines.end()) - lines.begin();
  return cost;
}

bool reads_position(const Layout& l, int64_t position) {
  if (l.numel() == 0) return false;
  // Axes with the longest steps first: what is left has to be within reach of the shorter ones.
  std::vector<std::pair<int64_t, int64_t>> axes;  // step, how many
  for (int a = 0; a < l.ndim(); ++a)
    if (l.size[a] > 1 && l.stride[a] != 0) {
      // A step backwards is one forwards from the other end.
      if (l.stride[a] < 0) position -= (l.size[a] - 1) * l.stride[a];
      axes.emplace_back(std::abs(l.stride[a]), l.size[a]);
    }
  std::sort(axes.rbegin(), axes.rend());
  std::vector<int64_t> reach(axes.size() + 1, 0);
  for (size_t i = axes.size(); i-- > 0;) reach[i] = reach[i + 1] + (axes[i].second - 1) * axes[i].first;
  const auto fits = [&](const auto& self, size_t i, int64_t left) -> bool {
    if (left < 0 || left > reach[i]) return false;
    if (i == axes.size()) return left == 0;
    const auto [step, count] = axes[i];
    const int64_t most = std::min(left / step, count - 1);
    const int64_t least = std::max<int64_t>(0, (left - reach[i + 1] + step - 1) / step);
    for (int64_t k = most; k >= least; --k)
      if (self(self, i + 1, left - k * step)) return true;
    return false;
  };
  return fits(fits, 0, position - l.offset);
}

}  // namespace tenon
