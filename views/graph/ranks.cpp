#include "views/graph/ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace tenon::views {

namespace {
constexpr int64_t kMostKnots = 60'000;
constexpr float kKnotHalf = 4;

/// Edges that lead back to a node that a walk from the sources is still in: without them there is no circle.
std::vector<bool> turned_round(const LayeredGraph& g) {
  std::vector<std::vector<int>> out(g.nodes.size());
  std::vector<int> feeds(g.nodes.size(), 0);
  for (size_t e = 0; e < g.edges.size(); ++e)
    if (g.edges[e].from != g.edges[e].to) {
      out[static_cast<size_t>(g.edges[e].from)].push_back(static_cast<int>(e));
      ++feeds[static_cast<size_t>(g.edges[e].to)];
    }
  std::vector<bool> back(g.edges.size(), false);
  std::vector<char> state(g.nodes.size(), 0);  // 1: on the way, 2: done
  std::vector<std::pair<int, size_t>> way;
  auto walk = [&](int start) {
    if (state[static_cast<size_t>(start)]) return;
    way.emplace_back(start, 0);
    state[static_cast<size_t>(start)] = 1;
    while (!way.empty()) {
      auto& [at, next] = way.back();
      const auto& edges = out[static_cast<size_t>(at)];
      if (next == edges.size()) {
        state[static_cast<size_t>(at)] = 2;
        way.pop_back();
        continue;
      }
      const int e = edges[next++], to = g.edges[static_cast<size_t>(e)].to;
      char& s = state[static_cast<size_t>(to)];
      if (s == 1) back[static_cast<size_t>(e)] = true;
      if (s != 0) continue;
      s = 1;
      way.emplace_back(to, 0);
    }
  };
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (!feeds[n]) walk(static_cast<int>(n));
  for (size_t n = 0; n < g.nodes.size(); ++n) walk(static_cast<int>(n));
  return back;
}

/// Each node a rank below the lowest that feeds it; one that nothing feeds, right above the first that it feeds; those
/// without any wire fill rows of a few.
std::vector<int> ranks_of(const LayeredGraph& g, const std::vector<bool>& back) {
  const size_t n = g.nodes.size();
  std::vector<std::vector<int>> to(n), from(n);
  for (size_t e = 0; e < g.edges.size(); ++e) {
    int a = g.edges[e].from, b = g.edges[e].to;
    if (a == b) continue;
    if (back[e]) std::swap(a, b);
    to[static_cast<size_t>(a)].push_back(b);
    from[static_cast<size_t>(b)].push_back(a);
  }
  using Rank = LayeredGraph::Rank;
  const int first =
      std::any_of(g.nodes.begin(), g.nodes.end(), [](const auto& node) { return node.rank == Rank::first; }) ? 1 : 0;
  std::vector<int> rank(n, first), waits(n);
  std::vector<int> todo;
  for (size_t i = 0; i < n; ++i) {
    waits[i] = static_cast<int>(from[i].size());
    if (g.nodes[i].rank == Rank::first) rank[i] = 0;
    if (!waits[i]) todo.push_back(static_cast<int>(i));
  }
  for (size_t k = 0; k < todo.size(); ++k)
    for (int b : to[static_cast<size_t>(todo[k])]) {
      auto& r = rank[static_cast<size_t>(b)];
      r = std::max(r, rank[static_cast<size_t>(todo[k])] + 1);
      if (--waits[static_cast<size_t>(b)] == 0) todo.push_back(b);
    }
  int lowest = first;
  for (size_t i = 0; i < n; ++i)
    if (g.nodes[i].rank == Rank::any) lowest = std::max(lowest, rank[i]);
  std::vector<size_t> alone;
  for (size_t i = 0; i < n; ++i) {
    if (g.nodes[i].rank == Rank::last) rank[i] = lowest + 1;
    if (g.nodes[i].rank != Rank::any || !from[i].empty()) continue;
    if (to[i].empty()) {
      alone.push_back(i);
      continue;
    }
    int reader = std::numeric_limits<int>::max();
    for (int b : to[i])
      if (g.nodes[static_cast<size_t>(b)].rank == Rank::any) reader = std::min(reader, rank[static_cast<size_t>(b)]);
    if (reader != std::numeric_limits<int>::max()) rank[i] = std::max(first, reader - 1);
  }
  const int row = std::max(4, static_cast<int>(std::sqrt(static_cast<double>(alone.size()) / 2)));
  for (size_t k = 0; k < alone.size(); ++k) rank[alone[k]] = first + static_cast<int>(k) / row;
  if (!alone.empty())  // they may reach below all others
    for (size_t i = 0; i < n; ++i)
      if (g.nodes[i].rank == Rank::last) rank[i] = std::max(rank[i], rank[alone.back()] + 1);
  return rank;
}

class Maker {
 public:
  explicit Maker(const LayeredGraph& g) : g_(g), back_(turned_round(g)) {
    const std::vector<int> ranks = ranks_of(g, back_);
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      Ranked::Vertex v;
      v.node = static_cast<int>(i);
      v.rank = ranks[i];
      v.half = g.nodes[i].w / 2;
      out_.vertices.push_back(std::move(v));
    }
    gather_nets();
    choose_beside();
    for (size_t net = 0; net < out_.nets.size(); ++net)
      if (!out_.nets[net].beside) out_.nets[net].back ? draw_back(static_cast<int>(net)) : draw(static_cast<int>(net));
    first_order();
  }
  Ranked take() { return std::move(out_); }

