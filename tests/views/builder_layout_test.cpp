// How the builder draws models: groups, wires round boxes, names from afar.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "tests/views/scenes.h"
#include "views/builder/builder_model.h"
#include "views/graph/wire_router.h"

namespace tenon::views {
namespace {

bool is_box(const Scene::Target& t) { return t.hit.kind == BuilderModel::layer || t.hit.kind == BuilderModel::group; }

/// What is wrong with the wires of a picture; nothing of a right one.
std::string scene_fault(const Scene& s) {
  std::vector<Box> boxes;
  for (const Scene::Target& t : s.targets())
    if (is_box(t)) boxes.push_back(t.box);
  for (size_t a = 0; a < boxes.size(); ++a)
    for (size_t b = a + 1; b < boxes.size(); ++b) {
      const Box inner{boxes[a].x + 0.5f, boxes[a].y + 0.5f, boxes[a].w - 1, boxes[a].h - 1};
      if (inner.w > 0 && inner.h > 0 && inner.overlaps(boxes[b])) return "two boxes overlap";
    }
  for (const Scene::Prim& p : s.prims()) {
    if (p.kind != Scene::Kind::line || p.closed || p.stroke == Ink::line) continue;
    for (uint32_t i = 0; i + 1 < p.count; ++i) {
      const Point a = s.points()[p.first + i], b = s.points()[p.first + i + 1];
      const Box line{std::min(a.x, b.x), std::min(a.y, b.y), std::fabs(a.x - b.x), std::fabs(a.y - b.y)};
      for (const Box& box : boxes) {
        const float inset = std::min({1.f, box.w / 4, box.h / 4});
        if (line.x < box.right() - inset && line.right() > box.x + inset && line.y < box.bottom() - inset &&
            line.bottom() > box.y + inset)
          return "a wire crosses a box at " + std::to_string(box.x) + ", " + std::to_string(box.y);
      }
    }
  }
  return {};
}

/// Each wire that is seen runs from its source's port to its target's.
std::string loose_end(const BuilderModel& m) {
  const GroupLayout& picture = m.layout().picture();
  for (size_t w = 0; w < m.spec().wires.size(); ++w) {
    const WireSpec& wire = m.spec().wires[w];
    int piece = picture.last[w];
    if (piece < 0) continue;
    const Point end = m.to_canvas(m.layout().way(static_cast<size_t>(piece)).back());
    while (picture.pieces[static_cast<size_t>(piece)].before >= 0) {
      const Point from = m.layout().way(static_cast<size_t>(piece)).front();
      piece = picture.pieces[static_cast<size_t>(piece)].before;
      const Point to = m.layout().way(static_cast<size_t>(piece)).back();
      if (std::fabs(from.x - to.x) > 0.01f || std::fabs(from.y - to.y) > 0.01f) return "a wire is torn";
    }
    const Point start = m.to_canvas(m.layout().way(static_cast<size_t>(piece)).front());
    const auto alone = [&](const std::string& name) {
      for (size_t i = 0; i < m.spec().layers.size(); ++i)
        if (m.spec().layers[i].name == name) {
          const int cell = m.layout().cell_of_layer(static_cast<int>(i));
          return m.layout().layer_of(picture.cells[static_cast<size_t>(cell)]) == static_cast<int>(i);
        }
      return false;
    };
    const auto near = [](Point a, Point b) { return std::fabs(a.x - b.x) < 0.6f && std::fabs(a.y - b.y) < 0.6f; };
    if (alone(wire.from) && !near(start, m.port(*m.spec().find(wire.from), true, wire.from_port)))
      return wire.from + "'s wire starts elsewhere";
    if (alone(wire.to) && !near(end, m.port(*m.spec().find(wire.to), false, wire.to_port)))
      return wire.to + "'s wire ends elsewhere";
  }
  return {};
}

/// A model of layers that add what earlier ones give, some of them in groups.
ModelSpec random_model(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % static_cast<uint32_t>(n); };
  Chain c("random", {8});
  std::vector<std::string> names = {"input"};
  const size_t count = 6 + below(40);
  for (size_t i = 0; i < count; ++i) {
    std::string name = "l" + std::to_string(i);
    if (below(3))
      name = "group" + std::to_string(i / 6) + (below(2) ? ".inner" + std::to_string(i / 3) : "") + "." + name;
    const auto some = [&] { return names[names.size() - 1 - below(std::min<size_t>(names.size(), 1 + below(6)))]; };
    if (below(3))
      c.join(name, "ReLU", {some()});
    else
      c.join(name, "Add", {some(), some()});
    names.push_back(name);
  }
  return c.done();
}

TEST(BuilderLayout, NoWireCrossesALayerInAnyTemplate) {
  for (const Template& t : templates())
    for (Size size : {Size{900, 560}, Size{1500, 900}}) {
      BuilderModel m;
      m.set_spec(t.model, 8);
      for (int way = 0; way < 3; ++way) {
        if (way == 1) m.open_groups(true);
        if (way == 2) m.open_groups(false);
        EXPECT_EQ(scene_fault(m.frame(size)), "") << t.name << " " << way;
        EXPECT_EQ(loose_end(m), "") << t.name << " " << way;
        EXPECT_TRUE(m.last().overlaps().empty()) << t.name << " " << way << ": " << m.last().overlaps().front();
      }
    }
}

TEST(BuilderLayout, NoWireCrossesALayerInRandomModels) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    BuilderModel m;
    m.set_spec(random_model(seed), 1);
    for (bool all : {false, true}) {
      if (all) m.open_groups(true);
      ASSERT_EQ(scene_fault(m.frame({1400, 900})), "") << seed;
      ASSERT_EQ(loose_end(m), "") << seed;
    }
  }
}

