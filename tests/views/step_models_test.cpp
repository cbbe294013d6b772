// The view-models of a step, driven by intents and judged by the scenes they draw; no window.
#include <gtest/gtest.h>

#include <set>

#include <algorithm>
#include <cmath>

#include "core/profile.h"
#include "tests/views/scenes.h"
#include "tests/views/step_fixture.h"
#include "views/autograd/autograd_model.h"
#include "views/details/details_model.h"
#include "views/memory/memory_model.h"
#include "views/nan/nan_model.h"
#include "views/tensor/tensor_model.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

using testing::small_links;
using testing::small_step;

template <class Model>
void click(Model& m, Point p) {
  m.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}});
  m.pointer({PointerEvent::Type::release, Button::left, p.x, p.y, {}});
}
constexpr Size kSize{1000, 480};

TEST(Timeline, ARangeIsDrawnOnACanvasOfAnySize) {
  TimelineModel m;
  m.set_step(small_links());
  m.set_selection(Selection::range(10, 250));
  for (float w : {0.f, 1.f, 120.f, 160.f, 1000.f})
    for (float h : {0.f, 100.f, 480.f}) EXPECT_EQ(m.frame({w, h}).size().w, w);
}

TEST(Timeline, DrawsEveryOpUnderItsName) {
  TimelineModel m;
  m.set_step(small_links());
  const Scene& s = m.frame(kSize);
  for (const char* name : {"conv2d", "linear backward", "training", "loader 1", "forward", "live memory"})
    EXPECT_TRUE(shows(s, name)) << name << "\n" << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
}

TEST(Timeline, AClickSelectsTheOpAndOthersReveal) {
  TimelineModel m;
  m.set_step(small_links());
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  click(m, center_of(m.frame(kSize), {TimelineModel::op, 4}));
  EXPECT_TRUE(chosen.same(Selection::op(4)));
  m.axis().show(0, 100'000);
  m.set_selection(Selection::op(10, "elsewhere"));
  EXPECT_LE(m.axis().lo, 870'000);
  EXPECT_GE(m.axis().hi, 970'000);
}

TEST(Timeline, ZoomPanFitAndMeasure) {
  TimelineModel m;
  m.set_step(small_links());
  m.frame(kSize);
  EXPECT_TRUE(m.wheel({500, 100, 0, 3, {}}));
  EXPECT_FALSE(m.axis().fitted());
  EXPECT_TRUE(m.key({"F", "f", {}}));
  EXPECT_TRUE(m.axis().fitted());
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  m.pointer({PointerEvent::Type::press, Button::left, 200, 100, {.shift = true}});
  m.pointer({PointerEvent::Type::move, Button::left, 500, 100, {.shift = true}});
  m.pointer({PointerEvent::Type::release, Button::left, 500, 100, {.shift = true}});
  EXPECT_EQ(chosen.kind, Selection::Kind::range);
  EXPECT_NEAR(chosen.from, m.axis().to_value(200), 1);
  EXPECT_NEAR(chosen.to, m.axis().to_value(500), 1);
}

TEST(Timeline, SearchCountsAndWalksTheMatches) {
  TimelineModel m;
  m.set_step(small_links());
  m.set_filter({.name = "CONV"});
  EXPECT_EQ(m.found(), 2);
  std::vector<int64_t> seen;
  m.on_select = [&](const Selection& s) {
    seen.push_back(s.id);
    m.set_selection(s);
  };
  m.next_match(1);
  m.next_match(1);
  m.next_match(1);
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 9, 1}));
}

TEST(Timeline, AFilterOfAModuleLeavesItsOps) {
  TimelineModel m;
  m.set_step(small_links());
  const int64_t all = m.found();
  std::set<std::string> modules;
  for (const auto& row : m.modules().rows)
    if (row.selection) modules.insert(row.selection.name);
  ASSERT_GE(modules.size(), 2u);
  const std::string one = *modules.begin();
  m.set_filter({.module = one});
  EXPECT_GT(m.found(), 0);
  EXPECT_LT(m.found(), all);
  const Table left = m.events();
  EXPECT_EQ(static_cast<int64_t>(left.rows.size()), m.found());
  for (const auto& row : left.rows) EXPECT_TRUE(in_module(row.cells[2].text, one)) << row.cells[2].text;
  for (const auto& row : m.modules().rows) EXPECT_TRUE(in_module(row.selection.name, one));
  m.set_step(small_links());
  EXPECT_EQ(static_cast<int64_t>(m.events().rows.size()), m.found()) << "another step is looked at alike";
}

