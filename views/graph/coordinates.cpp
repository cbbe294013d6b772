// Where the vertices of a ranked graph stand along their ranks: Brandes and Köpf (2001), "Fast and simple horizontal
// coordinate assignment". Four alignments, each as far to one side as it goes, and the mean of the middle two.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "views/graph/ranks.h"

namespace tenon::views {

namespace {
/// By line: another one is to be straight instead: one between two knots that it crosses, or one from further above.
std::vector<bool> conflicts(const Ranked& r) {
  std::vector<bool> out(r.lines.size(), false);
  for (size_t k = 1; k < r.ranks.size(); ++k) {
    const auto& rank = r.ranks[k];
    const int width = static_cast<int>(r.ranks[k - 1].size());
    int from = 0;
    size_t scanned = 0;
    for (size_t i = 0; i < rank.size(); ++i) {
      int inner = -1;
      if (const auto& v = r.vertices[static_cast<size_t>(rank[i])]; v.knot())
        for (int l : v.up)
          if (const auto& u = r.vertices[static_cast<size_t>(r.lines[static_cast<size_t>(l)].upper)]; u.knot())
            inner = u.order;
      if (inner < 0 && i + 1 < rank.size()) continue;
      const int to = inner >= 0 ? inner : width;
      for (; scanned <= i; ++scanned) {
        const auto& v = r.vertices[static_cast<size_t>(rank[scanned])];
        for (int l : v.up) {
          const auto& u = r.vertices[static_cast<size_t>(r.lines[static_cast<size_t>(l)].upper)];
          if ((u.order < from || u.order > to) && !(u.knot() && v.knot())) out[static_cast<size_t>(l)] = true;
        }
      }
      from = to;
    }
  }
  // What comes from far above runs straight on; what begins here stands beside it.
  const auto begins = [&](int l) {
    return r.vertices[static_cast<size_t>(r.lines[static_cast<size_t>(l)].upper)].up.empty();
  };
  for (const auto& v : r.vertices)
    if (!std::all_of(v.up.begin(), v.up.end(), begins))
      for (int l : v.up)
        if (begins(l)) out[static_cast<size_t>(l)] = true;
  return out;
}

/// One of the four: from above or below, as far to the left or to the right as it goes.
class Alignment {
 public:
  Alignment(const Ranked& r, const std::vector<bool>& conflict, bool from_above, bool to_left)
      : r_(r), conflict_(conflict), above_(from_above), left_(to_left) {
    const size_t n = r.vertices.size();
    root_.resize(n);
    shift_.assign(n, 0);
    taken_.assign(n, false);
    for (size_t i = 0; i < n; ++i) root_[i] = static_cast<int>(i);
    if (above_)
      for (size_t k = 1; k < r.ranks.size(); ++k) align(r.ranks[k]);
    else
      for (size_t k = r.ranks.size(); k-- > 1;) align(r.ranks[k - 1]);
  }

  std::vector<float> compact() {
    struct Push {
      int to;
      float by;
    };
    const size_t n = r_.vertices.size();
    std::vector<std::vector<Push>> right(n), left(n);
    std::vector<int> waits(n, 0);
    for (const auto& rank : r_.ranks)
      for (size_t i = 0; i + 1 < rank.size(); ++i) {
        const auto a = static_cast<size_t>(seen(rank, i)), b = static_cast<size_t>(seen(rank, i + 1));
        const auto ra = static_cast<size_t>(root_[a]), rb = static_cast<size_t>(root_[b]);
        if (ra == rb) continue;
        const float by = shift_[a] + r_.vertices[a].half + least_gap(r_.vertices[a], r_.vertices[b]) +
                         r_.vertices[b].half - shift_[b];
        right[ra].push_back({static_cast<int>(rb), by});
        left[rb].push_back({static_cast<int>(ra), by});
        ++waits[rb];
      }
    std::vector<int> order;
    for (size_t i = 0; i < n; ++i)
      if (root_[i] == static_cast<int>(i) && !waits[i]) order.push_back(static_cast<int>(i));
    std::vector<float> x(n, 0);
    for (size_t k = 0; k < order.size(); ++k)
      for (const Push& p : right[static_cast<size_t>(order[k])]) {
        auto& to = x[static_cast<size_t>(p.to)];
        to = std::max(to, x[static_cast<size_t>(order[k])] + p.by);
        if (--waits[static_cast<size_t>(p.to)] == 0) order.push_back(p.to);
      }
    for (size_t k = order.size(); k-- > 0;) {  // as near to what stands to the right as it lets
      const auto at = static_cast<size_t>(order[k]);
      float room = std::numeric_limits<float>::infinity();
      for (const Push& p : right[at]) room = std::min(room, x[static_cast<size_t>(p.to)] - p.by);
      if (std::isfinite(room)) x[at] = std::max(x[at], room);
    }
    std::vector<float> out(n);
    for (size_t i = 0; i < n; ++i) out[i] = (x[static_cast<size_t>(root_[i])] + shift_[i]) * (left_ ? 1.f : -1.f);
    return out;
  }