 private:
  int rank_of(int node) const { return out_.vertices[static_cast<size_t>(node)].rank; }
  const LayeredGraph::Edge& edge(int e) const { return g_.edges[static_cast<size_t>(e)]; }

  void gather_nets() {
    std::map<std::pair<int, int>, int> known;
    for (size_t e = 0; e < g_.edges.size(); ++e) {
      const LayeredGraph::Edge& at = g_.edges[e];
      if (at.from == at.to) continue;
      if (back_[e]) {
        out_.nets.push_back({.from = at.from, .from_port = at.from_port, .edges = {static_cast<int>(e)}, .back = true});
        continue;
      }
      const auto [found, added] = known.try_emplace({at.from, at.from_port}, static_cast<int>(out_.nets.size()));
      if (added) out_.nets.push_back({.from = at.from, .from_port = at.from_port, .edges = {}});
      out_.nets[static_cast<size_t>(found->second)].edges.push_back(static_cast<int>(e));
    }
  }

  int64_t knots_of(const Ranked::Net& net) const {
    int64_t most = 0;
    for (int e : net.edges) most = std::max<int64_t>(most, std::abs(rank_of(edge(e).to) - rank_of(net.from)));
    return net.back ? most + 1 : most - 1;
  }

  void choose_beside() {
    int64_t all = 0;
    std::vector<std::pair<int64_t, int>> by_length;
    for (size_t n = 0; n < out_.nets.size(); ++n) {
      const int64_t knots = knots_of(out_.nets[n]);
      all += knots;
      by_length.emplace_back(-knots, static_cast<int>(n));
    }
    if (all <= kMostKnots) return;
    std::sort(by_length.begin(), by_length.end());
    for (const auto& [length, net] : by_length) {
      if (all <= kMostKnots) break;
      all += length;
      out_.nets[static_cast<size_t>(net)].beside = true;
    }
  }

  int add_knot(int net, int rank) {
    Ranked::Vertex v;
    v.rank = rank;
    v.half = kKnotHalf;
    out_.vertices.push_back(std::move(v));
    const int at = static_cast<int>(out_.vertices.size()) - 1;
    out_.nets[static_cast<size_t>(net)].knots.push_back(at);
    return at;
  }
  void add_line(int upper, int lower, float upper_at, float lower_at, int net) {
    const int line = static_cast<int>(out_.lines.size());
    out_.lines.push_back({upper, lower, upper_at, lower_at, net});
    out_.vertices[static_cast<size_t>(upper)].down.push_back(line);
    out_.vertices[static_cast<size_t>(lower)].up.push_back(line);
  }
  float out_at(int node, int port) const {
    const auto& n = g_.nodes[static_cast<size_t>(node)];
    return n.out[static_cast<size_t>(port)] - n.w / 2;
  }
  float in_at(int node, int port) const {
    const auto& n = g_.nodes[static_cast<size_t>(node)];
    return n.in[static_cast<size_t>(port)] - n.w / 2;
  }

  void draw(int net) {
    const Ranked::Net of = out_.nets[static_cast<size_t>(net)];
    const int top = rank_of(of.from);
    const int64_t count = knots_of(of);
    int above = of.from;
    float above_at = out_at(of.from, of.from_port);
    std::vector<int> at_rank(static_cast<size_t>(count) + 1, of.from);  // what an edge to rank top + 1 + i comes from
    for (int64_t k = 0; k < count; ++k) {
      const int knot = add_knot(net, top + 1 + static_cast<int>(k));
      add_line(above, knot, above_at, 0, net);
      above = at_rank[static_cast<size_t>(k) + 1] = knot;
      above_at = 0;
    }
    for (int e : of.edges) {
      const int from = at_rank[static_cast<size_t>(rank_of(edge(e).to) - top - 1)];
      add_line(from, edge(e).to, from == of.from ? out_at(of.from, of.from_port) : 0,
               in_at(edge(e).to, edge(e).to_port), net);
    }
  }

  /// Knots from the target's rank to the source's; the turns at both ends are drawn in the gaps below and above.
  void draw_back(int net) {
    const int e = out_.nets[static_cast<size_t>(net)].edges[0];
    int above = -1;
    for (int r = rank_of(edge(e).to); r <= rank_of(edge(e).from); ++r) {
      const int knot = add_knot(net, r);
      if (above >= 0) add_line(above, knot, 0, 0, net);
      above = knot;
    }
  }

