// All exports of a model in fewer bits as a picture: what is drawn, and what mouse and keys choose.
#include "views/quantization/quantization_plan_model.h"

#include <gtest/gtest.h>

#include "views/quantization/quantization_table.h"

namespace tenon::views {
namespace {

using formats::Precision;
using projects::PlanPoint;
using projects::QuantizePlan;

std::shared_ptr<QuantizePlan> three_exports() {
  auto plan = std::make_shared<QuantizePlan>();
  plan->run_id = 3, plan->step = 40, plan->run = "r";
  plan->metric = "test_accuracy";
  plan->in_points = true;
  plan->f32_ms = 0.5;
  plan->points = {{Precision::f32, 0, 400'000, {"accuracy", 0.9, true}, 0, 1, true},
                  {Precision::int8_static, 0, 100'000, {"accuracy", 0.89, true}, 1, 0.5, true},
                  {Precision::int4_weights, 1, 120'000, {"accuracy", 0.85, true}, 5, 1.1, false}};
  return plan;
}

struct PlanModelTest : ::testing::Test {
  QuantizationPlanModel model;
  int exported = 0, chosen = 0;
  void SetUp() override {
    model.on_export = [this] { ++exported; };
    model.on_choose = [this] { ++chosen; };
    model.set_plan(three_exports());
    model.frame({700, 400});
  }
  /// The middle of a point's mark.
  PointerEvent at(int64_t point, PointerEvent::Type type) {
    for (const Scene::Target& t : model.last().targets())
      if (t.hit.id == point) return {type, Button::left, t.box.x + t.box.w / 2, t.box.y + t.box.h / 2, {}};
    ADD_FAILURE() << "no mark " << point;
    return {};
  }
};

TEST_F(PlanModelTest, a_mark_stands_by_its_size_and_metric_and_the_front_is_joined) {
  ASSERT_EQ(model.last().targets().size(), 3u);
  const auto box = [&](size_t i) { return model.last().targets()[i].box; };
  EXPECT_GT(box(0).x, box(2).x) << "f32 is the largest file";
  EXPECT_GT(box(2).x, box(1).x);
  EXPECT_LT(box(0).y, box(1).y) << "and the best";
  EXPECT_LT(box(1).y, box(2).y);
  EXPECT_LT(box(1).w, box(0).w) << "the fastest is the smallest";
  bool joined = false;
  for (const Scene::Prim& p : model.last().prims())
    joined = joined || (p.kind == Scene::Kind::line && p.stroke == Ink::accent && p.count == 2);
  EXPECT_TRUE(joined) << "f32 and int8-static";
  EXPECT_TRUE(model.last().overlaps().empty());
}

TEST_F(PlanModelTest, mouse_and_keys_choose_and_export) {
  EXPECT_EQ(model.chosen(), nullptr);
  EXPECT_FALSE(model.key({"Return", "", {}})) << "nothing is chosen";
  EXPECT_TRUE(model.pointer(at(2, PointerEvent::Type::press)));
  ASSERT_NE(model.chosen(), nullptr);
  EXPECT_EQ(model.chosen()->title(), "int4-weights, 1 layer in f32");
  EXPECT_TRUE(model.key({"Left", "", {}}));
  EXPECT_EQ(model.chosen()->precision, Precision::int8_static) << "the next smaller one";
  EXPECT_TRUE(model.key({"Left", "", {}}));
  EXPECT_EQ(model.chosen()->precision, Precision::int8_static) << "there is none smaller";
  EXPECT_TRUE(model.key({"Return", "", {}}));
  EXPECT_EQ(exported, 1);
  model.key({"Right", "", {}}), model.key({"Right", "", {}});
  EXPECT_EQ(model.chosen()->precision, Precision::f32);
  EXPECT_TRUE(model.pointer(at(1, PointerEvent::Type::double_click)));
  EXPECT_EQ(exported, 2);
  EXPECT_EQ(model.chosen_text(), "int8-static: test_accuracy 0.8900, 1.00 points lost, 97.7 KiB, 250 µs (2.00 x)");
  EXPECT_TRUE(model.key({"Esc", "", {}}));
  EXPECT_EQ(model.chosen(), nullptr);
}

TEST_F(PlanModelTest, what_is_chosen_stays_while_more_points_come) {
  model.choose(1);
  auto more = three_exports();
  more->points.push_back({Precision::int8_weights, 0, 105'000, {"accuracy", 0.9, true}, 0, 1, true});
  model.set_plan(more);
  ASSERT_NE(model.chosen(), nullptr);
  EXPECT_EQ(model.chosen()->precision, Precision::int8_static);
  auto other = three_exports();
  other->step = 41;
  model.set_plan(other);
  EXPECT_EQ(model.chosen(), nullptr) << "another state";
  model.set_plan(nullptr);
  model.frame({700, 400});
  EXPECT_TRUE(model.last().prims().empty());
}

TEST(PlanTable, a_row_a_point) {
  const Table t = plan_table(*three_exports());
  ASSERT_EQ(t.rows.size(), 3u);
  ASSERT_EQ(t.rows[1].cells.size(), t.columns.size());
  EXPECT_EQ(t.rows[1].cells[1].text, "*");
  EXPECT_EQ(t.rows[2].cells[1].text, "");
  EXPECT_EQ(t.rows[1].cells[3].text, "1.00 points lost");
}

}  // namespace
}  // namespace tenon::views