TEST(BuilderLayout, WiresRunRoundLayersThatWerePlacedByHand) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    BuilderModel m;
    m.set_spec(random_model(seed), 1);
    m.open_groups(true);
    m.frame({1400, 900});
    m.choose("l0");
    for (const LayerSpec& l : m.spec().layers)
      if (l.type == "ReLU") {
        m.choose(l.name);
        break;
      }
    ASSERT_TRUE(m.move_selected(0, 8));
    ASSERT_TRUE(m.layout().by_hand());
    EXPECT_EQ(scene_fault(m.frame({1400, 900})), "") << seed;
    EXPECT_EQ(loose_end(m), "") << seed;
  }
}

TEST(BuilderLayout, ARoundaboutWayIsFoundWhereTheStraightOneIsBarred) {
  const WireRouter router({{0, 0, 100, 40}, {0, 100, 100, 40}, {0, 200, 100, 40}});
  const std::vector<Point> way = router.route({50, 40}, {50, 200});
  ASSERT_GE(way.size(), 4u);
  EXPECT_EQ(way.front().x, 50);
  EXPECT_EQ(way.back().y, 200);
  for (size_t i = 0; i + 1 < way.size(); ++i) {
    const Point a = way[i], b = way[i + 1];
    EXPECT_TRUE(a.x == b.x || a.y == b.y);
    EXPECT_FALSE(std::min(a.x, b.x) < 99 && std::max(a.x, b.x) > 1 && std::min(a.y, b.y) < 139 &&
                 std::max(a.y, b.y) > 101);
  }
  EXPECT_EQ(router.route({50, 40}, {50, 100}).size(), 2u) << "nothing is in the way";
  const std::vector<Point> up = router.route({50, 240}, {50, 0});
  EXPECT_GT(up.size(), 4u) << "out below, up beside them, in from above";
}

