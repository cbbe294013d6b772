#include "views/graph/layered_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "views/graph/ranks.h"

namespace tenon::views {
namespace {

LayeredGraph::Node box(int inputs = 1, int outputs = 1) {
  LayeredGraph::Node n{.w = 200, .h = 40, .in = {}, .out = {}};
  for (int i = 0; i < inputs; ++i) n.in.push_back(200 * static_cast<float>(i + 1) / static_cast<float>(inputs + 1));
  for (int i = 0; i < outputs; ++i) n.out.push_back(200 * static_cast<float>(i + 1) / static_cast<float>(outputs + 1));
  return n;
}

LayeredGraph chain(int length) {
  LayeredGraph g;
  for (int i = 0; i < length; ++i) {
    g.nodes.push_back(box());
    if (i) g.edges.push_back({i - 1, 0, i, 0});
  }
  return g;
}

LayeredGraph random_graph(uint32_t seed, int nodes, bool circles) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  LayeredGraph g;
  for (int i = 0; i < nodes; ++i) g.nodes.push_back(box(1 + below(3), 1 + below(2)));
  for (int i = 1; i < nodes; ++i)
    for (size_t port = 0; port < g.nodes[static_cast<size_t>(i)].in.size(); ++port) {
      const int from = std::max(0, i - 1 - (below(4) ? below(3) : below(i)));
      g.edges.push_back(
          {from, below(static_cast<int>(g.nodes[static_cast<size_t>(from)].out.size())), i, static_cast<int>(port)});
    }
  for (int k = 0; circles && k < 3; ++k) {
    const int from = below(nodes), to = below(nodes);
    g.edges.push_back({from, 0, to, 0});
  }
  return g;
}

Box box_of(const LayeredGraph& g, const LayeredLayout& l, size_t n) {
  return {l.at[n].x, l.at[n].y, g.nodes[n].w, g.nodes[n].h};
}

/// What is wrong with a picture; nothing of a right one.
std::string layout_fault(const LayeredGraph& g, const LayeredLayout& l) {
  for (size_t a = 0; a < g.nodes.size(); ++a) {
    const Box b = box_of(g, l, a);
    if (b.x < 0 || b.y < 0 || b.right() > l.w || b.bottom() > l.h) return "node " + std::to_string(a) + " is outside";
    for (size_t c = a + 1; c < g.nodes.size(); ++c)
      if (b.overlaps(box_of(g, l, c))) return "nodes " + std::to_string(a) + " and " + std::to_string(c) + " overlap";
  }
  for (const auto& piece : l.pieces)
    for (size_t i = 0; i + 1 < piece.points.size(); ++i) {
      const Point p = piece.points[i], q = piece.points[i + 1];
      if (std::fabs(p.x - q.x) > 1 && std::fabs(p.y - q.y) > 1) return "a line that leans";
      const Box line{std::min(p.x, q.x), std::min(p.y, q.y), std::fabs(p.x - q.x), std::fabs(p.y - q.y)};
      if (line.x < 0 || line.y < 0 || line.right() > l.w + 0.5f || line.bottom() > l.h + 0.5f)
        return "a line is outside";
      for (size_t n = 0; n < g.nodes.size(); ++n) {
        const Box b = box_of(g, l, n);
        const Box inner{b.x + 1, b.y + 1, b.w - 2, b.h - 2};
        if (line.x < inner.right() && line.right() > inner.x && line.y < inner.bottom() && line.bottom() > inner.y)
          return "edge " + std::to_string(piece.edge) + " crosses node " + std::to_string(n);
      }
    }
  for (size_t e = 0; e < g.edges.size(); ++e) {
    const auto& edge = g.edges[e];
    if (edge.from == edge.to) continue;
    if (l.last[e] < 0) return "edge " + std::to_string(e) + " is not drawn";
    int piece = l.last[e];
    const Point end = l.pieces[static_cast<size_t>(piece)].points.back();
    while (l.pieces[static_cast<size_t>(piece)].before >= 0) {
      const auto& now = l.pieces[static_cast<size_t>(piece)];
      const Point from = l.pieces[static_cast<size_t>(now.before)].points.back();
      if (from.x != now.points.front().x || from.y != now.points.front().y) return "a wire is torn";
      piece = now.before;
    }
    const Point start = l.pieces[static_cast<size_t>(piece)].points.front();
    const Box a = box_of(g, l, static_cast<size_t>(edge.from)), b = box_of(g, l, static_cast<size_t>(edge.to));
    const float out = g.nodes[static_cast<size_t>(edge.from)].out[static_cast<size_t>(edge.from_port)],
                in = g.nodes[static_cast<size_t>(edge.to)].in[static_cast<size_t>(edge.to_port)];
    if (std::fabs(start.x - a.x - out) > 0.01f || start.y != a.bottom()) return "a wire starts at no port of its node";
    if (std::fabs(end.x - b.x - in) > 0.01f || end.y != b.y) return "a wire ends at no port of its node";
  }
  return {};
}

TEST(LayeredLayout, WiresRunFromPortToPortAndCrossNoNode) {
  for (uint32_t seed = 0; seed < 50; ++seed)
    for (bool circles : {false, true})
      for (float aspect : {0.f, 1.6f}) {
        const LayeredGraph g = random_graph(seed, 5 + static_cast<int>(seed) * 2, circles);
        const LayeredLayout l = layered_layout(g, {.aspect = aspect, .least_height = 400});
        ASSERT_EQ(layout_fault(g, l), "") << "seed " << seed << " circles " << circles << " aspect " << aspect;
      }
}

TEST(LayeredLayout, TheSameGraphGivesTheSamePicture) {
  const LayeredGraph g = random_graph(7, 80, true);
  const LayeredLayout a = layered_layout(g), b = layered_layout(g);
  for (size_t i = 0; i < a.at.size(); ++i) {
    EXPECT_EQ(a.at[i].x, b.at[i].x);
    EXPECT_EQ(a.at[i].y, b.at[i].y);
  }
}

TEST(LayeredLayout, AChainIsOneStraightLine) {
  const LayeredGraph g = chain(12);
  const LayeredLayout l = layered_layout(g);
  for (const Point& p : l.at) EXPECT_EQ(p.x, l.at[0].x);
  for (const auto& piece : l.pieces) EXPECT_EQ(piece.points.size(), 2u);
  EXPECT_EQ(l.w, 200);
}

TEST(LayeredLayout, WhatIsPassedByStandsBesideTheWire) {
  // A shortcut round three nodes: the wire runs down beside them, in a line of its own.
  LayeredGraph g = chain(5);
  g.nodes[4] = box(2);
  g.edges.push_back({0, 0, 4, 1});
  const LayeredLayout l = layered_layout(g);
  ASSERT_EQ(layout_fault(g, l), "");
  const auto& way = l.pieces[static_cast<size_t>(l.last.back())].points;
  EXPECT_TRUE(std::all_of(way.begin() + 1, way.end() - 1, [&](Point p) {
    return p.x < l.at[1].x || p.x > l.at[1].x + 200 || p.y < l.at[1].y || p.y > l.at[3].y + 40;
  }));
}

TEST(LayeredLayout, ALongChainGoesOnInAnotherColumn) {
  const LayeredGraph g = chain(200);
  const LayeredLayout tall = layered_layout(g), parted = layered_layout(g, {.aspect = 1.6f});
  EXPECT_EQ(layout_fault(g, parted), "");
  EXPECT_GT(tall.h / tall.w, 20);
  EXPECT_GT(parted.w / parted.h, 1.f);
  EXPECT_LT(parted.w / parted.h, 2.6f);
}

TEST(LayeredLayout, FewLinesCross) {
  // Two groups of three that feed each its own: drawn crosswise at first.
  LayeredGraph g;
  for (int i = 0; i < 12; ++i) g.nodes.push_back(box(3, 1));
  for (int i = 0; i < 6; ++i)
    for (int k = 0; k < 3; ++k) g.edges.push_back({i, 0, 6 + (i + k * 2) % 6, k});
  Ranked r = rank(g);
  const int64_t before = crossings(r);
  reduce_crossings(r);
  EXPECT_LE(crossings(r), before);
  LayeredGraph straight;
  for (int i = 0; i < 8; ++i) straight.nodes.push_back(box());
  for (int i = 0; i < 4; ++i) straight.edges.push_back({i, 0, 7 - i, 0});
  Ranked s = rank(straight);
  reduce_crossings(s);
  EXPECT_EQ(crossings(s), 0);
}

TEST(LayeredLayout, VeryLongEdgesRunBesideIt) {
  // Each node is read by the last: 2000 nets through up to 2000 ranks.
  LayeredGraph g = chain(2000);
  g.nodes.back() = box(1999);
  for (int i = 0; i < 1998; ++i) g.edges.push_back({i, 0, 1999, i + 1});
  const LayeredLayout l = layered_layout(g, {.aspect = 1.6f});
  EXPECT_TRUE(std::none_of(l.last.begin(), l.last.end(), [](int p) { return p < 0; }));
  for (size_t n = 0; n + 1 < g.nodes.size(); ++n) ASSERT_GE(l.at[n + 1].y, l.at[n].y + 40);
}

TEST(LayeredLayout, NodesWithoutWiresFillRows) {
  LayeredGraph g;
  for (int i = 0; i < 100; ++i) g.nodes.push_back(box());
  const LayeredLayout l = layered_layout(g);
  EXPECT_EQ(layout_fault(g, l), "");
  EXPECT_LT(l.w, 200 * 12);
  EXPECT_TRUE(layered_layout({}).at.empty());
}

}  // namespace
}  // namespace tenon::views
