#include "views/graph/layered_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/graph/columns.h"
#include "views/graph/ranks.h"

namespace tenon::views {

namespace {
constexpr float kGap = 24, kTrack = 7, kEdge = 10;  // between ranks; between level lines; from those to a node
constexpr float kRankGutter = 28, kStraight = 0.5f;
constexpr int kMostTracks = 60;

/// The level line of a net within the gap between two ranks, or that a column ends and another begins with.
struct Run {
  int net = 0;
  std::vector<float> tops, bottoms;
  float left = 0, right = 0;
  int track = -1;  ///< -1: it is straight
};

/// A gap's level lines, each on a track of its own where it would touch another.
struct Gap {
  std::vector<Run> runs;
  int tracks = 0;
  float top = 0, height = 0;
  float y(int track) const {
    const int shown = std::min(tracks, kMostTracks);
    return top + height / 2 +
           (static_cast<float>(std::min(track, shown - 1)) - static_cast<float>(shown - 1) / 2) * kTrack;
  }
};

/// What comes down above another line's way on is drawn above it; else the two would run over each other.
void choose_tracks(Gap& gap) {
  std::vector<Run*> level;
  for (Run& r : gap.runs) {
    r.left = std::numeric_limits<float>::max();
    r.right = -r.left;
    for (const auto* ends : {&r.tops, &r.bottoms})
      for (float x : *ends) r.left = std::min(r.left, x), r.right = std::max(r.right, x);
    if (r.right - r.left > kStraight) level.push_back(&r);
  }
  std::sort(level.begin(), level.end(),
            [](const Run* a, const Run* b) { return a->left != b->left ? a->left < b->left : a->net < b->net; });
  constexpr size_t kMostOrdered = 300;
  const size_t n = level.size();
  std::vector<std::vector<size_t>> below(n);
  std::vector<int> waits(n, 0), least(n, 0);
  auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
    for (float x : a)
      for (float y : b)
        if (std::fabs(x - y) < 5) return true;
    return false;
  };
  for (size_t a = 0; a < n && n <= kMostOrdered; ++a)
    for (size_t b = 0; b < n; ++b)
      if (a != b && near(level[a]->tops, level[b]->bottoms) && !(b < a && near(level[b]->tops, level[a]->bottoms))) {
        below[a].push_back(b);
        ++waits[b];
      }
  std::vector<std::vector<const Run*>> tracks;
  std::vector<bool> placed(n, false);
  for (size_t count = 0; count < n; ++count) {
    size_t next = n;
    for (size_t i = 0; i < n && next == n; ++i)
      if (!placed[i] && waits[i] <= 0) next = i;
    for (size_t i = 0; i < n && next == n; ++i)  // a circle: one of them runs over another for a little
      if (!placed[i]) next = i;
    placed[next] = true;
    Run& r = *level[next];
    auto free = [&](size_t t) {
      return t >= tracks.size() || std::all_of(tracks[t].begin(), tracks[t].end(), [&](const Run* o) {
               return r.right + kTrack < o->left || o->right + kTrack < r.left;
             });
    };
    auto t = static_cast<size_t>(least[next]);
    while (t < kMostTracks * 4 && !free(t)) ++t;
    if (t >= tracks.size()) tracks.resize(t + 1);
    tracks[t].push_back(&r);
    r.track = static_cast<int>(t);
    for (size_t b : below[next]) {
      --waits[b];
      least[b] = std::max(least[b], r.track + 1);
    }
  }
  gap.tracks = static_cast<int>(tracks.size());
}

class Drawer {
 public:
  Drawer(const LayeredGraph& g, const LayeredOptions& o) : g_(g), options_(o), r_(rank(g)) {
    reduce_crossings(r_);
    x_ = coordinates(r_);
    for (float& x : x_) x = std::round(x);
    gaps_.resize(r_.ranks.size() + 1);  // the first is above the first rank
    heights_.assign(r_.ranks.size(), 0);
    for (size_t k = 0; k < r_.ranks.size(); ++k)
      for (int v : r_.ranks[k])
        if (!vertex(v).knot()) heights_[k] = std::max(heights_[k], node(v).h);
    place_beside();
    gather_runs();
    for (Gap& gap : gaps_) choose_tracks(gap);
    choose_columns();
    place_columns();
    place_nodes();
    out_.last.assign(g.edges.size(), -1);
    for (size_t net = 0; net < r_.nets.size(); ++net) draw(static_cast<int>(net));
  }
  LayeredLayout take() { return std::move(out_); }