TEST(BuilderLayout, WiresOfWhatAPersonPlacedAreLedWhereTheyAreSeenAndAlikeInAnyOrder) {
  ModelSpec spec = random_model(7);
  for (int i = 0; i < 400; ++i) {
    const std::string at = "wide" + std::to_string(i);
    spec.layers.push_back({.name = at, .type = "ReLU"});
    spec.wires.push_back({.from = spec.layers[spec.layers.size() - 2].name, .from_port = 0, .to = at, .to_port = 0});
  }
  for (size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].x = 40 + 360.0 * static_cast<double>(i % 20),
    spec.layers[i].y = 40 + 140.0 * static_cast<double>(i / 20);
  BuilderModel m, other;
  for (BuilderModel* each : {&m, &other}) each->set_spec(spec, 8), each->open_groups(true);
  const auto led = [](const BuilderModel& b) {
    const auto& pieces = b.layout().picture().pieces;
    return std::count_if(pieces.begin(), pieces.end(), [](const auto& p) { return !p.points.empty(); });
  };
  const auto all = static_cast<std::ptrdiff_t>(m.layout().picture().pieces.size());
  m.frame({1200, 800});
  m.zoom_by(0.6f / m.zoom());
  m.choose(spec.layers.front().name);
  ASSERT_TRUE(m.move_selected(16, 8)) << "what was led to see all of it is led anew";
  other.choose(spec.layers.front().name);
  ASSERT_TRUE(other.move_selected(16, 8));
  m.frame({1200, 800});
  ASSERT_EQ(scene_fault(m.last()), "");
  EXPECT_GT(led(m), 0);
  EXPECT_LT(led(m), all) << "most of it is out of sight";
  for (size_t p = 0; p < static_cast<size_t>(all); ++p) other.layout().way(p);  // from the other end of the list
  for (size_t p = static_cast<size_t>(all); p-- > 0;) {
    const auto &a = m.layout().way(p), &b = other.layout().way(p);
    ASSERT_EQ(a.size(), b.size()) << p;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(std::fabs(a[i].x - b[i].x) + std::fabs(a[i].y - b[i].y) < 0.1f);
  }
  EXPECT_EQ(loose_end(m), "");
}

TEST(BuilderLayout, GroupsComeFromTheModulePathAndRepeatsAreCounted) {
  BuilderModel m;
  m.set_spec(find_template("byte-gpt").model, 8);
  m.open_groups(false);
  const Scene& s = m.frame({900, 700});
  EXPECT_TRUE(shows(s, "▸ blocks ×4")) << s.dump();
  EXPECT_EQ(m.layout().picture().cells.size(), 7u);
  const int blocks = m.layout().node_of("blocks");
  ASSERT_GE(blocks, 0);
  m.toggle_group(blocks);
  EXPECT_TRUE(shows(m.frame({900, 700}), "▸ blocks.2"))
      << "its blocks, by what the frame does not say: " << m.last().dump();
  const int second = m.layout().node_of("blocks.1");
  ASSERT_GE(second, 0);
  m.toggle_group(second);
  EXPECT_TRUE(shows(m.frame({900, 900}), "attention")) << m.last().dump();
  EXPECT_FALSE(m.can_undo()) << "what is open is no edit";
}

TEST(BuilderLayout, ADeepModelIsFoldedUntilItReadsWell) {
  for (const char* name : {"resnet18", "u-net", "byte-gpt"}) {
    BuilderModel m;
    m.set_spec(find_template(name).model, 8);
    EXPECT_LE(m.layout().picture().cells.size(), 24u) << name;
    m.frame({900, 560});
    EXPECT_GT(m.zoom(), 0.4f) << name << ": every name is there";
  }
}

TEST(BuilderLayout, FiveHundredLayersFit) {
  Chain c("deep", {8});
  for (int i = 0; i < 500; ++i) c.add("relu" + std::to_string(i), "ReLU");
  BuilderModel m;
  m.set_spec(c.done(), 1);
  for (Size size : {Size{900, 460}, Size{420, 200}, Size{1800, 900}}) {
    m.fit();
    const Scene& s = m.frame(size);
    for (const LayerSpec& l : m.spec().layers) {
      const Box b = m.box_of(l);
      ASSERT_TRUE(b.x >= 0 && b.y >= 0 && b.right() <= size.w && b.bottom() <= size.h - 28) << l.name;
    }
    EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  }
}

TEST(BuilderLayout, PlacesAreKeptUntilArrangeIsAskedFor) {
  ModelSpec spec = find_template("u-net").model;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i].x = 300.0 * static_cast<double>(i % 4);
    spec.layers[i].y = 90.0 * static_cast<double>(i / 4);
  }
  BuilderModel m;
  m.set_spec(spec, 8);
  m.open_groups(true);
  m.frame({1400, 900});
  EXPECT_EQ(m.spec(), spec);
  const Box a = m.box_of(m.spec().layers[0]), b = m.box_of(m.spec().layers[5]);
  EXPECT_NEAR((b.x - a.x) / m.zoom(), 300, 0.5);
  EXPECT_NEAR((b.y - a.y) / m.zoom(), 90, 0.5);
  m.auto_layout();
  m.frame({1400, 900});
  EXPECT_FALSE(ModelLayout::has_places(m.spec()));
  EXPECT_EQ(scene_fault(m.last()), "");
  EXPECT_EQ(loose_end(m), "");
  m.undo();
  EXPECT_EQ(m.spec(), spec);
}

