#include "views/training/training_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::views {
namespace {

std::vector<projects::MetricRow> rows(int from, int to) {
  std::vector<projects::MetricRow> out;
  for (int i = from; i <= to; ++i) {
    out.push_back({"loss", {i, i * 0.1, 2.0 / i}});
    out.push_back({"lr", {i, i * 0.1, 1e-3}});
    if (i % 50 == 0) out.push_back({"eval/loss", {i, i * 0.1, 2.5 / i}});
  }
  return out;
}

TEST(Training, MetricsOfOneQuantityShareAPlot) {
  TrainingModel m;
  m.set_run("cnn-01", 400);
  m.add(rows(1, 200));
  EXPECT_EQ(m.groups(), (std::vector<std::string>{"loss", "lr"}));
  EXPECT_EQ(m.last_step(), 200);
  EXPECT_EQ(m.axis().full_hi, 256);  // a young run fills most of the plot
  const Scene& s = m.frame({900, 500});
  auto texts = s.texts();
  EXPECT_NE(std::find(texts.begin(), texts.end(), "Learning rate"), texts.end());
  EXPECT_NE(std::find(texts.begin(), texts.end(), "eval"), texts.end());
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
}

TEST(Training, AccuracyOfTrainingStandsBesideTheTests) {
  TrainingModel m;
  m.set_run("cnn-01", 100);
  std::vector<projects::MetricRow> all;
  for (int i = 1; i <= 100; ++i) {
    all.push_back({"train_accuracy", {i, 0, i / 100.0}});
    if (i % 50 == 0) all.push_back({"test_accuracy", {i, 0, i / 120.0}});
  }
  m.add(all);
  EXPECT_EQ(m.groups(), std::vector<std::string>{"accuracy"});
  const auto texts = m.frame({900, 400}).texts();
  for (const char* text : {"Accuracy", "train", "test", "Step"})
    EXPECT_NE(std::find(texts.begin(), texts.end(), text), texts.end()) << text;
}

TEST(Training, TheKeysReachEveryPlotAndItsScale) {
  TrainingModel m;
  m.set_run("cnn-01", 200);
  m.add(rows(1, 200));
  m.frame({900, 500});
  Selection chosen;
  m.on_select = [&](const Selection& s) {
    chosen = s;
    m.set_selection(s);
  };
  EXPECT_TRUE(m.key({"Down", "", {}}));
  EXPECT_TRUE(m.key({"Down", "", {}}));
  EXPECT_TRUE(m.key({"L", "l", {}}));
  EXPECT_TRUE(m.log("lr"));
  EXPECT_FALSE(m.log("loss"));
  EXPECT_TRUE(m.key({"Return", "", {}}));
  EXPECT_TRUE(chosen.same(Selection::step(200)));
  EXPECT_TRUE(m.key({"Left", "", {}}));
  EXPECT_TRUE(chosen.same(Selection::step(199)));
  EXPECT_NE(m.summary().find("step 199, lr"), std::string::npos) << m.summary();
}

TEST(Training, TheCursorIsNoCurve) {
  TrainingModel m;
  m.set_run("cnn-01", 200);
  m.add(rows(1, 200));
  m.set_selection(Selection::step(100));
  const Scene& s = m.frame({900, 500});
  const float x = std::floor(m.axis().to_px(100));
  bool found = false;
  for (const auto& p : s.prims()) {
    if (p.kind != Scene::Kind::line || p.count != 2) continue;
    const Point a = s.points()[p.first], b = s.points()[p.first + 1];
    if (a.x != b.x || std::fabs(a.x - x) > 1) continue;
    if (std::fabs(a.y - b.y) < 50) continue;
    found = true;
    EXPECT_EQ(p.stroke, Ink::text);
  }
  EXPECT_TRUE(found);
}

TEST(Training, APlotIsDrawnOnACanvasOfAnySize) {
  TrainingModel m;
  m.set_run("cnn-01", 1'000'000);
  m.add(rows(1, 200));
  for (float w : {0.f, 1.f, 90.f, 120.f, 160.f, 900.f})
    for (float h : {0.f, 100.f, 500.f}) EXPECT_EQ(m.frame({w, h}).size().w, w);
}

TEST(Training, AClickIsThatStepAndADragZooms) {
  TrainingModel m;
  m.set_run("cnn-01", 200);
  m.add(rows(1, 200));
  m.frame({900, 500});
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  float x = m.axis().to_px(120);
  m.pointer({PointerEvent::Type::press, Button::left, x, 420, {}});
  m.pointer({PointerEvent::Type::release, Button::left, x, 420, {}});
  EXPECT_EQ(chosen.kind, Selection::Kind::step);
  EXPECT_NEAR(static_cast<double>(chosen.id), 120, 1);
  double a = m.axis().to_value(x), b = m.axis().to_value(x + 100);
  m.pointer({PointerEvent::Type::press, Button::left, x, 420, {}});
  m.pointer({PointerEvent::Type::move, Button::left, x + 100, 420, {}});
  m.pointer({PointerEvent::Type::release, Button::left, x + 100, 420, {}});
  EXPECT_NEAR(m.axis().lo, a, 1e-3);
  EXPECT_NEAR(m.axis().hi, b, 1e-3);
  m.pointer({PointerEvent::Type::double_click, Button::left, x, 420, {}});
  EXPECT_TRUE(m.axis().fitted());
}

TEST(Training, NanStandsOnTheAxisInRed) {
  TrainingModel m;
  m.set_run("cnn-01", 100);
  auto data = rows(1, 100);
  for (auto& r : data)
    if (r.name == "loss" && r.point.step == 60) r.point.value = std::nan("");
  m.add(data);
  const Scene& s = m.frame({900, 300});
  int red = 0;
  for (const auto& p : s.prims()) red += p.kind == Scene::Kind::rect && p.fill == Ink::bad;
  EXPECT_EQ(red, 1) << s.dump();
}

TEST(Training, AResumedRunWritesItsTailAgain) {
  TrainingModel m;
  m.set_run("cnn-01", 200);
  m.add(rows(1, 150));
  m.add(rows(101, 120));
  EXPECT_EQ(m.series().at("loss").size(), 120u);
  EXPECT_EQ(m.series().at("loss").step(119), 120);
}

TEST(Training, ALongRunStaysWithinTheBudget) {
  TrainingModel m;
  m.set_run("long", 200'000);
  m.add(rows(1, 200'000));
  const Scene& s = m.frame({1200, 700});
  EXPECT_LE(s.count(Scene::Kind::rect), 5000u);
  EXPECT_LE(s.points().size(), 30'000u);
}

TEST(Training, TheAxisEndsWithTheTraining) {
  TrainingModel m;
  m.set_run("cnn-01", 400);
  double before = 0;
  int jumps = 0;
  for (int i = 1; i <= 400; ++i) {
    m.add(rows(i, i));
    EXPECT_GE(m.axis().full_hi, i);
    jumps += m.axis().full_hi != before;
    before = m.axis().full_hi;
  }
  EXPECT_EQ(before, 400);
  EXPECT_LE(jumps, 5) << "it grows now and then, not with every step";
}

TEST(Training, TheBaselineStaysWhenAnotherRunIsShown) {
  TrainingModel m;
  m.set_run("first", 100);
  m.add(rows(1, 100));
  m.toggle_baseline();
  m.set_run("second", 100);
  m.add(rows(1, 50));
  int grey = 0;
  for (const auto& p : m.frame({900, 500}).prims()) grey += p.kind == Scene::Kind::line && p.stroke == Ink::baseline;
  EXPECT_GE(grey, 2);
  m.set_run("first", 100);
  m.toggle_baseline();
  EXPECT_TRUE(m.baseline().empty());
}

TEST(Training, LogScaleSpreadsDecades) {
  TrainingModel m;
  m.set_run("cnn-01", 100);
  m.add(rows(1, 100));
  m.frame({900, 300});
  EXPECT_FALSE(m.log("loss"));
  for (const auto& t : m.last().targets())
    if (t.hit == Hit{TrainingModel::log_toggle, 0}) {
      m.pointer({PointerEvent::Type::press, Button::left, t.box.x + 2, t.box.y + 2, {}});
      break;
    }
  EXPECT_TRUE(m.log("loss"));
  auto texts = m.frame({900, 300}).texts();
  EXPECT_NE(std::find(texts.begin(), texts.end(), "0.1"), texts.end());
}

}  // namespace
}  // namespace tenon::views