 private:
  const Ranked::Vertex& vertex(int v) const { return r_.vertices[static_cast<size_t>(v)]; }
  const LayeredGraph::Node& node(int v) const { return g_.nodes[static_cast<size_t>(vertex(v).node)]; }
  const LayeredGraph::Edge& edge(int e) const { return g_.edges[static_cast<size_t>(e)]; }
  float x(int v) const { return x_[static_cast<size_t>(v)]; }
  float out_x(int n, int port) const {
    const auto& at = g_.nodes[static_cast<size_t>(n)];
    return x(n) - at.w / 2 + at.out[static_cast<size_t>(port)];
  }
  float in_x(int n, int port) const {
    const auto& at = g_.nodes[static_cast<size_t>(n)];
    return x(n) - at.w / 2 + at.in[static_cast<size_t>(port)];
  }
  Gap& gap_above(int rank) { return gaps_[static_cast<size_t>(rank)]; }
  Gap& gap_below(int rank) { return gaps_[static_cast<size_t>(rank) + 1]; }

  /// Nets that run beside the picture: each in a lane to the right of all.
  void place_beside() {
    float right = 0;
    for (size_t v = 0; v < r_.vertices.size(); ++v) right = std::max(right, x_[v] + r_.vertices[v].half);
    lanes_.assign(r_.nets.size(), 0);
    std::vector<std::pair<int, size_t>> lane_ends;  // the lowest rank that is taken
    std::vector<std::pair<int, size_t>> by_top;
    auto reach = [&](const Ranked::Net& net) {
      int top = vertex(net.from).rank, bottom = top;
      for (int e : net.edges)
        top = std::min(top, vertex(edge(e).to).rank), bottom = std::max(bottom, vertex(edge(e).to).rank);
      return std::pair(top, bottom);
    };
    for (size_t n = 0; n < r_.nets.size(); ++n)
      if (r_.nets[n].beside) by_top.emplace_back(reach(r_.nets[n]).first, n);
    std::sort(by_top.begin(), by_top.end());
    any_beside_ = !by_top.empty();
    constexpr size_t kMostLanes = 400;
    for (const auto& [top, n] : by_top) {
      size_t lane = 0;
      while (lane < lane_ends.size() && lane < kMostLanes && lane_ends[lane].first >= top) ++lane;
      if (lane >= lane_ends.size()) lane_ends.resize(lane + 1);
      lane_ends[lane].first = std::max(lane_ends[lane].first, reach(r_.nets[n]).second);
      lanes_[n] = right + kRankGutter + static_cast<float>(lane) * kTrack;
    }
  }

  void gather_runs() {
    std::vector<int> found(gaps_.size(), -1);  // of the net at hand
    for (size_t n = 0; n < r_.nets.size(); ++n) {
      const Ranked::Net& net = r_.nets[n];
      std::vector<size_t> used;
      auto run = [&](size_t gap) -> Run& {
        if (found[gap] < 0) {
          found[gap] = static_cast<int>(gaps_[gap].runs.size());
          gaps_[gap].runs.push_back({.net = static_cast<int>(n), .tops = {}, .bottoms = {}});
          used.push_back(gap);
        }
        return gaps_[gap].runs[static_cast<size_t>(found[gap])];
      };
      const auto below = [&](int v) { return static_cast<size_t>(vertex(v).rank) + 1; };
      const auto above = [&](int v) { return static_cast<size_t>(vertex(v).rank); };
      run(below(net.from)).tops.push_back(out_x(net.from, net.from_port));
      if (net.beside) {
        run(below(net.from)).bottoms.push_back(lanes_[n]);
        for (int e : net.edges) {
          run(above(edge(e).to)).bottoms.push_back(in_x(edge(e).to, edge(e).to_port));
          run(above(edge(e).to)).tops.push_back(lanes_[n]);
        }
      } else if (net.back) {
        const LayeredGraph::Edge& e = edge(net.edges[0]);
        run(below(net.from)).tops.push_back(x(net.knots.back()));
        run(above(e.to)).bottoms.push_back(in_x(e.to, e.to_port));
        run(above(e.to)).bottoms.push_back(x(net.knots.front()));
        for (size_t k = 0; k + 1 < net.knots.size(); ++k) {
          run(below(net.knots[k])).tops.push_back(x(net.knots[k]));
          run(below(net.knots[k])).bottoms.push_back(x(net.knots[k + 1]));
        }
      } else {
        for (int k : net.knots) {
          run(above(k)).bottoms.push_back(x(k));
          run(below(k)).tops.push_back(x(k));
        }
        for (int e : net.edges) run(above(edge(e).to)).bottoms.push_back(in_x(edge(e).to, edge(e).to_port));
      }
      for (size_t gap : used) found[gap] = -1;
    }
  }

