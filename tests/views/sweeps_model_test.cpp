// A sweep as a table and a picture, and the form of a new one, without a window.
#include "views/sweeps/sweeps_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/train/recipe.h"
#include "views/sweeps/sweep_draft.h"

namespace tenon::views {
namespace {

using projects::RunInfo;
using projects::SweepInfo;
using projects::SweepPlan;

struct Made {
  SweepInfo sweep;
  std::vector<RunInfo> runs;
};

/// Trials 1 to 6: finished but for the third, which failed, the fifth, which was pruned, and the sixth, which trains.
Made made() {
  Made m;
  m.sweep.id = 4;
  m.sweep.name = "s";
  m.sweep.recipe = Recipe().to_json();
  m.sweep.plan = SweepPlan({{"optimizer.lr", "log:1e-4..1e-1"}, {"optimizer.type", "adam,sgd,lion"}},
                           {{"runs", int64_t{9}}}, Recipe())
                     .to_json();
  const char* rates[] = {"0.0001", "0.001", "0.1", "0.01", "0.002", "0.05"};
  const char* types[] = {"adam", "sgd", "lion", "adam", "sgd", "lion"};
  const char* states[] = {"finished", "finished", "failed", "finished", "pruned", "open"};
  const double values[] = {0.9, 0.5, std::nan(""), 0.25, 0.7, std::nan("")};
  for (int i = 0; i < 6; ++i) {
    RunInfo r;
    r.id = 10 + i;
    r.name = "s-0" + std::to_string(i + 1);
    r.status = i == 5 ? "running" : states[i];
    r.steps = i == 5 ? 3 : 40;
    r.total_steps = 40;
    m.runs.push_back(r);
    m.sweep.trials.push_back({i + 1, r.id, states[i], values[i],
                              i == 2   ? "step 2: the loss is not finite"
                              : i == 4 ? "pruned at step 20: behind"
                                       : "",
                              nlohmann::json::array({{"optimizer.lr", rates[i]}, {"optimizer.type", types[i]}})});
  }
  return m;
}

bool any_holds(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(), [&](const auto& t) { return t.find(part) != t.npos; });
}

TEST(SweepsModel, every_trial_is_a_row) {
  const Made m = made();
  SweepsModel model;
  model.set_sweep(&m.sweep, m.runs);
  projects::RunStatus status;
  status.run = 15;
  status.state = projects::RunStatus::State::running;
  status.step = 7;
  model.set_statuses({status});
  const Table t = model.table();
  ASSERT_EQ(t.rows.size(), 6u);
  ASSERT_EQ(t.columns.size(), 8u);
  const auto cell = [&](size_t row, size_t column) { return t.rows[row].cells[column].text; };
  EXPECT_EQ(cell(0, 1), "s-01");
  EXPECT_EQ(cell(2, 2), "failed");
  EXPECT_EQ(cell(2, 6), "–");
  EXPECT_EQ(cell(2, 7), "step 2: the loss is not finite");
  EXPECT_EQ(cell(3, 4), "0.01");
  EXPECT_EQ(cell(3, 5), "adam");
  EXPECT_EQ(t.rows[3].cells[1].mark, Ink::good) << "the best";
  EXPECT_EQ(t.rows[1].cells[1].mark, Ink::none);
  EXPECT_EQ(cell(5, 2), "running");
  EXPECT_EQ(cell(5, 3), "7 / 40") << "it follows the run before the file is read again";
  EXPECT_TRUE(t.rows[4].selection.same(Selection::run(14)));
  EXPECT_EQ(model.said(), "6 of 9 trials · bayes · lowest test_loss 0.2500 (trial 4)");
  EXPECT_FALSE(model.is_over());
}

TEST(SweepsModel, the_picture_has_every_trial_and_no_words_over_each_other) {
  const Made m = made();
  SweepsModel model;
  model.set_sweep(&m.sweep, m.runs);
  model.set_importance({{{"optimizer.lr", 0.7}, {"optimizer.type", 0.2}}, 0.1, {}});
  for (const Size size : {Size{1200, 700}, Size{700, 420}, Size{520, 300}}) {
    const Scene& s = model.frame(size);
    EXPECT_TRUE(s.overlaps().empty()) << size.w << "x" << size.h << ": " << s.overlaps().front();
    std::set<int64_t> seen;
    for (const auto& t : s.targets())
      if (t.hit.kind == SweepsModel::trial) seen.insert(t.hit.id);
    EXPECT_EQ(seen, (std::set<int64_t>{1, 2, 3, 4, 5})) << "those that have ended, the failed one too";
    const auto texts = s.texts();
    for (const char* text : {"optimizer.lr", "70 %", "several together", "trial 9", "trial 4"})
      EXPECT_TRUE(any_holds(texts, text)) << text;
  }
  for (const Size size : {Size{0, 0}, Size{40, 30}, Size{200, 2000}}) model.frame(size);  // nothing divides by nothing
}

TEST(SweepsModel, best_so_far_only_gets_better) {
  const Made m = made();
  SweepsModel model;
  model.set_sweep(&m.sweep, m.runs);
  const Scene& s = model.frame({1000, 600});
  for (const auto& p : s.prims()) {
    if (p.kind != Scene::Kind::line || p.stroke != Ink::good || p.count < 5) continue;
    for (uint32_t i = 1; i < p.count; ++i)
      EXPECT_GE(s.points()[p.first + i].y, s.points()[p.first + i - 1].y) << "a loss: down is better";
    return;
  }
  ADD_FAILURE() << "no line of the best so far";
}

TEST(SweepsModel, a_click_or_an_arrow_selects_the_run) {
  const Made m = made();
  SweepsModel model;
  model.set_sweep(&m.sweep, m.runs);
  Selection chosen;
  model.on_select = [&](const Selection& s) { model.set_selection(chosen = s); };
  model.frame({1000, 600});
  for (const auto& t : model.last().targets())
    if (t.hit == Hit{SweepsModel::trial, 2}) {
      model.pointer({PointerEvent::Type::press, Button::left, t.box.x + t.box.w / 2, t.box.y + t.box.h / 2, {}});
      break;
    }
  EXPECT_TRUE(chosen.same(Selection::run(11)));
  EXPECT_TRUE(model.key({"Right", {}, {}}));
  EXPECT_TRUE(chosen.same(Selection::run(12)));
  EXPECT_TRUE(model.key({"Left", {}, {}}));
  EXPECT_TRUE(chosen.same(Selection::run(11)));
  model.set_selection({});
  EXPECT_TRUE(model.key({"Left", {}, {}}));
  EXPECT_TRUE(chosen.same(Selection::run(15))) << "from the end";
  EXPECT_FALSE(model.key({"Right", {}, {}}));
}

TEST(SweepsModel, without_a_result_it_says_so) {
  Made m = made();
  m.sweep.trials.clear();
  SweepsModel model;
  EXPECT_TRUE(model.frame({600, 400}).texts().empty()) << "no sweep: the view says what to do";
  model.set_sweep(&m.sweep, {});
  EXPECT_TRUE(any_holds(model.frame({900, 500}).texts(), "No trial has begun yet"));
  m.sweep.plan["keys"] = nlohmann::json::array({{"optimizer.of_a_plug_in", "1,2"}});
  model.set_sweep(&m.sweep, {});
  EXPECT_FALSE(model.fault().empty());
  EXPECT_TRUE(model.table().rows.empty());
  model.frame({900, 500});
}

TEST(SweepsModel, an_outlier_does_not_flatten_the_rest) {
  Made m = made();
  for (int64_t i = 7; i <= 9; ++i) m.sweep.trials.push_back({i, 0, "finished", 0, "", m.sweep.trials[0].settings});
  for (size_t i = 0; i < 9; ++i) {
    m.sweep.trials[i].state = "finished";
    m.sweep.trials[i].value = 0.1 * static_cast<double>(i + 1);
  }
  m.sweep.trials[4].value = 1e6;
  m.sweep.trials[8].value = -3;  // far better than the others: that is no outlier, but what was looked for
  SweepsModel model;
  model.set_sweep(&m.sweep, m.runs);
  const Scene& s = model.frame({1000, 600});
  float high = 1e9f, low = 0;
  for (const auto& t : s.targets())
    if (t.hit.kind == SweepsModel::trial && t.hit.id != 5) high = std::min(high, t.box.y), low = std::max(low, t.box.y);
  EXPECT_GT(low - high, 100);
  const bool told = std::any_of(s.targets().begin(), s.targets().end(), [&](const auto& t) {
    return s.string(t.tip).find("1000000, beyond the edge") != std::string::npos;
  });
  EXPECT_TRUE(told) << "its value is in its words";
}

TEST(SweepDraft, begins_with_the_learning_rate_and_adds_what_is_usual) {
  SweepDraft d;
  d.reset(Recipe());
  ASSERT_EQ(d.keys().size(), 1u);
  EXPECT_EQ(d.keys()[0].first, "optimizer.lr");
  EXPECT_EQ(d.keys()[0].second, "log:1e-04..0.01");
  EXPECT_EQ(d.fault(), "");
  EXPECT_EQ(d.trials(), 20);
  d.add_key();
  EXPECT_NE(d.keys()[1].first, "optimizer.lr");
  EXPECT_EQ(d.fault(), "") << d.keys()[1].first << "=" << d.keys()[1].second;
  d.remove_key(0);
  d.remove_key(0);
  EXPECT_EQ(d.fault(), "Add a key to search over.");
  EXPECT_EQ(d.trials(), 0);
}

TEST(SweepDraft, a_key_of_a_definition_that_is_listed_can_be_chosen) {
  SweepDraft d;
  d.reset(Recipe());
  const auto has = [&](const char* key) {
    const auto all = d.choices();
    return std::count_if(all.begin(), all.end(), [&](const AttrDef& a) { return a.name == key; });
  };
  EXPECT_EQ(has("optimizer.momentum"), 0) << "of sgd, and the recipe says adam";
  d.set_key(0, "optimizer.type");
  d.set_range(0, "adam,sgd");
  EXPECT_EQ(has("optimizer.momentum"), 1);
  EXPECT_EQ(has("optimizer.lr"), 1);
  d.add_key();
  d.set_key(1, "optimizer.momentum");
  d.set_range(1, "0,0.9");
  EXPECT_EQ(d.fault(), "");
  d.set_attr("method", std::string("grid"));
  EXPECT_EQ(d.trials(), 4);
  d.set_range(1, "0,nine");
  EXPECT_NE(d.fault().find("optimizer.momentum"), std::string::npos) << d.fault();
}

}  // namespace
}  // namespace tenon::views