TEST(BuilderLayout, AMoveLeavesAllOthersWhereTheyAreSeen) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 8);
  m.frame({1400, 900});
  std::vector<Box> before;
  for (const LayerSpec& l : m.spec().layers) before.push_back(m.box_of(l));
  m.choose("fc");
  m.zoom_by(0.99f);  // from now on it is looked at as the person wants it
  m.frame({1400, 900});
  before.clear();
  for (const LayerSpec& l : m.spec().layers) before.push_back(m.box_of(l));
  ASSERT_TRUE(m.move_selected(400, 0));
  m.frame({1400, 900});
  for (size_t i = 0; i < before.size(); ++i) {
    const Box now = m.box_of(m.spec().layers[i]);
    EXPECT_NEAR(now.x - before[i].x, m.spec().layers[i].name == "fc" ? 400 * m.zoom() : 0, 1) << i;
    EXPECT_NEAR(now.y, before[i].y, 1) << i;
  }
  // A group that is opened where there is no room makes some, as an edit.
  const int layer3 = m.layout().node_of("layer3.0");
  ASSERT_GE(layer3, 0);
  m.toggle_group(layer3);
  EXPECT_EQ(scene_fault(m.frame({1400, 900})), "");
}

TEST(BuilderLayout, WhatADragShowsIsWhatItLeaves) {
  for (const char* name : {"resnet18", "u-net", "byte-gpt"})
    for (int way = 0; way < 3; ++way)
      for (const Box& target : [&] {
             BuilderModel m;
             m.set_spec(find_template(name).model, 8);
             if (way) m.open_groups(way == 1);
             std::vector<Box> boxes;
             for (const Scene::Target& t : m.frame({1400, 900}).targets())
               if (is_box(t)) boxes.push_back(t.box);
             return std::vector<Box>{boxes.front(), boxes[boxes.size() / 2]};
           }()) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(way));
        BuilderModel dragged, moved;
        for (BuilderModel* m : {&dragged, &moved}) {
          m->set_spec(find_template(name).model, 8);
          if (way) m->open_groups(way == 1);
          m->frame({1400, 900});
        }
        const Point from{target.x + target.w / 4, target.y + target.h / 2};
        dragged.pointer({PointerEvent::Type::press, Button::left, from.x, from.y, {}});
        for (float step : {1.f, 3.f, 2.f})
          dragged.pointer({PointerEvent::Type::move, Button::left, from.x + step * 40, from.y + step * 10, {}});
        const std::vector<GroupLayout::Cell> seen = dragged.layout().picture().cells;
        dragged.pointer({PointerEvent::Type::release, Button::left, from.x + 80, from.y + 20, {}});
        ASSERT_TRUE(ModelLayout::has_places(dragged.spec()));
        const auto& left = dragged.layout().picture().cells;
        ASSERT_EQ(seen.size(), left.size());
        for (size_t i = 0; i < seen.size(); ++i) {
          EXPECT_EQ(seen[i].box.x, left[i].box.x) << i;
          EXPECT_EQ(seen[i].box.y, left[i].box.y) << i;
        }
        // As by an edit without a pointer.
        if (dragged.selected_group().empty())
          moved.choose(dragged.primary());
        else
          moved.choose_group(moved.layout().node_of(dragged.selected_group()), false);
        const float zoom = moved.zoom();
        ASSERT_TRUE(moved.move_selected(std::round(80 / zoom / 8) * 8, std::round(20 / zoom / 8) * 8));
        EXPECT_EQ(dragged.spec(), moved.spec());
        dragged.undo();
        EXPECT_EQ(dragged.spec(), find_template(name).model);
        EXPECT_EQ(scene_fault(dragged.frame({1400, 900})), "");
      }
}