  float height_of(const Gap& gap, bool between) const {
    const float tracks =
        gap.tracks ? 2 * kEdge + static_cast<float>(std::min(gap.tracks, kMostTracks) - 1) * kTrack : 0;
    return between ? std::max(kGap, tracks) : tracks;
  }
  /// The nets that lead from one column into the next through a gap.
  static size_t cut_by(const Gap& gap) {
    size_t n = 0;
    for (const Run& r : gap.runs) n += !r.tops.empty() && !r.bottoms.empty();
    return n;
  }
  /// A turn back within the gap would be torn.
  static bool can_cut(const Gap& gap) {
    return std::all_of(gap.runs.begin(), gap.runs.end(), [](const Run& r) { return r.tops.size() <= 1; }) &&
           std::none_of(gap.runs.begin(), gap.runs.end(), [](const Run& r) { return r.tops.empty(); });
  }

  void choose_columns() {
    if (options_.aspect <= 0 || any_beside_ || r_.ranks.size() < 4) return;
    TallPicture tall;
    tall.aspect = options_.aspect;
    tall.gutter = 2 * kRankGutter;
    tall.upto = {0};
    for (size_t k = 0; k < r_.ranks.size(); ++k) {
      tall.upto.push_back(tall.upto.back() + heights_[k] + height_of(gaps_[k + 1], true));
      float left = std::numeric_limits<float>::max(), right = -left;
      for (int v : r_.ranks[k])
        left = std::min(left, x(v) - vertex(v).half), right = std::max(right, x(v) + vertex(v).half);
      tall.left.push_back(left);
      tall.right.push_back(right);
    }
    if (tall.upto.back() < options_.least_height) return;
    for (const Gap& gap : gaps_) tall.wires.push_back(can_cut(gap) ? static_cast<int>(cut_by(gap)) : -1);
    cuts_ = choose_cuts(tall);
  }

  void place_columns() {
    tops_.assign(r_.ranks.size(), 0);
    shift_.assign(r_.ranks.size(), 0);
    size_t from = 0;
    float at = 0;
    for (size_t c = 0; c <= cuts_.size(); ++c) {
      const size_t end = c < cuts_.size() ? cuts_[c] : r_.ranks.size();  // the gap above rank `end` ends the column
      float left = std::numeric_limits<float>::max(), right = -left;
      for (size_t k = from; k < end; ++k) {
        for (int v : r_.ranks[k])
          left = std::min(left, x(v) - vertex(v).half), right = std::max(right, x(v) + vertex(v).half);
      }
      for (size_t gap = from; gap <= end; ++gap)
        for (const Run& r : gaps_[gap].runs) {
          if (gap == from && c > 0)
            for (float b : r.bottoms) left = std::min(left, b), right = std::max(right, b);
          if (gap == end && c < cuts_.size())
            for (float t : r.tops) left = std::min(left, t), right = std::max(right, t);
          if ((gap == from && c > 0) || (gap == end && c < cuts_.size())) continue;
          left = std::min(left, r.left), right = std::max(right, r.right);
        }
      if (left > right) left = right = 0;
      const float shift = at - left;
      float y = 0;
      if (c == 0) {
        gaps_[0].top = 0;
        gaps_[0].height = height_of(gaps_[0], false);
        y = gaps_[0].height;
      } else {
        const size_t lines = cut_by(gaps_[from]);
        y = kEdge * 2 + static_cast<float>(lines) * kTrack;
      }
      for (size_t k = from; k < end; ++k) {
        shift_[k] = shift;
        tops_[k] = y;
        y += heights_[k];
        if (k + 1 == end) break;
        gaps_[k + 1].top = y;
        gaps_[k + 1].height = height_of(gaps_[k + 1], true);
        y += gaps_[k + 1].height;
      }
      if (c < cuts_.size()) {
        const size_t lines = cut_by(gaps_[end]);
        feet_.push_back(y + kEdge);
        gutters_.push_back(right + shift + kRankGutter);
        y += kEdge + static_cast<float>(lines) * kTrack;
        at = right + shift + 2 * kRankGutter + static_cast<float>(lines) * kTrack;
      } else {
        gaps_.back().top = y;
        gaps_.back().height = height_of(gaps_.back(), false);
        y += gaps_.back().height;
        out_.w = right + shift;
      }
      out_.h = std::max(out_.h, y);
      from = end;
    }
    // Which line of a column's end a net has: the rightmost turns first, so that none is in the way of another.
    turns_.resize(cuts_.size());
    for (size_t c = 0; c < cuts_.size(); ++c) {
      std::vector<std::pair<float, int>> order;
      for (const Run& r : gaps_[cuts_[c]].runs)
        if (!r.tops.empty() && !r.bottoms.empty()) order.emplace_back(-r.tops[0], r.net);
      std::sort(order.begin(), order.end());
      for (const auto& [where, net] : order) turns_[c].push_back(net);
    }
  }

