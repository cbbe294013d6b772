// The plan's model: real plans, driven by intents and judged by the scenes they draw; no window.
#include "views/plan/plan_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/views/scenes.h"
#include "tests/views/step_fixture.h"
#include "tracing/record/step_record.h"
#include "tracing/record/step_recorder.h"

namespace tenon::views {
namespace {

constexpr Size kPlanPicture{1000, 420};

/// A plan of a template, and a step of the same session.
struct RealPlan {
  std::shared_ptr<tracing::SeenPlan> plan;
  Links links;
};
const RealPlan& real_plan(const std::string& name) {
  static std::map<std::string, RealPlan> made;
  RealPlan& p = made[name];
  if (p.plan) return p;
  const Template& t = find_template(name);
  Recipe r = t.recipe;
  r.set("data.batch_size", "8");
  if (r.fallback("data.workers") != r.at("data.workers")) r.set("data.workers", "0");
  TrainingSession s(t.model, r);
  p.plan = std::make_shared<tracing::SeenPlan>(tracing::see_plan(s));
  p.links = Links(tracing::record_step(s, "run"));
  return p;
}

class PlanPicture : public ::testing::Test {
 protected:
  void SetUp() override {
    m.on_select = [this](const Selection& s) { chosen = s; };
    m.set_plan(real_plan("spirals").plan);
    ASSERT_TRUE(m.planned());
  }
  const tracing::SeenPlan& plan() { return *m.plan(); }
  void click(Point at) {
    m.pointer({PointerEvent::Type::press, Button::left, at.x, at.y, {}});
    m.pointer({PointerEvent::Type::release, Button::left, at.x, at.y, {}});
  }
  PlanModel m;
  Selection chosen;
};

TEST_F(PlanPicture, values_that_are_needed_at_once_lie_apart) {
  for (const char* name : {"spirals", "fashion-cnn"}) {
    SCOPED_TRACE(name);
    m.set_plan(real_plan(name).plan);
    ASSERT_TRUE(m.planned());
    std::vector<Box> boxes;
    for (const Scene::Target& t : m.frame(kPlanPicture).targets())
      if (t.hit.kind == PlanModel::value) boxes.push_back(t.box);
    ASSERT_GT(boxes.size(), 5u);
    for (size_t i = 0; i < boxes.size(); ++i)
      for (size_t k = 0; k < i; ++k) {
        const Box inner{boxes[i].x + 0.01f, boxes[i].y + 0.01f, boxes[i].w - 0.02f, boxes[i].h - 0.02f};
        EXPECT_FALSE(inner.w > 0 && inner.h > 0 && inner.overlaps(boxes[k])) << i << " over " << k;
      }
  }
}

TEST_F(PlanPicture, every_kernel_is_hit_where_it_is_drawn_and_selects_its_op) {
  m.set_step(real_plan("spirals").links);
  const auto& ops = real_plan("spirals").links.record()->ops;
  m.frame(kPlanPicture);
  for (size_t i = 0; i < plan().kernels.size(); ++i) {
    const Point at = center_of(m.last(), {PlanModel::kernel, static_cast<int64_t>(i)});
    ASSERT_GT(at.x, 0) << i;
    chosen = {};
    click(at);
    ASSERT_EQ(chosen.kind, Selection::Kind::op) << i;
    EXPECT_TRUE(chosen.same(m.selection_of(i)));
    EXPECT_EQ(ops[static_cast<size_t>(chosen.id) - 1].name, plan().kernels[i].row.op);
    m.set_selection(chosen);
    EXPECT_EQ(m.marked(), std::vector<size_t>{i});
    m.frame(kPlanPicture);
  }
  size_t values = 0;
  const auto targets = m.last().targets();
  for (const Scene::Target& t : targets) {
    if (t.hit.kind != PlanModel::value || t.box.w < 1 || t.box.h < 1) continue;
    ++values;
    click({t.box.x + t.box.w / 2, t.box.y + t.box.h / 2});
    EXPECT_TRUE(chosen.same(m.selection_of(static_cast<size_t>(t.hit.id))));
  }
  EXPECT_GT(values, 5u);
}

TEST_F(PlanPicture, kernels_are_the_ops_of_a_recorded_step_by_their_numbers) {
  m.set_plan(real_plan("byte-gpt").plan);
  m.set_step(real_plan("byte-gpt").links);
  const auto& ops = real_plan("byte-gpt").links.record()->ops;
  size_t found = 0;
  for (size_t i = 0; i < plan().kernels.size(); ++i) {
    const Selection s = m.selection_of(i);
    if (s.kind != Selection::Kind::op) continue;
    ++found;
    EXPECT_EQ(s.id, plan().kernels[i].row.seq);
    EXPECT_EQ(module_path(ops[static_cast<size_t>(s.id) - 1].origin.module), plan().kernels[i].row.module);
  }
  EXPECT_EQ(found, plan().kernels.size());
}

TEST_F(PlanPicture, before_a_step_is_loaded_a_kernel_selects_its_module_and_keys_still_go_through_all) {
  m.frame(kPlanPicture);
  for (size_t i = 0; i < plan().kernels.size(); ++i) {
    chosen = {};
    EXPECT_TRUE(m.key({"Right", {}, {}}));
    EXPECT_EQ(m.chosen(), static_cast<int>(i));
    const std::string& module = plan().kernels[i].row.module;
    EXPECT_TRUE(chosen.same(module.empty() ? Selection() : Selection::module(module))) << i;
    if (chosen) m.set_selection(chosen);
    EXPECT_EQ(m.chosen(), static_cast<int>(i)) << "of its module, this one was meant";
  }
}

TEST_F(PlanPicture, texts_do_not_lie_over_one_another_at_any_size) {
  for (const char* name : {"spirals", "fashion-cnn"}) {
    m.set_plan(real_plan(name).plan);
    for (const float w : {1.f, 160.f, 300.f, 500.f, 1000.f, 2400.f})
      for (const float h : {0.f, 60.f, 100.f, 180.f, 420.f, 900.f}) {
        const Scene& any = m.frame({w, h});
        EXPECT_TRUE(any.overlaps().empty()) << name << " " << w << " x " << h << ": " << any.overlaps().front();
      }
  }
  const Scene& s = m.frame(kPlanPicture);
  for (const char* part : {"forward", "backward", "kernels", "peak ", "#"}) EXPECT_TRUE(shows(s, part)) << part;
}

TEST_F(PlanPicture, what_the_window_selects_is_marked_and_brought_into_sight) {
  m.set_step(real_plan("spirals").links);
  const size_t last = plan().kernels.size() - 1;
  m.frame(kPlanPicture);
  for (int i = 0; i < 8; ++i) m.key({"W", {}, {}});
  m.set_selection(Selection::op(m.selection_of(last).id, "elsewhere"));
  EXPECT_EQ(m.marked(), std::vector<size_t>{last});
  EXPECT_EQ(m.chosen(), static_cast<int>(last));
  EXPECT_GE(m.kernels_axis().hi, static_cast<double>(last + 1));
  m.set_selection(Selection::op(99999, "elsewhere"));
  EXPECT_TRUE(m.marked().empty());
  EXPECT_EQ(m.chosen(), -1);
  const std::string module = plan().kernels.front().row.module;
  ASSERT_FALSE(module.empty());
  m.set_selection(Selection::module(module, "elsewhere"));
  EXPECT_GT(m.marked().size(), 1u) << "forward and backward of " << module;
  for (const size_t k : m.marked()) EXPECT_EQ(plan().kernels[k].row.module, module);
}

TEST_F(PlanPicture, a_step_that_is_loaded_tells_what_belongs_together) {
  m.set_step(real_plan("spirals").links);
  const auto& record = *real_plan("spirals").links.record();
  // A tensor selects the kernel that made it.
  const size_t maker = 2;
  const int64_t op = m.selection_of(maker).id;
  const auto made = std::find_if(record.tensors.begin(), record.tensors.end(),
                                 [&](const auto& t) { return static_cast<int64_t>(t.producer) == op; });
  ASSERT_NE(made, record.tensors.end());
  m.set_selection(Selection::tensor(made - record.tensors.begin(), "elsewhere"));
  EXPECT_EQ(m.marked(), std::vector<size_t>{maker});
  // A step of another model has other ops.
  m.set_step(testing::small_links());
  EXPECT_EQ(m.selection_of(0).kind, Selection::Kind::module);
  m.set_selection(Selection::op(plan().kernels[0].row.seq, "elsewhere"));
  EXPECT_TRUE(m.marked().empty());
}

TEST_F(PlanPicture, keys_go_through_the_kernels_in_the_order_of_the_table) {
  m.set_step(real_plan("spirals").links);
  const Table t = m.table();
  ASSERT_EQ(t.rows.size(), plan().kernels.size());
  m.frame(kPlanPicture);
  for (size_t i : {0u, 1u, 2u}) {
    EXPECT_TRUE(m.key({"Right", {}, {}}));
    EXPECT_TRUE(chosen.same(m.selection_of(i))) << i;
    m.set_selection(chosen);
    EXPECT_NE(m.summary().find(plan().kernels[i].row.op), std::string::npos) << m.summary();
  }
  m.key({"Left", {}, {}});
  EXPECT_TRUE(chosen.same(m.selection_of(1)));
  m.key({"End", {}, {}});
  EXPECT_TRUE(chosen.same(m.selection_of(t.rows.size() - 1)));
  m.key({"P", {}, {}});
  EXPECT_TRUE(chosen.same(m.selection_of(static_cast<size_t>(plan().peak))));
  m.key({"Home", {}, {}});
  EXPECT_TRUE(chosen.same(m.selection_of(0)));
  m.choose_row(t.rows[3].selection);
  EXPECT_TRUE(chosen.same(m.selection_of(3)));
  EXPECT_EQ(m.chosen(), 3);
  EXPECT_FALSE(m.key({"Q", {}, {}}));
}

TEST_F(PlanPicture, it_is_zoomed_along_the_kernels_and_along_the_addresses) {
  m.frame(kPlanPicture);
  const double kernels = m.kernels_axis().span(), bytes = m.bytes_axis().span();
  EXPECT_TRUE(m.wheel({500, 200, 0, 2, {}}));
  EXPECT_LT(m.kernels_axis().span(), kernels);
  EXPECT_EQ(m.bytes_axis().span(), bytes);
  EXPECT_TRUE(m.wheel({500, 100, 0, 2, {false, true, false}}));
  EXPECT_LT(m.bytes_axis().span(), bytes);
  EXPECT_GT(m.bytes_axis().lo, 0) << "what was under the pointer, far up, stays";
  // Dragging moves what is seen, and is no click.
  chosen = {};
  const double lo = m.kernels_axis().lo, low = m.bytes_axis().lo;
  m.pointer({PointerEvent::Type::press, Button::left, 500, 200, {}});
  EXPECT_TRUE(m.pointer({PointerEvent::Type::move, Button::left, 440, 180, {}}));
  m.pointer({PointerEvent::Type::release, Button::left, 440, 180, {}});
  EXPECT_GT(m.kernels_axis().lo, lo);
  EXPECT_LT(m.bytes_axis().lo, low) << "pulled up, lower addresses come into sight";
  EXPECT_FALSE(chosen);
  EXPECT_TRUE(m.pointer({PointerEvent::Type::double_click, Button::left, 500, 200, {}}));
  EXPECT_TRUE(m.kernels_axis().fitted() && m.bytes_axis().fitted());
  EXPECT_TRUE(m.key({"W", {}, {true, false, false}}));
  EXPECT_LT(m.bytes_axis().span(), bytes);
  EXPECT_TRUE(m.kernels_axis().fitted());
  EXPECT_TRUE(m.key({"F", {}, {}}));
  EXPECT_TRUE(m.bytes_axis().fitted());
}

TEST_F(PlanPicture, a_kernel_that_runs_again_says_so_and_is_no_other_op) {
  const RealPlan& real = real_plan("byte-gpt");
  const Template& t = find_template("byte-gpt");
  Recipe r = t.recipe;
  r.set("data.batch_size", "8");
  r.set("recompute", "1");
  TrainingSession s(t.model, r);
  const auto plan = std::make_shared<tracing::SeenPlan>(tracing::see_plan(s));
  m.set_plan(plan);
  m.set_step(real.links);
  const auto again =
      std::find_if(plan->kernels.begin(), plan->kernels.end(), [](const auto& k) { return k.row.again; });
  ASSERT_NE(again, plan->kernels.end());
  const auto index = static_cast<size_t>(again - plan->kernels.begin());
  const auto first = static_cast<size_t>(
      std::find_if(plan->kernels.begin(), again, [&](const auto& k) { return k.row.seq == again->row.seq; }) -
      plan->kernels.begin());
  ASSERT_LT(first, index);
  m.frame(kPlanPicture);
  const Point at = center_of(m.last(), {PlanModel::kernel, static_cast<int64_t>(index)});
  const std::string tip = m.last().tip_at(at.x, at.y);
  EXPECT_NE(tip.find(", again"), std::string::npos) << tip;
  EXPECT_NE(tip.find("It ran before in the step"), std::string::npos) << tip;
  // An op that is picked elsewhere is the kernel that ran in its phase, and the second time leads to the layer.
  const Selection op = m.selection_of(first);
  ASSERT_EQ(op.kind, Selection::Kind::op);
  EXPECT_EQ(m.selection_of(index).kind, Selection::Kind::module);
  m.set_selection(op);
  EXPECT_EQ(m.marked(), std::vector<size_t>{first});
}

TEST_F(PlanPicture, the_pointer_tells_what_a_kernel_is_and_how_long_its_value_is_needed) {
  m.frame(kPlanPicture);
  const auto& kernels = plan().kernels;
  const auto lives = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) {
    return k.arena_bytes > 0 && k.row.last < static_cast<int>(kernels.size()) && k.row.last > &k - kernels.data();
  });
  ASSERT_NE(lives, kernels.end());
  const Point at = center_of(m.last(), {PlanModel::kernel, lives - kernels.begin()});
  EXPECT_TRUE(m.pointer({PointerEvent::Type::move, Button::none, at.x, at.y, {}}));
  EXPECT_FALSE(m.pointer({PointerEvent::Type::move, Button::none, at.x, at.y, {}})) << "the same kernel";
  const std::string tip = m.frame(kPlanPicture).tip_at(at.x, at.y);
  for (const std::string& part :
       {std::string(lives->row.op) + " #", lives->row.module, lives->row.results, std::string("In the arena at "),
        "needed until " + std::string(kernels[static_cast<size_t>(lives->row.last)].row.op) + " #"})
    EXPECT_NE(tip.find(part), std::string::npos) << part << " in:\n" << tip;
  EXPECT_TRUE(m.pointer({PointerEvent::Type::leave, Button::none, 0, 0, {}}));
}