  void first_order() {
    int most = -1;
    for (const auto& v : out_.vertices) most = std::max(most, v.rank);
    out_.ranks.resize(static_cast<size_t>(most + 1));
    std::vector<bool> seen(out_.vertices.size(), false);
    std::vector<int> way;
    auto walk = [&](int start) {
      way.push_back(start);
      while (!way.empty()) {
        const int at = way.back();
        way.pop_back();
        if (seen[static_cast<size_t>(at)]) continue;
        seen[static_cast<size_t>(at)] = true;
        Ranked::Vertex& v = out_.vertices[static_cast<size_t>(at)];
        v.order = static_cast<int>(out_.ranks[static_cast<size_t>(v.rank)].size());
        out_.ranks[static_cast<size_t>(v.rank)].push_back(at);
        for (auto l = v.down.rbegin(); l != v.down.rend(); ++l)
          way.push_back(out_.lines[static_cast<size_t>(*l)].lower);
      }
    };
    for (size_t v = 0; v < out_.vertices.size(); ++v)
      if (out_.vertices[v].up.empty()) walk(static_cast<int>(v));
    for (size_t v = 0; v < out_.vertices.size(); ++v) walk(static_cast<int>(v));
  }

  const LayeredGraph& g_;
  std::vector<bool> back_;
  Ranked out_;
};

/// Sorts one rank by where its neighbours in another stand.
void sweep(Ranked& r, std::vector<int>& rank, bool by_upper) {
  std::vector<std::pair<float, int>> by_place;
  by_place.reserve(rank.size());
  for (int at : rank) {
    const auto& v = r.vertices[static_cast<size_t>(at)];
    const auto& lines = by_upper ? v.up : v.down;
    float sum = 0;
    for (int l : lines) {
      const auto& line = r.lines[static_cast<size_t>(l)];
      const auto& other = r.vertices[static_cast<size_t>(by_upper ? line.upper : line.lower)];
      const float port = by_upper ? line.upper_at : line.lower_at;
      sum += static_cast<float>(other.order) + (other.half > 0 ? 0.4f * port / other.half : 0);
    }
    by_place.emplace_back(lines.empty() ? static_cast<float>(v.order) : sum / static_cast<float>(lines.size()), at);
  }
  std::stable_sort(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < rank.size(); ++i) {
    rank[i] = by_place[i].second;
    r.vertices[static_cast<size_t>(rank[i])].order = static_cast<int>(i);
  }
}
}  // namespace

Ranked rank(const LayeredGraph& graph) { return Maker(graph).take(); }

float least_gap(const Ranked::Vertex& a, const Ranked::Vertex& b) {
  return a.knot() && b.knot() ? 6.f : a.knot() || b.knot() ? 16.f : 32.f;
}

/// Two lines cross where their ends stand in another order: inversions of the lower ends, counted with a Fenwick tree.
int64_t crossings(const Ranked& r) {
  int64_t all = 0;
  std::vector<std::pair<float, float>> ends;
  std::vector<int> tree;
  for (size_t k = 0; k + 1 < r.ranks.size(); ++k) {
    ends.clear();
    for (int at : r.ranks[k])
      for (int l : r.vertices[static_cast<size_t>(at)].down) {
        const auto& line = r.lines[static_cast<size_t>(l)];
        const auto &a = r.vertices[static_cast<size_t>(line.upper)], &b = r.vertices[static_cast<size_t>(line.lower)];
        ends.emplace_back(static_cast<float>(a.order) + (a.half > 0 ? 0.4f * line.upper_at / a.half : 0),
                          static_cast<float>(b.order) + (b.half > 0 ? 0.4f * line.lower_at / b.half : 0));
      }
    if (ends.size() < 2) continue;
    std::sort(ends.begin(), ends.end());
    std::vector<float> lower;
    for (const auto& [a, b] : ends) lower.push_back(b);
    std::vector<float> places = lower;
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    tree.assign(places.size() + 1, 0);
    for (size_t i = 0; i < lower.size(); ++i) {
      const auto at =
          static_cast<size_t>(std::lower_bound(places.begin(), places.end(), lower[i]) - places.begin()) + 1;
      int64_t before = 0;
      for (size_t t = at; t > 0; t -= t & (~t + 1)) before += tree[t];
      all += static_cast<int64_t>(i) - before;
      for (size_t t = at; t < tree.size(); t += t & (~t + 1)) ++tree[t];
    }
  }
  return all;
}

void reduce_crossings(Ranked& r) {
  constexpr int kSweeps = 10, kPatience = 4;
  int64_t best = crossings(r);
  std::vector<std::vector<int>> kept = r.ranks;
  for (int s = 0, worse = 0; s < kSweeps && best > 0 && worse < kPatience; ++s) {
    if (s % 2 == 0)
      for (size_t k = 1; k < r.ranks.size(); ++k) sweep(r, r.ranks[k], true);
    else
      for (size_t k = r.ranks.size(); k-- > 1;) sweep(r, r.ranks[k - 1], false);
    const int64_t now = crossings(r);
    if (now < best) {
      best = now;
      kept = r.ranks;
      worse = 0;
    } else {
      ++worse;
    }
  }
  r.ranks = std::move(kept);
  for (const auto& rank : r.ranks)
    for (size_t i = 0; i < rank.size(); ++i) r.vertices[static_cast<size_t>(rank[i])].order = static_cast<int>(i);
}

}  // namespace tenon::views