  void place_nodes() {
    out_.at.resize(g_.nodes.size());
    out_.rank.resize(g_.nodes.size());
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const auto rank = static_cast<size_t>(r_.vertices[n].rank);
      out_.rank[n] = r_.vertices[n].rank;
      out_.at[n] = {std::round(x_[n] - g_.nodes[n].w / 2 + shift_[rank]),
                    std::round(tops_[rank] + (heights_[rank] - g_.nodes[n].h) / 2)};
    }
  }
  float out_at(int n, int port) const {
    return out_.at[static_cast<size_t>(n)].x + g_.nodes[static_cast<size_t>(n)].out[static_cast<size_t>(port)];
  }
  float in_at(int n, int port) const {
    return out_.at[static_cast<size_t>(n)].x + g_.nodes[static_cast<size_t>(n)].in[static_cast<size_t>(port)];
  }
  float knot_x(int v) const { return x(v) + shift_[static_cast<size_t>(vertex(v).rank)]; }
  Point start(const Ranked::Net& net) const {
    return {out_at(net.from, net.from_port),
            out_.at[static_cast<size_t>(net.from)].y + g_.nodes[static_cast<size_t>(net.from)].h};
  }
  Point end(int e) const { return {in_at(edge(e).to, edge(e).to_port), out_.at[static_cast<size_t>(edge(e).to)].y}; }
  const Run* run_of(const Gap& gap, int net) const {
    const auto at =
        std::lower_bound(gap.runs.begin(), gap.runs.end(), net, [](const Run& r, int n) { return r.net < n; });
    return at != gap.runs.end() && at->net == net ? &*at : nullptr;
  }

  /// From the upper end of a net's way through a gap to where it parts: appended to the points. Returns the height of
  /// the level line from which its lower ends leave.
  float through(size_t gap, int net, std::vector<Point>& points) const {
    const Point from = points.back();
    const auto cut = std::find(cuts_.begin(), cuts_.end(), gap);
    if (cut != cuts_.end()) {
      const auto c = static_cast<size_t>(cut - cuts_.begin());
      const auto turn = static_cast<float>(std::find(turns_[c].begin(), turns_[c].end(), net) - turns_[c].begin());
      const float foot = feet_[c] + turn * kTrack, lane = gutters_[c] + turn * kTrack, head = kEdge + turn * kTrack;
      points.insert(points.end(), {{from.x, foot}, {lane, foot}, {lane, head}});
      return head;
    }
    const Gap& g = gaps_[gap];
    const Run* r = run_of(g, net);
    const float y = r && r->track >= 0 ? g.y(r->track) : g.top + g.height / 2;
    points.push_back({from.x, y});
    return y;
  }
  static void level(std::vector<Point>& points, float x) {
    if (std::fabs(points.back().x - x) > kStraight) points.push_back({x, points.back().y});
  }
  int add_piece(int before, int e, std::vector<Point> points) {
    // Points on the way straight on say nothing.
    std::vector<Point> kept;
    for (const Point& p : points) {
      while (kept.size() >= 2 && std::fabs(kept[kept.size() - 2].x - kept.back().x) < kStraight &&
             std::fabs(kept.back().x - p.x) < kStraight)
        kept.pop_back();
      if (kept.empty() || kept.back().x != p.x || kept.back().y != p.y) kept.push_back(p);
    }
    out_.pieces.push_back({before, e, std::move(kept)});
    return static_cast<int>(out_.pieces.size()) - 1;
  }

