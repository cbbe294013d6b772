// The roofline's model, driven by intents and judged by the scenes it draws; no window.
#include "views/roofline/roofline_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/views/scenes.h"
#include "tests/views/step_fixture.h"

namespace tenon::views {
namespace {

constexpr Size kRoofPicture{1000, 420};
/// 40 FLOP and 4 bytes a nanosecond.
const kernels::Ceilings kForty{"p", 2, 40e9, 4e9};

/// The small step, whose ops compute 10 FLOP a nanosecond, each with another number of bytes; relu moves bytes alone.
Links roofed_links() {
  const auto step = testing::small_step();
  for (auto& op : step->ops) {
    op.bytes = op.flops / (op.name.starts_with("conv2d") ? 50 : op.name == "linear" ? 8 : 0.5 * op.seq);
    if (op.name == "relu") op.flops = 0;
  }
  return Links(step);
}
/// The row that holds a call.
int64_t row_with(const RooflineModel& m, uint32_t seq) {
  const auto& rows = m.roofline()->rows;
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::count(rows[i].calls.begin(), rows[i].calls.end(), seq)) return static_cast<int64_t>(i);
  return -1;
}

class RooflinePicture : public ::testing::Test {
 protected:
  void SetUp() override {
    m.on_select = [this](const Selection& s) { chosen = s; };
    m.set_step(roofed_links());
    m.set_ceilings(kForty);
  }
  Point dot_of(uint32_t seq) { return center_of(m.frame(kRoofPicture), {RooflineModel::dot, row_with(m, seq)}); }
  RooflineModel m;
  Selection chosen;
};

TEST_F(RooflinePicture, the_roof_has_its_figures_and_every_op_with_work_a_dot) {
  const Scene& s = m.frame(kRoofPicture);
  EXPECT_TRUE(shows(s, "40 GFLOP/s of f32 multiply-adds")) << s.dump();
  EXPECT_TRUE(shows(s, "4 GB/s copied"));
  EXPECT_TRUE(shows(s, "ridge at 10"));
  EXPECT_TRUE(shows(s, "FLOP per byte"));
  EXPECT_TRUE(shows(s, "conv2d backward"));
  for (const auto& row : m.roofline()->rows)
    EXPECT_GT(center_of(s, {RooflineModel::dot, row_with(m, row.calls.front())}).x, 0) << row.op;
  for (const float w : {1.f, 160.f, 300.f, 500.f, 1000.f, 2400.f})
    for (const float h : {0.f, 100.f, 180.f, 420.f, 900.f}) {
      const Scene& any = m.frame({w, h});
      EXPECT_TRUE(any.overlaps().empty()) << w << " x " << h << ": " << any.overlaps().front();
    }
}

TEST_F(RooflinePicture, what_is_near_the_roof_is_high_and_what_computes_much_a_byte_is_right) {
  // All compute 10 GFLOP/s: of 40 above the ridge, and of 32 below it.
  EXPECT_GT(dot_of(1).x, dot_of(4).x) << "50 FLOP per byte, and 8";
  EXPECT_NEAR(dot_of(1).y, dot_of(4).y, 1);
  EXPECT_LT(dot_of(2).x, dot_of(4).x) << "without arithmetic it stands left of all";
  EXPECT_EQ(m.roofline()->rows[static_cast<size_t>(row_with(m, 2))].flops, 0);
}

TEST_F(RooflinePicture, a_click_selects_the_longest_call_and_what_is_selected_has_a_ring) {
  const Point at = dot_of(4);
  m.pointer({PointerEvent::Type::press, Button::left, at.x, at.y, {}});
  EXPECT_TRUE(m.pointer({PointerEvent::Type::release, Button::left, at.x, at.y, {}}));
  EXPECT_TRUE(chosen.same(Selection::op(4)));
  const auto rings = [&] {
    const Scene& s = m.frame(kRoofPicture);
    return std::count_if(s.prims().begin(), s.prims().end(),
                         [](const Scene::Prim& p) { return p.kind == Scene::Kind::rect && p.stroke == Ink::accent; });
  };
  EXPECT_EQ(rings(), 0) << "the window tells of its selection";
  m.set_selection(chosen);
  EXPECT_EQ(rings(), 1);
  EXPECT_EQ(m.marked(), (std::vector<size_t>{static_cast<size_t>(row_with(m, 4))}));
  m.set_selection(Selection::module("features.0", "elsewhere"));
  EXPECT_EQ(rings(), 4) << "both convolutions and relus of the module";
  m.set_selection(Selection::op(99, "elsewhere"));
  EXPECT_EQ(rings(), 0);
}

TEST_F(RooflinePicture, the_pointer_tells_what_a_dot_is) {
  const Point at = dot_of(4);
  EXPECT_TRUE(m.pointer({PointerEvent::Type::move, Button::none, at.x, at.y, {}}));
  EXPECT_FALSE(m.pointer({PointerEvent::Type::move, Button::none, at.x, at.y, {}})) << "the same dot";
  const std::string& tip = m.frame(kRoofPicture).tip_at(at.x, at.y);
  for (const char* part : {"linear [2, 128] [10, 128]", "one call, 60.0 µs",
                           "10 of 32 GFLOP/s at 8 FLOP per byte: 31 %", "Its limit is the memory"})
    EXPECT_NE(tip.find(part), std::string::npos) << part << " in:\n" << tip;
  EXPECT_TRUE(m.pointer({PointerEvent::Type::leave, Button::none, 0, 0, {}}));
}

TEST_F(RooflinePicture, keys_go_through_the_rows_of_the_table) {
  const Table t = m.table();
  ASSERT_EQ(t.rows.size(), m.roofline()->rows.size());
  for (size_t i : {0u, 1u, 2u}) {
    EXPECT_TRUE(m.key({"Right", {}, {}}));
    EXPECT_TRUE(chosen.same(t.rows[i].selection)) << i;
    m.set_selection(chosen);
    EXPECT_NE(m.summary().find(t.rows[i].cells[0].text), std::string::npos) << m.summary();
  }
  m.key({"Left", {}, {}});
  EXPECT_TRUE(chosen.same(t.rows[1].selection));
  m.key({"End", {}, {}});
  EXPECT_TRUE(chosen.same(t.rows.back().selection));
  EXPECT_FALSE(m.key({"Q", {}, {}}));
}

TEST_F(RooflinePicture, without_a_step_or_ceilings_there_is_nothing) {
  m.set_ceilings({});
  EXPECT_FALSE(m.roofline());
  EXPECT_TRUE(m.frame(kRoofPicture).prims().empty());
  EXPECT_FALSE(m.key({"Right", {}, {}}));
  EXPECT_TRUE(m.table().rows.empty());
  m.set_ceilings(kForty);
  EXPECT_TRUE(m.roofline());
  m.set_step({});
  EXPECT_FALSE(m.roofline());
  EXPECT_FALSE(m.summary().empty());
}

}  // namespace
}  // namespace tenon::views
