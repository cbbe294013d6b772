// Callbacks: the list as a picture of the recipe, and those that a recipe lists at work.
#include "engine/train/callback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/registry.h"
#include "core/tensor_bytes.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"
#include "tests/thread_replica.h"

namespace tenon::callback_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using I = int64_t;
using S = std::string;

Recipe sgd_recipe(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "16"}, {"epochs", "4"}, {"optimizer.type", "sgd"}}), set);
}

std::vector<CallbackRow> on(const Recipe& r) {
  std::vector<CallbackRow> rows = callback_rows(r);
  std::erase_if(rows, [](const CallbackRow& c) { return !c.on; });
  return rows;
}
std::string names(const std::vector<CallbackRow>& rows) {
  std::string text;
  for (const CallbackRow& r : rows) text += (text.empty() ? "" : " ") + r.name;
  return text;
}
const CallbackRow& row(const std::vector<CallbackRow>& rows, const std::string& name) {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == name; });
  if (at == rows.end()) throw Error("no row " + name);
  return *at;
}

TEST(Callbacks, every_one_is_added_and_taken_away_by_its_keys) {
  ASSERT_GE(callbacks().size(), 15u);
  for (const CallbackDef& def : callbacks()) {
    EXPECT_FALSE(def.title.empty() || def.help.empty()) << def.name;
    EXPECT_NE(def.listed(), !def.keys.empty()) << def.name << " is a switch or listed";
    const Recipe before = def.listed() || def.off == Recipe().at(def.keys[0]) ? Recipe() : [&] {
      Recipe r;
      r.set_value(def.keys[0], def.off);
      return r;
    }();
    EXPECT_FALSE(row(callback_rows(before), def.name).on) << def.name;
    const Recipe with = with_callback(before, def.name);
    const std::vector<CallbackRow> rows = callback_rows(with);
    const CallbackRow& r = row(rows, def.name);
    EXPECT_TRUE(r.on) << def.name;
    EXPECT_EQ(r.fault, "") << def.name;
    EXPECT_FALSE(r.says.empty()) << def.name;
    // Everything that is on sets what has a meaning.
    for (const std::string& key : r.keys) EXPECT_NO_THROW(with.check_used(key)) << key;
    EXPECT_EQ(without_callback(with, r), before) << def.name;
  }
}

TEST(Callbacks, say_what_they_do_with_the_values_of_the_recipe) {
  const Recipe r = sgd_recipe({{"stop.metric", "test_accuracy"},
                               {"stop.patience", "5"},
                               {"average.type", "ema"},
                               {"average.decay", "0.9"},
                               {"schedule.type", "plateau"},
                               {"schedule.factor", "0.5"},
                               {"eval_every", "2"},
                               {"callbacks", "gradient_noise std=0.5"}});
  const auto rows = on(r);
  EXPECT_EQ(row(rows, "stop_early").says,
            "ends the run where test_accuracy did not become better in 5 evaluations in a row");
  EXPECT_EQ(row(rows, "ema").says,
            "an average of the weights, of which each step keeps 0.9; evaluations use the average");
  EXPECT_EQ(row(rows, "save_best").says, "evaluates every 2 epochs; the checkpoint that was best is called best");
  EXPECT_NE(row(rows, "plateau").says.find("times 0.5"), S::npos);
  EXPECT_NE(row(rows, "gradient_noise").says.find("std 0.5, decay 0.55"), S::npos);
  // In the order of a step.
  EXPECT_TRUE(
      std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.moment < b.moment; }));
  EXPECT_FALSE(row(callback_rows(sgd_recipe({{"loss.type", "mse"}})), "balanced_loss").fault.empty())
      << "a loss without weights of classes cannot be balanced";
}

TEST(Callbacks, listed_ones_are_moved_and_set) {
  Recipe r = sgd_recipe({{"callbacks", "goal value=0.5; gradient_noise; centralize"}});
  EXPECT_EQ(names(on(r)), "stop_on_nan gradient_noise centralize save_best goal save_checkpoints");
  const auto rows = callback_rows(r);
  EXPECT_TRUE(callback_moves(rows, row(rows, "gradient_noise"), 1));
  EXPECT_FALSE(callback_moves(rows, row(rows, "gradient_noise"), -1)) << "a goal acts at another moment";
  EXPECT_FALSE(callback_moves(rows, row(rows, "save_best"), 1)) << "the step decides when it acts";
  r = with_callback_moved(r, 1, 1);
  EXPECT_EQ(r.text("callbacks"), "goal value=0.5; centralize; gradient_noise");
  EXPECT_EQ(with_callback_moved(r, 2, 1), r);
  r = with_callback_setting(r, 2, "std", 0.25);
  EXPECT_EQ(r.text("callbacks"), "goal value=0.5; centralize; gradient_noise std=0.25");
  EXPECT_EQ(with_callback_setting(r, 2, "std", 0.1).text("callbacks"), "goal value=0.5; centralize; gradient_noise");
  EXPECT_SAYS(error_of([&] { with_callback_setting(r, 2, "std", -1.0); }), "at least 0");
  EXPECT_EQ(with_callback(r, "goal").text("callbacks"), "goal value=0.5; centralize; gradient_noise std=0.25; goal");
}