TEST(BuilderLayout, AFoldedGroupOfWhichAPartIsChosenIsDraggedAsItIsLeft) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 8);
  m.open_groups(true);
  m.frame({1400, 900});
  const auto click = [&](const char* layer, Mods mods) {
    const Box b = m.box_of(*m.spec().find(layer));
    m.pointer({PointerEvent::Type::press, Button::left, b.x + b.w / 4, b.y + b.h / 2, mods});
    m.pointer({PointerEvent::Type::release, Button::left, b.x + b.w / 4, b.y + b.h / 2, mods});
    m.frame({1400, 900});
  };
  click("layer1.0.conv2", {});
  click("fc", {.ctrl = true});
  ASSERT_EQ(m.selected().size(), 2u);
  m.open_groups(false);
  m.frame({1400, 900});
  const Box box = m.box_of(*m.spec().find("fc"));
  const Point from{box.x + box.w / 4, box.y + box.h / 2};
  m.pointer({PointerEvent::Type::press, Button::left, from.x, from.y, {}});
  m.pointer({PointerEvent::Type::move, Button::left, from.x - 190, from.y - 140, {}});
  const std::vector<GroupLayout::Cell> seen = m.layout().picture().cells;
  m.pointer({PointerEvent::Type::release, Button::left, from.x - 190, from.y - 140, {}});
  const auto& left = m.layout().picture().cells;
  ASSERT_TRUE(ModelLayout::has_places(m.spec()));
  ASSERT_EQ(seen.size(), left.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].box.x, left[i].box.x) << i;
    EXPECT_EQ(seen[i].box.y, left[i].box.y) << i;
  }
}

TEST(BuilderLayout, FarAwayNamesStandBesideTheBoxes) {
  Chain c("deep", {8});
  for (int i = 0; i < 60; ++i) c.add("relu" + std::to_string(i), "ReLU");
  BuilderModel m;
  m.set_spec(c.done(), 1);
  m.frame({1400, 900});
  m.zoom_by(0.1f);
  const Scene& s = m.frame({1400, 900});
  size_t names = 0;
  for (const std::string& text : s.texts()) names += text.starts_with("relu");
  EXPECT_GT(names, 5u) << m.zoom();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
}

TEST(BuilderLayout, TheMapLeadsToWhatIsOutOfSight) {
  BuilderModel m;
  m.set_spec(find_template("resnet18").model, 8);
  m.open_groups(true);
  m.frame({1000, 700});
  EXPECT_LT(center_of(m.last(), {BuilderModel::minimap, 0}).x, 0) << "all is in sight";
  m.zoom_by(8);
  const Scene& s = m.frame({1000, 700});
  const Point map = center_of(s, {BuilderModel::minimap, 0});
  ASSERT_GT(map.x, 0);
  const Box before = m.box_of(m.spec().layers[0]);
  m.pointer({PointerEvent::Type::press, Button::left, map.x + 60, map.y + 30, {}});
  m.pointer({PointerEvent::Type::release, Button::left, map.x + 60, map.y + 30, {}});
  m.frame({1000, 700});
  EXPECT_NE(m.box_of(m.spec().layers[0]).x, before.x);
}

TEST(BuilderLayout, AWireToNowhereIsLeftOut) {
  ModelSpec spec = find_template("spirals").model;
  spec.wires.push_back({"nobody", 0, "output", 0});
  spec.wires.push_back({"input", 7, "output", 3});
  BuilderModel m;
  m.set_spec(spec, 8);
  EXPECT_GT(m.frame({900, 600}).prims().size(), 10u);
  EXPECT_FALSE(m.errors().empty());
}

TEST(BuilderLayout, ALoopIsDrawn) {
  ModelSpec spec = find_template("spirals").model;
  const std::string first = spec.layers[1].name, last = spec.layers[spec.layers.size() - 2].name;
  spec.wires.push_back({last, 0, first, 0});
  BuilderModel m;
  m.set_spec(spec, 8);
  EXPECT_EQ(scene_fault(m.frame({900, 600})), "");
  EXPECT_FALSE(m.errors().empty());
}

}  // namespace
}  // namespace tenon::views