  void draw(int n) {
    const Ranked::Net& net = r_.nets[static_cast<size_t>(n)];
    if (net.beside) return draw_beside(n);
    if (net.back) return draw_back(n);
    std::vector<std::vector<int>> targets;  // edges by how many ranks they lead down
    const int top = vertex(net.from).rank;
    for (int e : net.edges) {
      const auto down = static_cast<size_t>(vertex(edge(e).to).rank - top);
      if (targets.size() <= down) targets.resize(down + 1);
      targets[down].push_back(e);
    }
    int before = -1;
    std::vector<Point> points = {start(net)};
    for (size_t down = 1; down < targets.size(); ++down) {
      const bool goes_on = down - 1 < net.knots.size();
      const float y = through(static_cast<size_t>(top) + down, n, points);
      if (targets[down].size() + goes_on > 1) {
        const int some = targets[down].empty() ? net.edges[0] : targets[down][0];
        const Point parting = points.back();
        before = add_piece(before, some, std::move(points));
        points = {parting};
      }
      for (int e : targets[down]) {
        std::vector<Point> way = points;
        level(way, end(e).x);
        way.push_back(end(e));
        out_.last[static_cast<size_t>(e)] = add_piece(before, e, std::move(way));
      }
      if (!goes_on) break;
      const int knot = net.knots[down - 1];
      level(points, knot_x(knot));
      points.push_back({points.back().x, y});
    }
  }

  /// Down below its source, up beside all it passes, and into its target from above.
  void draw_back(int n) {
    const Ranked::Net& net = r_.nets[static_cast<size_t>(n)];
    const int e = net.edges[0];
    std::vector<Point> way = {end(e)};  // from the target on: the way down
    through_turn(gap_above(vertex(edge(e).to).rank), n, knot_x(net.knots.front()), way);
    for (size_t k = 1; k < net.knots.size(); ++k) {
      through(static_cast<size_t>(vertex(net.knots[k]).rank), n, way);
      level(way, knot_x(net.knots[k]));
    }
    const Gap& gap = gap_below(vertex(net.from).rank);
    const Run* r = run_of(gap, n);
    const float y = gap.y(r ? std::max(r->track, 0) : 0);
    way.push_back({way.back().x, y});
    level(way, start(net).x);
    way.push_back(start(net));
    std::reverse(way.begin(), way.end());
    out_.last[static_cast<size_t>(e)] = add_piece(-1, e, std::move(way));
  }
  void through_turn(const Gap& gap, int net, float x, std::vector<Point>& way) const {
    const Run* r = run_of(gap, net);
    way.push_back({way.back().x, gap.y(r ? std::max(r->track, 0) : 0)});
    level(way, x);
  }

  void draw_beside(int n) {
    const Ranked::Net& net = r_.nets[static_cast<size_t>(n)];
    for (int e : net.edges) {
      std::vector<Point> way = {start(net)};
      through(static_cast<size_t>(vertex(net.from).rank) + 1, n, way);
      level(way, lanes_[static_cast<size_t>(n)] + shift_[0]);
      const Gap& gap = gap_above(vertex(edge(e).to).rank);
      const Run* r = run_of(gap, n);
      way.push_back({way.back().x, gap.y(r ? std::max(r->track, 0) : 0)});
      level(way, end(e).x);
      way.push_back(end(e));
      out_.last[static_cast<size_t>(e)] = add_piece(-1, e, std::move(way));
    }
  }

  const LayeredGraph& g_;
  LayeredOptions options_;
  Ranked r_;
  std::vector<float> x_, heights_, tops_, shift_, lanes_;
  std::vector<Gap> gaps_;
  std::vector<size_t> cuts_;             ///< gaps that end a column
  std::vector<float> feet_, gutters_;    ///< by cut: the first level line below the column, the first lane beside it
  std::vector<std::vector<int>> turns_;  ///< by cut: nets, in the order of their lines
  bool any_beside_ = false;
  LayeredLayout out_;
};
}  // namespace

LayeredLayout layered_layout(const LayeredGraph& graph, const LayeredOptions& options) {
  if (graph.nodes.empty()) return {};
  return Drawer(graph, options).take();
}

}  // namespace tenon::views
