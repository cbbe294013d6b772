#include "views/training/training_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

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

TEST(Training, NumbersOfAnAxisAreWrittenAlike) {
  TrainingModel m;
  m.set_run("cnn-01", 100);
  std::vector<projects::MetricRow> all;
  for (int i = 1; i <= 100; ++i) all.push_back({"lr", {i, 0, 1.1e-3}});
  m.add(all);
  const auto texts = m.frame({900, 200}).texts();
  for (const char* text : {"0", "0.0005", "0.001"})
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
  m.toggle_baseline(1);
  m.set_run("second", 100);
  m.add(rows(1, 50));
  int grey = 0;
  for (const auto& p : m.frame({900, 500}).prims()) grey += p.kind == Scene::Kind::line && p.stroke == Ink::baseline;
  EXPECT_GE(grey, 2);
  m.set_run("first", 100);
  m.toggle_baseline(1);
  EXPECT_EQ(m.baseline().id, 0);
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

/// Four of 10 samples and one of 5 are an epoch of the one run, two of 20 and one of 5 of the other: 45 samples.
constexpr projects::EpochLength kSmall{5, 45, 10}, kLarge{3, 45, 20};

std::map<std::string, Series> steady(int steps, double seconds_a_step, double value = 1) {
  std::map<std::string, Series> all;
  for (int i = 1; i <= steps; ++i) all["loss"].append(i, value, seconds_a_step * i);
  return all;
}

TEST(Training, RunsOfOtherBatchSizesMeetAtEqualEpochsSamplesAndTime) {
  TrainingModel m;
  m.set_run("small", 50);
  m.set_series(steady(50, 0.1));
  m.set_epoch(kSmall);
  m.set_compared({{"large", steady(30, 0.5, 2), kLarge, 2, 30}});
  for (Over over : kOvers) {
    m.set_over(over);
    EXPECT_EQ(m.shown_over(), over);
    m.frame({900, 500});
    // Where the last point of the compared run is drawn, and of the shown one.
    float last = 0;
    for (const auto& p : m.last().prims())
      if (p.kind == Scene::Kind::line && p.count > 2 && p.stroke != Ink::grid)
        last = std::max(last, m.last().points()[p.first + p.count - 1].x);
    const double end = over == Over::step ? 50 : over == Over::epoch ? 10 : over == Over::time ? 15 : 450;
    EXPECT_NEAR(last, m.axis().to_px(end), 0.6) << over_name(over);
    EXPECT_NEAR(m.x_of(50), over == Over::time ? 5 : over == Over::step ? 50 : end, 1e-9) << over_name(over);
    for (int64_t step : {1, 7, 25, 50}) EXPECT_EQ(m.step_at(m.x_of(step)), step) << over_name(over);
  }
}

TEST(Training, WhateverTheyStandOverAClickIsAStepAndTheViewStays) {
  TrainingModel m;
  m.set_run("cnn-01", 200);
  m.add(rows(1, 200));
  m.set_epoch({50, 495, 10});
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  m.frame({900, 500});
  m.show(50, 150);
  for (Over over : {Over::epoch, Over::time, Over::samples, Over::step}) {
    m.set_over(over);
    m.frame({900, 500});
    EXPECT_NEAR(m.axis().lo, m.x_of(50), 1e-6) << over_name(over);
    EXPECT_NEAR(m.axis().hi, m.x_of(150), 1e-6) << over_name(over);
    const float x = m.axis().to_px(m.x_of(120));
    m.pointer({PointerEvent::Type::move, Button::none, x, 420, {}});
    EXPECT_EQ(m.hovered_step(), 120) << over_name(over);
    m.pointer({PointerEvent::Type::press, Button::left, x, 420, {}});
    m.pointer({PointerEvent::Type::release, Button::left, x, 420, {}});
    EXPECT_TRUE(chosen.same(Selection::step(120))) << over_name(over);
    const auto texts = m.frame({900, 500}).texts();
    const std::string where = place_text(over, m.x_of(120), 120);
    EXPECT_NE(std::find(texts.begin(), texts.end(), where), texts.end()) << where;
    EXPECT_TRUE(m.last().overlaps().empty()) << m.last().overlaps().front();
    m.pointer({PointerEvent::Type::leave, Button::none, 0, 0, {}});
  }
  EXPECT_TRUE(m.key({"X", "x", {}}));
  EXPECT_EQ(m.over(), Over::epoch);
}

TEST(Training, ARunThatDoesNotTellItsSamplesIsNotDrawnAtWrongOnes) {
  TrainingModel m;
  m.set_run("new", 50);
  m.set_series(steady(50, 0.1));
  m.set_epoch(kSmall);
  m.set_compared({{"old", steady(50, 0.1), {5, 0, 10}, 2, 50}});
  m.set_over(Over::samples);
  EXPECT_EQ(m.left_out(), 1);
  m.set_over(Over::epoch);
  EXPECT_EQ(m.left_out(), 0);
  m.set_run("old", 50);
  m.set_series(steady(50, 0.1));
  m.set_epoch({5, 0, 10});
  m.set_over(Over::samples);
  EXPECT_EQ(m.shown_over(), Over::step) << "what is shown stands over what is known";
  m.frame({900, 500});
}

TEST(Training, ASpikeAndANanOfAnyRunAreSeenAmongAHundredThousandPoints) {
  TrainingModel m;
  m.set_run("shown", 100'000);
  m.set_series(steady(100'000, 0.01));
  std::vector<TrainingModel::Compared> others;
  for (int k = 0; k < 50; ++k) {
    others.push_back({"run " + std::to_string(k), {}, {}, k + 2, 100'000});
    Series& s = others.back().series["loss"];
    for (int i = 1; i <= 100'000; ++i)
      s.append(i, i == 777 * (k + 1) ? 50 : i == 990 * (k + 1) ? std::nan("") : 1 + 0.01 * k, 0.01 * i);
  }
  m.set_compared(std::move(others));
  for (Over over : {Over::step, Over::time}) {
    m.set_over(over);
    const Scene& s = m.frame({1200, 700});
    float top = 1e9f;  // of the bands
    for (const auto& p : s.prims())
      if (p.kind == Scene::Kind::rect && p.fill != Ink::bad && p.box.h > 100) top = std::min(top, p.box.y);
    int spikes = 0, bad = 0;
    for (const auto& p : s.prims()) {
      if (p.kind != Scene::Kind::rect) continue;
      bad += p.fill == Ink::bad;
      spikes += p.box.h > 100 && std::fabs(p.box.y - top) < 1;
    }
    EXPECT_EQ(spikes, 50) << over_name(over);
    EXPECT_EQ(bad, 50) << over_name(over);
    EXPECT_LE(s.count(Scene::Kind::rect), 15'000u) << "a frame keeps its time";
    EXPECT_LE(s.points().size(), 20'000u);
  }
}

TEST(Training, ChartsAreArrangedHiddenAndKept) {
  TrainingModel m;
  m.set_run("cnn-01", 200);
  m.add(rows(1, 200));
  int told = 0;
  m.on_state = [&] { ++told; };
  Charts c = m.charts();
  c.place("lr", "mine");
  c.place("loss", "mine");
  m.set_charts(c);
  EXPECT_EQ(m.groups(), (std::vector<std::string>{"loss", "mine"}));
  const auto texts = m.frame({900, 500}).texts();
  for (const char* text : {"mine", "lr", "Loss"})
    EXPECT_NE(std::find(texts.begin(), texts.end(), text), texts.end()) << text;
  // By mouse and by key.
  for (const auto& t : m.last().targets())
    if (t.hit == Hit{TrainingModel::hide_button, 1}) {
      m.pointer({PointerEvent::Type::press, Button::left, t.box.x + 2, t.box.y + 2, {}});
      break;
    }
  EXPECT_EQ(m.groups(), std::vector<std::string>{"loss"});
  EXPECT_EQ(m.table().rows.size(), 3u) << "what is not seen can still be read";
  m.frame({900, 500});
  EXPECT_TRUE(m.key({"Down", "", {}}));
  EXPECT_TRUE(m.key({"H", "h", {}}));
  EXPECT_TRUE(m.groups().empty());
  EXPECT_EQ(m.frame({900, 500}).texts().size(), 1u) << "what happened, and the way back";
  EXPECT_EQ(told, 3);
  m.set_over(Over::time);
  m.set_smoothing(0.25);
  const nlohmann::json kept = m.state();
  TrainingModel other;
  other.set_state(kept);
  EXPECT_EQ(other.state(), kept);
  other.set_state({{"over", "nonsense"}, {"charts", 3}, {"smoothing", "x"}});
  EXPECT_EQ(other.state(), TrainingModel().state()) << "what does not fit is as usual";
}

}  // namespace
}  // namespace tenon::views