TEST(Callbacks, what_is_wrong_is_told_and_refused_before_the_first_step) {
  const auto fault = [](const S& text) {
    const auto rows = on(sgd_recipe({{"callbacks", text}}));
    const auto at = std::find_if(rows.begin(), rows.end(), [](const auto& r) { return !r.fault.empty(); });
    return at == rows.end() ? "" : at->fault;
  };
  const auto made = [](const Settings& set) {
    return error_of([&] { TrainingSession s(tanh_model(), sgd_recipe(set)); });
  };
  for (const auto& [text, why] : {std::pair<S, S>{"gradient_noize", "gradient_noise"},
                                  {"gradient_noise stdd=1", "std"},
                                  {"gradient_noise std", "NAME=VALUE"},
                                  {"gradient_noise std=-1", "at least 0"},
                                  {"stop_early", "no callback of this list"}}) {
    EXPECT_FALSE(fault(text).empty()) << text;
    EXPECT_SAYS(made({{"callbacks", text}}), why.c_str());
    // What cannot work can be taken away.
    const Recipe r = sgd_recipe({{"callbacks", text}});
    const auto rows = on(r);
    const auto at = std::find_if(rows.begin(), rows.end(), [](const auto& c) { return !c.fault.empty(); });
    EXPECT_EQ(without_callback(r, *at).text("callbacks"), "") << text;
  }
  EXPECT_SAYS(made({{"callbacks", "goal metric=test_mean_iou"}}), "no evaluation of a classification task records it");
  EXPECT_SAYS(made({{"callbacks", "goal"}, {"eval_every", "0"}}), "needs evaluations");
  EXPECT_SAYS(made({{"callbacks", "gradient_noise"}, {"optimizer.type", "lbfgs"}}), "searches along a line");
}

TEST(Callbacks, gradients_and_weights_are_as_the_formulas_say) {
  TrainingSession plain(tanh_model(), sgd_recipe()), centred(tanh_model(), sgd_recipe({{"callbacks", "centralize"}}));
  plain.step();
  centred.step();
  for (const nn::Named& p : centred.model().parameters()) {
    const Tensor g = grad_of(p.tensor);
    if (g.ndim() < 2) continue;
    for (I row = 0; row < g.size(0); ++row) {
      double sum = 0;
      for (I k = 0; k < g.size(1); ++k) sum += storage_value(g, row * g.size(1) + k);
      EXPECT_NEAR(sum, 0, 1e-6) << p.name;
    }
  }
  TrainingSession bounded(tanh_model(), sgd_recipe({{"callbacks", "max_norm norm=0.25"}, {"optimizer.lr", "0.5"}}));
  run(bounded, 5);
  bool at_bound = false;
  for (const nn::Named& p : bounded.model().parameters()) {
    if (p.tensor.ndim() < 2) continue;
    for (I row = 0; row < p.tensor.size(0); ++row) {
      double sum = 0;
      for (I k = 0; k < p.tensor.size(1); ++k) sum += std::pow(storage_value(p.tensor, row * p.tensor.size(1) + k), 2);
      EXPECT_LE(std::sqrt(sum), 0.25 + 1e-6) << p.name;
      at_bound |= std::sqrt(sum) > 0.2499;
    }
  }
  EXPECT_TRUE(at_bound);
  // Noise: another number for every value, of the deviation it says, and less with every step.
  TrainingSession noisy(tanh_model(), sgd_recipe({{"callbacks", "gradient_noise std=3 decay=1"}}));
  for (const double expected : {3 / std::sqrt(2.), 3 / std::sqrt(3.)}) {
    const Checkpoint at = noisy.save();
    TrainingSession same(tanh_model(), sgd_recipe());
    Checkpoint bare = at;
    bare.state.erase("callbacks");
    same.load(bare);
    same.step();
    noisy.step();
    double sum = 0;
    I n = 0;
    const auto theirs = same.model().parameters(), ours = noisy.model().parameters();
    for (size_t i = 0; i < ours.size(); ++i)
      for (I k = 0; k < ours[i].tensor.numel(); ++k, ++n)
        sum += std::pow(storage_value(grad_of(ours[i].tensor), k) - storage_value(grad_of(theirs[i].tensor), k), 2);
    EXPECT_NEAR(std::sqrt(sum / static_cast<double>(n)), expected, expected * 0.25);
  }
}

