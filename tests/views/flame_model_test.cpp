// The flame graph, driven by intents and judged by the scenes it draws; no window.
#include "views/shared/flame_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/views/scenes.h"

namespace tenon::views {
namespace {

using tracing::Flame;

constexpr Size kPage{800, 400};

/// train holds forward (60) and backward (30); forward holds conv (40, 10 of it pad) and relu (15).
FlameModel::Shared made_flame() {
  auto f = std::make_shared<Flame>(tracing::Unit::nanoseconds);
  auto add = [&](uint32_t parent, const char* name, int64_t self, uint32_t longest) {
    const uint32_t n = f->child(parent, name);
    f->at(n).self += self;
    ++f->at(n).count;
    f->at(n).longest = longest;
    return n;
  };
  const uint32_t train = add(0, "train", 10, 0), forward = add(train, "forward", 5, 1);
  const uint32_t conv = add(forward, "conv", 30, 2);
  add(conv, "pad", 10, 3);
  add(forward, "relu", 15, 4);
  const uint32_t backward = add(train, "backward", 20, 5);
  add(backward, "conv", 10, 6);
  f->finish();
  return f;
}

struct Drawn {
  FlameModel model;
  std::vector<Selection> chosen;
  Drawn() {
    model.on_select = [this](const Selection& s) { chosen.push_back(s); };
    model.set_flame(made_flame(), 4);
    model.frame(kPage);
  }
  uint32_t named(const std::string& name, const std::string& above) {
    const Flame& f = *model.flame();
    for (uint32_t i = 1; i < f.nodes().size(); ++i)
      if (f.text(i) == name && f.text(f.nodes()[i].parent) == above) return i;
    return 0;
  }
  const Scene::Target* target(uint32_t node) {
    for (const auto& t : model.last().targets())
      if (t.hit == Hit{FlameModel::box, node}) return &t;
    return nullptr;
  }
};

TEST(FlameModel, a_box_is_as_wide_as_its_share_below_its_caller) {
  Drawn d;
  const auto* all = d.target(0);
  const auto* forward = d.target(d.named("forward", "train"));
  const auto* conv = d.target(d.named("conv", "forward"));
  ASSERT_TRUE(all && forward && conv);
  EXPECT_NEAR(forward->box.w, all->box.w * 60 / 100, 2);
  EXPECT_NEAR(conv->box.w, all->box.w * 40 / 100, 2);
  EXPECT_EQ(conv->box.x, forward->box.x) << "the largest stands first";
  EXPECT_GT(conv->box.y, forward->box.y);
  EXPECT_TRUE(shows(d.model.last(), "forward"));
  EXPECT_TRUE(d.model.last().overlaps().empty()) << d.model.last().overlaps().front();
  const std::string& tip = d.model.last().tip_at(forward->box.x + 2, forward->box.y + 2);
  EXPECT_NE(tip.find("60 ns, 60 % of all"), std::string::npos) << tip;
  EXPECT_NE(tip.find("5 ns of it in itself"), std::string::npos) << tip;
}

TEST(FlameModel, a_click_chooses_and_a_double_click_fills_the_width) {
  Drawn d;
  const uint32_t forward = d.named("forward", "train");
  const Point at = center_of(d.model.last(), {FlameModel::box, forward});
  EXPECT_TRUE(d.model.pointer({PointerEvent::Type::press, Button::left, at.x, at.y, {}}));
  ASSERT_EQ(d.chosen.size(), 1u);
  EXPECT_TRUE(d.chosen[0].same(Selection::event(4, 1)));
  EXPECT_TRUE(d.model.pointer({PointerEvent::Type::double_click, Button::left, at.x, at.y, {}}));
  EXPECT_EQ(d.model.root(), forward);
  d.model.frame(kPage);
  EXPECT_NEAR(d.target(forward)->box.w, d.target(0)->box.w, 1);
  EXPECT_EQ(d.target(d.named("backward", "train")), nullptr) << "what is beside it is out of the picture";
  EXPECT_TRUE(d.model.key({"Backspace", {}, {}}));
  EXPECT_EQ(d.model.flame()->text(d.model.root()), "train");
  EXPECT_TRUE(d.model.key({"Esc", {}, {}}));
  EXPECT_EQ(d.model.root(), 0u);
}

TEST(FlameModel, by_the_keys_alone) {
  Drawn d;
  EXPECT_TRUE(d.model.key({"Down", {}, {}}));
  EXPECT_EQ(d.model.flame()->text(d.model.chosen()), "train");
  EXPECT_TRUE(d.model.key({"Down", {}, {}}));
  EXPECT_TRUE(d.model.key({"Right", {}, {}}));
  EXPECT_EQ(d.model.flame()->text(d.model.chosen()), "backward");
  EXPECT_FALSE(d.model.key({"Right", {}, {}})) << "nothing stands behind it";
  EXPECT_TRUE(d.model.key({"Return", {}, {}}));
  EXPECT_EQ(d.model.flame()->text(d.model.root()), "backward");
  EXPECT_TRUE(d.model.key({"Up", {}, {}}));
  EXPECT_EQ(d.model.flame()->text(d.model.chosen()), "train");
  EXPECT_NE(d.model.summary().find("chosen: train"), std::string::npos);
}

TEST(FlameModel, a_name_that_is_looked_for_says_how_much_it_takes) {
  Drawn d;
  EXPECT_LT(d.model.found(), 0);
  Filter f;
  f.name = "CONV";
  d.model.set_filter(f);
  EXPECT_NEAR(d.model.found(), 0.5, 1e-12) << "40 and 10 of 100";
  f.name = "forward";
  d.model.set_filter(f);
  EXPECT_NEAR(d.model.found(), 0.6, 1e-12);
  d.model.set_filter({});
  EXPECT_LT(d.model.found(), 0);
}

TEST(FlameModel, the_table_adds_up_and_any_size_is_drawn) {
  Drawn d;
  const Table t = d.model.names();
  double self = 0;
  for (const auto& row : t.rows) self += row.cells[1].key;
  EXPECT_EQ(self, 100);
  const auto conv = std::find_if(t.rows.begin(), t.rows.end(), [](const auto& r) { return r.cells[0].text == "conv"; });
  ASSERT_NE(conv, t.rows.end());
  EXPECT_EQ(conv->cells[1].key, 40);
  EXPECT_EQ(conv->cells[2].key, 50);
  EXPECT_TRUE(conv->selection.same(Selection::event(4, 2))) << "where it takes most";
  for (float w : {0.f, 5.f, 40.f, 300.f})
    for (float h : {0.f, 10.f, 60.f, 300.f}) EXPECT_EQ(d.model.frame({w, h}).size().w, w);
  FlameModel nothing;
  nothing.frame(kPage);
  EXPECT_FALSE(nothing.key({"Down", {}, {}}));
  EXPECT_TRUE(nothing.names().rows.empty());
  nothing.set_flame(std::make_shared<const Flame>(tracing::Unit::bytes), 0);
}

}  // namespace
}  // namespace tenon::views