 private:
  /// Of a rank that is read from the side to which all is pushed.
  int seen(const std::vector<int>& rank, size_t i) const { return left_ ? rank[i] : rank[rank.size() - 1 - i]; }
  int place(int vertex) const {
    const auto& v = r_.vertices[static_cast<size_t>(vertex)];
    return left_ ? v.order : static_cast<int>(r_.ranks[static_cast<size_t>(v.rank)].size()) - 1 - v.order;
  }

  /// Each vertex under the middle one of its neighbours, where no other line is in the way.
  void align(const std::vector<int>& rank) {
    int last = -1;
    std::vector<std::pair<int, int>> near;  // place and line
    for (size_t i = 0; i < rank.size(); ++i) {
      const int at = seen(rank, i);
      const auto& v = r_.vertices[static_cast<size_t>(at)];
      near.clear();
      for (int l : above_ ? v.up : v.down) near.emplace_back(place(other(l)), l);
      if (near.empty()) continue;
      std::sort(near.begin(), near.end());
      const size_t a = (near.size() - 1) / 2, b = near.size() / 2;
      for (size_t m = a; m <= b; ++m) {
        const auto [where, l] = near[m];
        const auto to = static_cast<size_t>(other(l));
        if (root_[static_cast<size_t>(at)] != at || taken_[to] || where <= last || conflict_[static_cast<size_t>(l)])
          continue;
        const auto& line = r_.lines[static_cast<size_t>(l)];
        const float by = above_ ? line.upper_at - line.lower_at : line.lower_at - line.upper_at;
        taken_[to] = true;
        root_[static_cast<size_t>(at)] = root_[to];
        shift_[static_cast<size_t>(at)] = shift_[to] + by * (left_ ? 1.f : -1.f);
        last = where;
      }
    }
  }
  int other(int line) const {
    const auto& l = r_.lines[static_cast<size_t>(line)];
    return above_ ? l.upper : l.lower;
  }

  const Ranked& r_;
  const std::vector<bool>& conflict_;
  bool above_, left_;
  std::vector<int> root_;
  std::vector<float> shift_;  ///< of a vertex against the root of its block
  std::vector<bool> taken_;   ///< one stands under it already
};
}  // namespace

std::vector<float> coordinates(const Ranked& r) {
  const std::vector<bool> conflict = conflicts(r);
  std::array<std::vector<float>, 4> all;
  std::array<float, 4> least{}, most{};
  size_t narrowest = 0;
  for (size_t k = 0; k < 4; ++k) {
    all[k] = Alignment(r, conflict, k < 2, k % 2 == 0).compact();
    least[k] = std::numeric_limits<float>::infinity();
    most[k] = -least[k];
    for (size_t i = 0; i < all[k].size(); ++i) {
      least[k] = std::min(least[k], all[k][i] - r.vertices[i].half);
      most[k] = std::max(most[k], all[k][i] + r.vertices[i].half);
    }
    if (most[k] - least[k] < most[narrowest] - least[narrowest]) narrowest = k;
  }
  std::vector<float> out(r.vertices.size());
  for (size_t k = 0; k < 4; ++k) {
    const float by = k % 2 == 0 ? least[narrowest] - least[k] : most[narrowest] - most[k];
    for (float& x : all[k]) x += by;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    std::array<float, 4> x = {all[0][i], all[1][i], all[2][i], all[3][i]};
    std::sort(x.begin(), x.end());
    out[i] = (x[1] + x[2]) / 2;
  }
  return out;
}

}  // namespace tenon::views