TEST(Callbacks, their_order_is_heard) {
  const auto trained = [](const S& list) {
    TrainingSession s(tanh_model(), sgd_recipe({{"callbacks", list}, {"optimizer.momentum", "0"}}));
    run(s, 3);
    Checkpoint c = s.save();
    c.state.erase("callbacks");
    return c;
  };
  const Checkpoint a = trained("gradient_noise std=1; centralize"), b = trained("centralize; gradient_noise std=1");
  std::vector<char> ca, cb;
  bool differs = false;
  for (size_t i = 0; i < a.tensors.size(); ++i)
    differs |= logical_bytes(a.tensors[i].second, ca) != logical_bytes(b.tensors[i].second, cb);
  EXPECT_TRUE(differs);
}

TEST(Callbacks, clipping_measures_what_they_left) {
  TrainingSession s(tanh_model(), sgd_recipe({{"callbacks", "gradient_noise std=100"},
                                              {"optimizer.clip_norm", "0.001"},
                                              {"optimizer.momentum", "0"},
                                              {"optimizer.lr", "1"}}));
  const Checkpoint before = s.save();
  s.step();
  const Checkpoint after = s.save();
  double moved = 0;
  for (size_t i = 0; i < after.tensors.size(); ++i)
    for (I k = 0; k < after.tensors[i].second.numel(); ++k)
      moved += std::pow(storage_value(after.tensors[i].second, k) - storage_value(before.tensors[i].second, k), 2);
  EXPECT_NEAR(std::sqrt(moved), 0.001, 1e-5);
}

/// Counts what it is told, and leaves a trace of it in the weights.
struct Counting : Callback {
  I updates = 0, evaluations = 0;
  void on_update(const std::vector<nn::Named>&, int64_t) override { ++updates; }
  std::string on_evaluation(const Evaluation&, int64_t) override {
    return ++evaluations >= 3 ? "three are enough" : "";
  }
  nlohmann::json state() const override { return {updates, evaluations}; }
  void load(const nlohmann::json& j) override {
    if (!j.is_array() || j.size() != 2) throw Error("no state of a counting callback");
    updates = j[0].get<I>(), evaluations = j[1].get<I>();
  }
};
void register_counting() {
  register_callback({.name = "counting",
                     .title = "Counting",
                     .help = "counts",
                     .moment = Moment::evaluation,
                     .attrs = {{"every", I{2}, 1, 9, "nothing"}},
                     .make = [](const AttrValues&, const CallbackRun&) -> std::unique_ptr<Callback> {
                       return std::make_unique<Counting>();
                     }});
}

TEST(Callbacks, one_definition_is_in_the_list_and_keeps_its_state) {
  EXPECT_EQ(callbacks().find("counting"), nullptr);
  RegistryScope scope("a plug-in");
  register_counting();
  const auto rows = callback_rows(sgd_recipe());
  EXPECT_FALSE(row(rows, "counting").on);
  const Recipe r = with_callback(sgd_recipe(), "counting");
  EXPECT_TRUE(row(callback_rows(r), "counting").on);

  TrainingSession through(tanh_model(), r);
  EXPECT_TRUE(through.watches_evaluations());
  run(through, 9 * 3 + 2);
  EXPECT_EQ(through.ending(), "three are enough");
  const Checkpoint end = through.save();
  EXPECT_EQ(end.state.at("callbacks").at("kept"), nlohmann::json::parse(R"([["counting", [29, 3]]])"));
  for (const I cut : {4, 9, 10, 20}) {
    TrainingSession a(tanh_model(), r), b(tanh_model(), r);
    run(a, cut);
    b.load(a.save());
    run(b, 29 - cut);
    expect_same(b.save(), end);
  }
  // A state of other callbacks is refused and changes nothing.
  TrainingSession bare(tanh_model(), sgd_recipe()), noise(tanh_model(), sgd_recipe({{"callbacks", "gradient_noise"}}));
  EXPECT_SAYS(error_of([&] { bare.load(end); }), "callbacks");
  EXPECT_SAYS(error_of([&] { noise.load(end); }), "callbacks");
  EXPECT_EQ(noise.steps_done(), 0);
}

TEST(Callbacks, a_run_that_changes_keeps_what_its_callbacks_remember) {
  RegistryScope scope("a plug-in");
  register_counting();
  TrainingSession s(tanh_model(), sgd_recipe({{"callbacks", "counting"}}));
  run(s, 29);
  ASSERT_FALSE(s.ending().empty());
  s.change(with(s.recipe(), {{"optimizer.lr", "0.5"}}));
  EXPECT_FALSE(s.ending().empty()) << "another rate is no reason to go on";
  s.change(with(s.recipe(), {{"callbacks", "counting every=3"}}));
  EXPECT_TRUE(s.ending().empty());
  EXPECT_EQ(s.save().state.at("callbacks").at("kept").at(0).at(1), nlohmann::json::parse("[29, 3]"));
  s.change(with(s.recipe(), {{"callbacks", ""}}));
  EXPECT_FALSE(s.save().state.contains("callbacks"));
}

}  // namespace
}  // namespace tenon::callback_tests