TEST_F(PlanPicture, chains_have_a_column_and_are_told) {
  const auto has_chain = [&] {
    const Table t = m.table();
    return std::any_of(t.columns.begin(), t.columns.end(), [](const auto& c) { return c.title == "Chain"; });
  };
  EXPECT_FALSE(has_chain()) << "a column that says nothing is none";
  auto chained = std::make_shared<tracing::SeenPlan>(plan());
  chained->kernels[1].row.chain = chained->kernels[2].row.chain = 4;
  chained->kernels[3].row.why = "its rows are needed whole";
  m.set_plan(chained);
  ASSERT_TRUE(has_chain());
  EXPECT_NE(m.told_of(1).find("Chain 4"), std::string::npos) << m.told_of(1);
  EXPECT_EQ(m.told_of(0).find("Chain"), std::string::npos);
  EXPECT_NE(m.told_of(3).find("its rows are needed whole"), std::string::npos);
  EXPECT_EQ(m.table().rows[1].cells.back().text, "4");
  EXPECT_EQ(m.table().rows[3].cells.back().tip.str(), "its rows are needed whole");
}

TEST_F(PlanPicture, without_a_plan_it_says_why_and_draws_nothing) {
  auto none = std::make_shared<tracing::SeenPlan>();
  none->told = {"the optimizer searches along a line"};
  m.set_plan(none);
  EXPECT_FALSE(m.planned());
  EXPECT_TRUE(m.frame(kPlanPicture).prims().empty());
  EXPECT_NE(m.summary().find("the optimizer searches along a line"), std::string::npos) << m.summary();
  EXPECT_TRUE(m.table().rows.empty());
  EXPECT_FALSE(m.key({"Right", {}, {}}));
  m.set_plan(nullptr);
  EXPECT_TRUE(m.frame(kPlanPicture).prims().empty());
  EXPECT_FALSE(m.summary().empty());
  EXPECT_EQ(m.summary().find("searches"), std::string::npos);
  EXPECT_FALSE(m.wheel({500, 200, 0, 1, {}}));
}

}  // namespace
}  // namespace tenon::views