TEST(Timeline, TablesAddUp) {
  TimelineModel m;
  m.set_step(small_links());
  Table t = m.operators();
  EXPECT_EQ(t.rows.front().cells[0].text, "conv2d backward");  // the longest first
  double ns = 0, calls = 0;
  for (const auto& row : t.rows) calls += row.cells[1].key, ns += row.cells[2].key;
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(ns, 891'000);
  EXPECT_EQ(m.events().rows.size(), 10u);
  for (const auto& row : m.modules().rows)
    if (row.cells[0].text == "features.0") {
      EXPECT_EQ(row.cells[1].key, 240'000);
    }
}

TEST(Timeline, StaysWithinItsBudgetAndSaysWhatItMerged) {
  auto r = small_step();
  std::vector<Tick> ticks;
  for (int i = 0; i < 200'000; ++i)
    ticks.push_back(
        {i * 5, 4, {static_cast<uint32_t>(1 + i % 10), 0, Phase::data, Category::other}, intern_name("fetch"), 2, 0});
  r->timeline = tracing::own_trace(ticks, 0, {}, r->run);
  TimelineModel m;
  m.set_step(Links(r));
  const Scene& s = m.frame(kSize);
  EXPECT_LE(s.count(Scene::Kind::rect), 5000u);
  EXPECT_LE(s.count(Scene::Kind::text), 1000u);
  EXPECT_GE(m.merged(), 199'000);
}

TEST(Memory, LiveBytesAreExactAtEveryMoment) {
  MemoryModel m;
  m.set_step(small_links());
  EXPECT_EQ(m.live_at(0).total, 18000);
  EXPECT_EQ(m.live_at(260'000).total, 20048);
  EXPECT_EQ(m.live_at(450'000).total, 25168);
  EXPECT_EQ(m.peak_bytes(), 25168);
  EXPECT_EQ(m.peak_time(), 420'000);
  EXPECT_EQ(m.live_at(510'000).by[int(Category::activation)], 1024);
  EXPECT_EQ(m.live_at(999'999).total, 18000 + 5120 + 864);
  m.set_cursor(450'000);
  Table t = m.live_table();
  ASSERT_EQ(t.rows.size(), 5u);
  EXPECT_EQ(t.rows[0].cells[1].key, 12000);
  double sum = 0;
  for (const auto& row : t.rows) sum += row.cells[1].key;
  EXPECT_EQ(sum, 25168);
}

TEST(Memory, APeakNarrowerThanAPixelIsStillSeen) {
  auto r = small_step();
  auto spike = [&](int64_t t, int64_t bytes) {
    tracing::AllocEvent a;
    a.time_ns = t;
    a.block = 99;
    a.bytes = bytes;
    a.origin.category = Category::workspace;
    r->allocs.push_back(a);
  };
  spike(600'000, 1'000'000);
  spike(600'010, -1'000'000);
  std::stable_sort(r->allocs.begin(), r->allocs.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  MemoryModel m;
  m.set_step(Links(r));
  const Scene& s = m.frame(kSize);
  float tallest = 0;
  for (const auto& p : s.prims())
    if (p.kind == Scene::Kind::rect && p.fill == Ink::memory_workspace && p.box.h > 20)
      tallest = std::max(tallest, p.box.h);
  EXPECT_GT(tallest, 150) << s.dump();
}

TEST(Memory, FollowsTheSelectionAndSelectsBlocks) {
  MemoryModel m;
  m.set_step(small_links());
  m.set_selection(Selection::op(7));
  EXPECT_EQ(m.cursor(), 520'000);
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  click(m, center_of(m.frame(kSize), {MemoryModel::block, 5}));
  EXPECT_TRUE(chosen.same(Selection::alloc(5)));
  EXPECT_TRUE(m.frame(kSize).overlaps().empty()) << m.last().overlaps().front();
}

TEST(Autograd, RowsRunFromTheLossWithLeavesBesideTheirNode) {
  AutogradModel m;
  m.set_step(small_links());
  EXPECT_EQ(m.rows(), 5u);
  EXPECT_EQ(m.saved_bytes(), 80 + 6144 + 1024 + 1248);
  Table t = m.table();
  std::vector<std::string> names;
  for (const auto& row : t.rows) names.push_back(row.cells[0].text);
  EXPECT_EQ(names,
            (std::vector<std::string>{"cross_entropy backward", "linear backward", "head.weight", "view backward",
                                      "relu backward", "conv2d backward", "features.0.weight"}));
  const Scene& s = m.frame({1100, 480});
  EXPECT_TRUE(shows(s, "6.00 KiB")) << s.dump();
  EXPECT_TRUE(shows(s, "‖g‖ 0.1250"));
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
}

TEST(Autograd, SelectsNodesFoldsModulesAndFollowsOps) {
  AutogradModel m;
  m.set_step(small_links());
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  const Scene& s = m.frame({1100, 480});
  click(m, center_of(s, {AutogradModel::leaf, 5}));
  EXPECT_TRUE(chosen.same(Selection::grad_node(5)));
  m.set_selection(Selection::op(9));
  EXPECT_EQ(m.selected(), 4);
  m.toggle("features.0");
  EXPECT_EQ(m.rows(), 4u);
  m.toggle("features.0");
  EXPECT_EQ(m.rows(), 5u);
}

TEST(Autograd, AFoldedModuleSaysItsOpsAndItsLargestGradient) {
  auto r = small_step();
  std::vector<std::string> names;
  for (auto& g : r->grad_nodes) {
    if (g.leaf || module_path(g.module) != "features.0") continue;
    g.grad_norm = names.empty() ? 0.75 : 0.5;
    names.push_back(g.name);
  }
  ASSERT_EQ(names.size(), 2u) << "the step has two nodes of that module";
  AutogradModel m;
  m.set_step(Links(r));
  m.toggle("features.0");
  const Scene& s = m.frame({1100, 480});
  EXPECT_TRUE(shows(s, "▸ " + names[0] + ", " + names[1]) || shows(s, "▸ " + names[1] + ", " + names[0])) << s.dump();
  EXPECT_TRUE(shows(s, "0.7500")) << s.dump();
  EXPECT_FALSE(shows(s, "1 nodes")) << s.dump();
}

TEST(Autograd, ABranchGetsItsOwnLane) {
  auto r = small_step();
  r->grad_nodes[0].next.push_back({3, 0});  // a residual connection from the loss to relu
  AutogradModel m;
  m.set_step(Links(r));
  m.frame({1100, 480});
  bool second = false;  // a dot or line further right than the first lane
  for (const auto& p : m.last().prims())
    if (p.kind == Scene::Kind::line && !p.closed)
      for (uint32_t i = 0; i < p.count; ++i) second |= std::abs(m.last().points()[p.first + i].x - 36) < 0.5f;
  EXPECT_TRUE(second) << m.last().dump();
}

TEST(Tensor, ShowsValuesStatisticsAndTheirStorage) {
  TensorModel m;
  int asked = -1;
  m.on_need_stats = [&](int t) { asked = t; };
  m.set_step(small_links());
  m.show(6);  // linear output, 2 x 10: -5, -4.5, ...
  EXPECT_EQ(asked, 6);
  m.set_stats(6, tensor_stats(m.record()->value));
  m.set_focus(1, 2);
  EXPECT_EQ(m.focus_position(), 12);
  const Scene& s = m.frame({1100, 600});
  for (const char* text :
       {"size [2, 10] · stride [10, 1] · offset 0", "[1, 2] = 1", "contiguous", "elements", "Storage #6"})
    EXPECT_TRUE(shows(s, text)) << text << "\n" << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
}

TEST(Tensor, AxesSlicesAndStorageCellsAgree) {
  TensorModel m;
  m.set_step(small_links());
  m.show(1);  // features.0.weight [8, 3, 3, 3]
  m.set_index(0, 5);
  m.set_index(1, 2);
  m.set_focus(1, 1);
  EXPECT_EQ(m.focus(), (Dims{5, 2, 1, 1}));
  EXPECT_EQ(m.focus_position(), 5 * 27 + 2 * 9 + 3 + 1);
  m.set_axes(0, 1);  // out channels as rows, in channels as columns
  m.set_focus(7, 2);
  EXPECT_EQ(m.focus(), (Dims{7, 2, 0, 0}));
  // A click on the storage cell of another element of the slice moves the focus there.
  m.set_focus(0, 0);
  click(m, center_of(m.frame({1100, 600}), {TensorModel::storage_cell, 9}));
  EXPECT_EQ(m.focus(), (Dims{0, 1, 0, 0}));
}

TEST(Tensor, AliasesAreNamedAndMissingValuesSaidSo) {
  TensorModel m;
  m.set_step(small_links());
  m.show(3);
  const Scene& s = m.frame({1100, 600});
  EXPECT_TRUE(shows(s, "1 other tensor looks here")) << s.dump();
  EXPECT_TRUE(shows(s, "not kept"));
}

TEST(Memory, NothingIsDrawnOverAnythingOnALowCanvas) {
  MemoryModel memory;
  TimelineModel timeline;
  memory.set_step(small_links());
  timeline.set_step(small_links());
  for (float w : {160.f, 300.f, 640.f, 1100.f})
    for (float h : {80.f, 100.f, 120.f, 150.f, 200.f, 300.f, 600.f})
      for (CanvasModel* m : {static_cast<CanvasModel*>(&memory), static_cast<CanvasModel*>(&timeline)}) {
        const Scene& s = m->frame({w, h});
        EXPECT_TRUE(s.overlaps().empty()) << w << " x " << h << ": " << s.overlaps().front();
      }
}

TEST(Tensor, NothingIsDrawnOverAnythingOnACanvasOfAnySize) {
  TensorModel m;
  m.set_step(small_links());
  for (int t : {1, 3, 6})
    for (bool heat : {false, true})
      for (float w : {0.f, 60.f, 160.f, 300.f, 460.f, 640.f, 1100.f})
        for (float h : {0.f, 60.f, 100.f, 130.f, 160.f, 200.f, 260.f, 320.f, 600.f}) {
          m.show(t);
          m.set_heat(heat);
          if (m.has_values()) m.set_stats(t, tensor_stats(m.record()->value));
          const Scene& s = m.frame({w, h});
          EXPECT_TRUE(s.overlaps().empty()) << t << " at " << w << " x " << h << ": " << s.overlaps().front();
        }
  // A low canvas shows cells before anything else.
  m.show(6);
  m.set_heat(false);
  EXPECT_TRUE(shows(m.frame({460, 180}), "-5"));
  EXPECT_FALSE(shows(m.frame({460, 180}), "Storage"));
  EXPECT_TRUE(shows(m.frame({460, 320}), "Storage"));
}

TEST(Tensor, TheListGroupsByModuleAndNamesWhatDiffers) {
  auto r = small_step();
  for (const char* name : {"features.0.weight/momentum", "head.weight/momentum"}) {
    tracing::TensorRecord t;
    t.name = name;
    t.layout = r->tensors[1].layout;
    t.category = Category::optimizer;
    r->tensors.push_back(t);
  }
  TensorModel m;
  m.set_step(Links(r));
  const Table t = m.list();
  ASSERT_EQ(t.rows.size(), r->tensors.size());
  std::vector<std::string> groups;
  std::set<std::string> shown;
  for (const auto& row : t.rows) {
    if (groups.empty() || groups.back() != row.cells[0].text) groups.push_back(row.cells[0].text);
    EXPECT_TRUE(shown.insert(row.cells[0].text + "|" + row.cells[1].text).second) << row.cells[1].text;
    // A row is still the tensor that it names.
    EXPECT_TRUE(row.cells[1].tip.str().starts_with(r->tensors[row.selection.id].name));
  }
  EXPECT_EQ(std::set<std::string>(groups.begin(), groups.end()).size(), groups.size())
      << "a module stands in one place";
  for (const char* row :
       {"features.0|weight", "features.0|weight/momentum", "features.0|grad of weight", "head|weight/momentum"})
    EXPECT_TRUE(shown.count(row)) << row;
}

TEST(Tensor, StatisticsAreExactAndCountWhatIsNotFinite) {
  Tensor t = empty({3, 4});
  float* p = t.data<float>();
  for (int i = 0; i < 12; ++i) p[i] = static_cast<float>(i) - 3;
  p[0] = std::nanf("");
  p[1] = INFINITY;
  TensorStats s = tensor_stats(t, 10);
  EXPECT_EQ(s.count, 12);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.inf, 1);
  EXPECT_EQ(s.zeros, 1);
  EXPECT_EQ(s.min, -1);
  EXPECT_EQ(s.max, 8);
  EXPECT_DOUBLE_EQ(s.mean, 3.5);
  EXPECT_NEAR(s.std, 3.0276503540974917, 1e-12);
  int64_t sum = 0;
  for (int64_t b : s.bins) sum += b;
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(tensor_stats(t, 10, [](int64_t, int64_t) { return false; }).count, 0);
}

TEST(Nan, TellsTheStoryOfTheFirstBadValue) {
  auto r = small_step();
  auto n = std::make_shared<tracing::NanOrigin>();
  n->step = 120;
  n->seq = 4;
  n->op = "linear";
  n->module = "head";
  n->phase = "forward";
  n->index = {1, 7};
  n->value = std::nan("");
  n->bad = 2;
  n->total = 20;
  n->operands.push_back({"view #3 output 0", "f32 [2, 128]", {1, 0}, INFINITY, -1, 2, 0.5, 1});
  n->operands.push_back({"head.weight", "f32 [10, 128]", {7, 0}, 0.25, -1, 1, 0, 0});
  n->spread = {5, 6, 7};
  n->sentence = "linear #4 in head made nan at [1, 7]: inf times 0.";
  r->nan = n;
  NanModel m;
  EXPECT_EQ(m.state(), NanModel::State::unknown);
  m.set_found(Links(r));
  const Scene& s = m.frame({1000, 560});
  for (const char* text : {"linear made the first nan", "step 120 · forward · head · element [1, 7]", "head.weight",
                           "[1, 7] = nan", "2 of 20 not finite (10 %)", "4 of the 10 ops"})
    EXPECT_TRUE(shows(s, text)) << text << "\n" << s.dump();
  Selection chosen;
  m.on_select = [&](const Selection& sel) { chosen = sel; };
  Point p = center_of(s, {NanModel::operand, 1});
  m.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}});
  EXPECT_TRUE(chosen.same(Selection::tensor(5)));
  EXPECT_EQ(m.table().rows.size(), 4u);
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  // By keys: what went in, the ops it spread to, the first one.
  m.on_select = [&](const Selection& sel) {
    chosen = sel;
    m.set_selection(sel);
  };
  m.key({"Up", "", {}});
  EXPECT_NE(m.summary().find("view #3 output 0, 1 not finite"), std::string::npos) << m.summary();
  m.key({"Return", "", {}});
  EXPECT_TRUE(chosen.same(Selection::op(4)));
  m.key({"Right", "", {}});
  EXPECT_TRUE(chosen.same(Selection::op(5)));
  m.key({"Left", "", {}});
  m.key({"Left", "", {}});
  EXPECT_TRUE(chosen.same(Selection::op(4)));
  // A low canvas scrolls to its end.
  const Scene& low = m.frame({700, 200});
  EXPECT_FALSE(shows(low, "4 of the 10 ops") && center_of(low, {NanModel::op, 10}).y < 200);
  for (int i = 0; i < 10; ++i) {
    m.key({"PgDown", "", {}});
    m.frame({700, 200});
  }
  EXPECT_LT(center_of(m.last(), {NanModel::op, 10}).y, 200);
}

TEST(Details, AnOpLinksToEverySideOfIt) {
  Links links = small_links();
  Details d = details_of(Selection::op(4), {&links, nullptr, nullptr});
  EXPECT_EQ(d.title, "linear #4");
  std::string all;
  int linked = 0;
  for (const auto& section : d.sections)
    for (const auto& row : section.rows) {
      all += row.name + "=" + row.value + "\n";
      linked += static_cast<bool>(row.link);
    }
  for (const char* want : {"module=head", "time=60.0 µs · 6.0 % of step", "reads=head.weight\n=f32 [10, 128]",
                           "backward op=linear backward #7", "autograd=linear backward", "saved=6.00 KiB"})
    EXPECT_NE(all.find(want), std::string::npos) << want << "\n" << all;
  EXPECT_GE(linked, 6);
  EXPECT_TRUE(details_of(Selection::op(99), {&links, nullptr, nullptr}).title.empty());
}

}  // namespace
}  // namespace tenon::views
