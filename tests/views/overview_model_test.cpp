// The overview's picture of steps, driven by intents and judged by the scenes it draws; no window.
#include "views/overview/overview_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tracing/made_training.h"
#include "tests/views/scenes.h"
#include "tracing/trace/trace_maker.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::views {
namespace {

using tracing::StepPart;

constexpr Size kStepsPicture{900, 260};

struct ShownOverview {
  OverviewModel model;
  std::vector<Selection> chosen;
  int opened = 0;
  explicit ShownOverview(std::shared_ptr<const traces::Trace> trace) {
    model.on_select = [this](const Selection& s) {
      chosen.push_back(s);
      model.set_selection(s);
    };
    model.on_open = [this] { ++opened; };
    const int64_t origin = trace->begin();
    model.set_page(read_overview(std::move(trace), {.document = 4, .origin = origin, .source = "overview"}));
    model.frame(kStepsPicture);
  }
  void click(Hit hit, PointerEvent::Type type = PointerEvent::Type::press) {
    const Point p = center_of(model.last(), hit);
    ASSERT_GE(p.x, 0) << "nothing is hit so";
    model.pointer({.type = type, .button = Button::left, .x = p.x, .y = p.y});
    model.frame(kStepsPicture);
  }
  bool key(const char* k) {
    const bool done = model.key({.key = k, .text = {}, .mods = {}});
    model.frame(kStepsPicture);
    return done;
  }
  const tracing::Overview& overview() { return *model.page()->overview; }
};

std::shared_ptr<const traces::Trace> training_trace() {
  return traces::parse_trace(tracing::train({.steps = 8, .data = 400000, .buckets = 2}));
}

/// So many steps of 1 ms with an op in each; one of them takes 30 ms.
std::shared_ptr<const traces::Trace> long_trace(int steps, int slow) {
  traces::TraceMaker maker;
  const uint32_t row = maker.row(1, "main");
  int64_t at = 0;
  for (int s = 0; s < steps; ++s) {
    const int64_t length = s == slow ? 30'000'000 : 1'000'000;
    maker.slice(row, "user_annotation", "ProfilerStep#" + std::to_string(s), at, length, 0);
    maker.slice(row, "cpu_op", "aten::mm", at + 1000, length / 2, 0);
    at += length + 1000;
  }
  return maker.finish("python", {}, [](uint64_t) { return std::string(); });
}

TEST(OverviewModel, a_bar_a_step_and_the_parts_beside_them) {
  ShownOverview v(training_trace());
  ASSERT_EQ(v.model.bars().size(), v.overview().steps.size());
  for (const StepPart p : tracing::step_parts(true)) EXPECT_TRUE(shows(v.model.last(), name_of(p).head));
  EXPECT_TRUE(shows(v.model.last(), tracing::share_text(v.overview().share_of(StepPart::kernel))));
  EXPECT_TRUE(v.model.last().overlaps().empty()) << v.model.last().overlaps()[0];
  // The heights of a bar's parts are in the ratio of their times.
  const auto& steps = v.overview().steps;
  float kernel = 0, data = 0;
  for (const Scene::Prim& p : v.model.last().prims()) {
    if (p.kind != Scene::Kind::rect || p.box.w < 12) continue;
    if (p.fill == ink_of(StepPart::kernel)) kernel += p.box.h;
    if (p.fill == ink_of(StepPart::data)) data += p.box.h;
  }
  const double wanted =
      static_cast<double>(v.overview().sum[StepPart::data]) / static_cast<double>(v.overview().sum[StepPart::kernel]);
  EXPECT_NEAR(data / kernel, wanted, 0.02) << steps.size();
  // What hovering tells are the figures.
  const std::string told = v.model.told_of(v.model.bars()[2]);
  EXPECT_NE(told.find("step " + std::to_string(steps[2].step.number) + ": "), std::string::npos) << told;
  EXPECT_NE(told.find(tracing::nanoseconds_text(static_cast<double>(steps[2].parts[StepPart::data]))),
            std::string::npos)
      << told;
}

TEST(OverviewModel, a_click_selects_the_stretch_of_the_step_and_a_double_click_opens_it) {
  ShownOverview v(training_trace());
  v.click({OverviewModel::bar, 3});
  ASSERT_EQ(v.chosen.size(), 1u);
  const auto& s = v.overview().steps[3];
  const int64_t origin = v.model.page()->subject.origin;
  EXPECT_EQ(v.chosen[0].kind, Selection::Kind::range);
  EXPECT_EQ(v.chosen[0].document, 4);
  EXPECT_EQ(v.chosen[0].from, static_cast<double>(s.begin - origin));
  EXPECT_EQ(v.chosen[0].to, static_cast<double>(s.end - origin));
  EXPECT_EQ(v.opened, 0);
  v.click({OverviewModel::bar, 5}, PointerEvent::Type::double_click);
  EXPECT_EQ(v.opened, 1);
  EXPECT_EQ(v.chosen.back().from, static_cast<double>(v.overview().steps[5].begin - origin));
  // A part leads to the step with most of it.
  v.click({OverviewModel::part, static_cast<int64_t>(StepPart::data)});
  const auto most = std::max_element(v.overview().steps.begin(), v.overview().steps.end(), [](auto& a, auto& b) {
    return a.parts[StepPart::data] < b.parts[StepPart::data];
  });
  EXPECT_EQ(v.chosen.back().from, static_cast<double>(most->begin - origin));
}

TEST(OverviewModel, keys_go_through_the_steps) {
  ShownOverview v(training_trace());
  EXPECT_FALSE(v.key("Return")) << "nothing is chosen";
  EXPECT_TRUE(v.key("Right"));
  EXPECT_TRUE(v.key("Right"));
  const int64_t origin = v.model.page()->subject.origin;
  EXPECT_EQ(v.chosen.back().from, static_cast<double>(v.overview().steps[1].begin - origin));
  v.key("Left");
  v.key("Left");
  EXPECT_EQ(v.chosen.back().from, static_cast<double>(v.overview().steps[0].begin - origin));
  v.key("End");
  EXPECT_EQ(v.chosen.back().to, static_cast<double>(v.overview().steps.back().end - origin));
  EXPECT_TRUE(v.key("Return"));
  EXPECT_EQ(v.opened, 1);
  EXPECT_NE(v.model.summary().find("data loading"), std::string::npos) << v.model.summary();
}

TEST(OverviewModel, ten_thousand_steps_share_bars_and_no_long_one_gets_lost) {
  ShownOverview v(long_trace(10000, 7123));
  const auto& bars = v.model.bars();
  ASSERT_FALSE(bars.empty());
  EXPECT_LT(bars.size(), 130u);
  EXPECT_LT(v.model.last().prims().size(), 2000u);
  EXPECT_TRUE(v.model.last().overlaps().empty()) << v.model.last().overlaps()[0];
  size_t steps = 0;
  const OverviewModel::Bar* slow = nullptr;
  for (const auto& b : bars) {
    EXPECT_EQ(b.first, steps) << "no step is left out";
    steps = b.last;
    if (!slow || b.longest > slow->longest) slow = &b;
  }
  EXPECT_EQ(steps, 10000u);
  EXPECT_EQ(slow->longest_step, 7123u);
  EXPECT_NE(v.model.told_of(*slow).find("step 7123 with 30 ms"), std::string::npos) << v.model.told_of(*slow);
  // The line over its bar reaches the top of the plot; the others' bars are where their means are.
  float highest = 1e9f;
  for (const Scene::Prim& p : v.model.last().prims())
    if (p.kind == Scene::Kind::line && p.stroke == Ink::secondary)
      for (uint32_t i = 0; i < p.count; ++i) highest = std::min(highest, v.model.last().points()[p.first + i].y);
  EXPECT_LT(highest, 50);
  // Zoomed in there is a bar a step.
  v.click({OverviewModel::bar, static_cast<int64_t>(slow->first)});
  for (int i = 0; i < 40; ++i) v.model.wheel({.x = 300, .y = 100, .dx = 0, .dy = 1, .mods = {}});
  v.model.frame(kStepsPicture);
  EXPECT_EQ(v.model.bars()[0].last - v.model.bars()[0].first, 1u);
  EXPECT_TRUE(v.key("F"));
  EXPECT_EQ(v.model.bars().size(), bars.size());
}

TEST(OverviewModel, a_trace_without_steps_is_one_bar_and_one_without_events_none) {
  traces::TraceMaker maker;
  const uint32_t row = maker.row(1, "main");
  maker.slice(row, "cpu_op", "aten::mm", 0, 5000, 0);
  ShownOverview v(maker.finish("python", {}, [](uint64_t) { return std::string(); }));
  ASSERT_EQ(v.model.bars().size(), 1u);
  EXPECT_TRUE(shows(v.model.last(), "the whole trace"));
  v.key("Right");
  EXPECT_EQ(v.chosen.size(), 1u);
  traces::TraceMaker none;
  ShownOverview w(none.finish("python", {}, [](uint64_t) { return std::string(); }));
  EXPECT_EQ(w.model.page()->overview, nullptr);
  EXPECT_FALSE(w.model.page()->page.ok);
  EXPECT_TRUE(w.model.last().prims().empty());
  EXPECT_FALSE(w.key("Right"));
}

TEST(OverviewModel, every_size_is_drawn_within_itself) {
  for (const Size size : {Size{160, 100}, Size{420, 200}, Size{700, 160}, Size{1600, 500}}) {
    ShownOverview v(training_trace());
    const Scene& scene = v.model.frame(size);
    for (const Scene::Prim& p : scene.prims())
      if (p.kind == Scene::Kind::rect) {
        EXPECT_GE(p.box.x, 0);
        EXPECT_LE(p.box.right(), size.w + 1) << size.w;
      }
    if (size.w > 400) {
      EXPECT_TRUE(scene.overlaps().empty()) << size.w << ": " << scene.overlaps()[0];
    }
  }
}

TEST(OverviewModel, inks_of_the_parts_of_one_picture_differ) {
  for (const bool gpu : {false, true})
    for (int theme = 0; theme < kThemes; ++theme) {
      const auto& parts = tracing::step_parts(gpu);
      for (size_t a = 0; a < parts.size(); ++a)
        for (size_t b = 0; b < a; ++b)
          EXPECT_FALSE(color(ink_of(parts[a]), static_cast<ThemeName>(theme)) ==
                       color(ink_of(parts[b]), static_cast<ThemeName>(theme)))
              << name_of(parts[a]).head << " and " << name_of(parts[b]).head << " in theme " << theme;
    }
}

}  // namespace
}  // namespace tenon::views
