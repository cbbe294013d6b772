// Pruning while training: how many weights are zero when, which, and that a run that goes on goes on with its masks.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/model/shrink.h"
#include "engine/nn/module.h"
#include "engine/train/weight_map.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::prune_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using I = int64_t;

Recipe pruned(const std::string& settings, const Settings& set = {}) { return accompanied("prune " + settings, set); }
Tensor weight_of(TrainingSession& s, const std::string& name) {
  for (const nn::Named& p : s.model().parameters())
    if (p.name == name) return p.tensor;
  throw Error("no " + name);
}
double zero_share(TrainingSession& s, const std::string& name) {
  const Tensor w = weight_of(s, name);
  I zeros = 0;
  for (I i = 0; i < w.numel(); ++i) zeros += storage_value(w, i) == 0;
  return static_cast<double>(zeros) / static_cast<double>(w.numel());
}

TEST(Prune, weights_go_by_the_cubic_schedule_and_stay_gone) {
  TrainingSession s(deep_spirals(), pruned("amount=0.75 from=3 over=20 every=5 layers=fc2"));
  for (I step = 1; step <= 40; ++step) {
    s.step();
    const I chosen = step < 3 ? 0 : step >= 23 ? 23 : 3 + (step - 3) / 5 * 5;
    const double share = step < 3 ? 0 : 0.75 * (1 - std::pow(1 - static_cast<double>(chosen - 3) / 20, 3));
    EXPECT_EQ(zero_share(s, "fc2.weight"), std::round(share * 192) / 192) << step;
    EXPECT_NEAR(s.callback_figures().at(0).second, share, 0.5 / 192) << step;
    EXPECT_EQ(zero_share(s, "fc1.weight"), 0) << "it was not named";
  }
  EXPECT_EQ(s.callback_figures().at(0).first, "sparsity");
}

TEST(Prune, the_smallest_weights_go) {
  TrainingSession plain(deep_spirals(), pruned("amount=0.5", {{"callbacks", ""}})),
      s(deep_spirals(), pruned("amount=0.5 layers=fc1.weight"));
  plain.step();
  s.step();
  const Tensor before = weight_of(plain, "fc1.weight"), after = weight_of(s, "fc1.weight");
  double largest_gone = 0, smallest_kept = 1e9;
  for (I i = 0; i < after.numel(); ++i) {
    const double was = std::abs(storage_value(before, i));
    if (storage_value(after, i) == 0)
      largest_gone = std::max(largest_gone, was);
    else
      smallest_kept = std::min(smallest_kept, was);
  }
  EXPECT_GT(largest_gone, 0);
  EXPECT_LE(largest_gone, smallest_kept);
}

TEST(Prune, two_of_four_neighbours_stay) {
  TrainingSession s(deep_spirals(), pruned("kind=n_m layers=fc2,fc3"));
  run(s, 5);
  for (const char* name : {"fc2.weight", "fc3.weight"}) {
    const Tensor w = weight_of(s, name);
    for (I i = 0; i < w.numel(); i += 4) {
      int zeros = 0;
      for (I k = 0; k < 4; ++k) zeros += storage_value(w, i + k) == 0;
      EXPECT_EQ(zeros, 2) << name << " " << i;
    }
  }
}

TEST(Prune, channels_that_went_can_be_taken_out_without_a_difference) {
  TrainingSession s(deep_spirals(), pruned("kind=channels amount=0.5 over=10"));
  run(s, 20);
  const Shrunk small = shrink(deep_spirals(), s.model().state_dict(), {.zeros = true});
  for (const ShrinkRow& r : small.rows) EXPECT_EQ(r.channels_after, r.layer == "fc3" ? 2 : r.channels / 2) << r.layer;
  TrainingSession other(small.model, spirals({{"data.batch_size", "16"}}));
  std::vector<GivenTensor> given;
  for (const auto& [name, t] : small.tensors) given.push_back({name, "f32", {t.size().begin(), t.size().end()}, t, {}});
  other.start_from(given);
  const Evaluation a = s.evaluate(), b = other.evaluate();
  EXPECT_NEAR(a.loss, b.loss, 1e-5);
  EXPECT_EQ(a.correct, b.correct);
}

TEST(Prune, movement_takes_what_training_moves_towards_zero) {
  const std::string settings = "kind=movement amount=0.5 from=8 layers=fc2";
  TrainingSession plain(deep_spirals(), pruned(settings, {{"callbacks", ""}})), s(deep_spirals(), pruned(settings));
  std::vector<double> score(192);
  for (I step = 1; step <= 8; ++step) {
    const Tensor w = weight_of(plain, "fc2.weight");
    std::vector<double> before(192);
    for (I i = 0; i < 192; ++i) before[static_cast<size_t>(i)] = storage_value(w, i);
    plain.step();
    const Tensor g = grad_of(w);
    for (I i = 0; i < 192; ++i) score[static_cast<size_t>(i)] -= before[static_cast<size_t>(i)] * storage_value(g, i);
    s.step();
  }
  const Tensor w = weight_of(s, "fc2.weight");
  double best_gone = -1e9, worst_kept = 1e9;
  for (I i = 0; i < 192; ++i) {
    double& side = storage_value(w, i) == 0 ? best_gone : worst_kept;
    side = storage_value(w, i) == 0 ? std::max(side, score[static_cast<size_t>(i)])
                                    : std::min(side, score[static_cast<size_t>(i)]);
  }
  EXPECT_LE(best_gone, worst_kept + 1e-6);
  EXPECT_EQ(zero_share(s, "fc2.weight"), 0.5);
}

TEST(Prune, a_run_that_was_kept_goes_on_to_the_bit) {
  for (const char* settings : {"amount=0.8 from=4 over=30 every=3", "kind=movement amount=0.6 over=25",
                               "kind=channels amount=0.4 over=20", "kind=n_m from=12"}) {
    const Recipe r = pruned(settings, {{"optimizer.type", "adam"}, {"average.type", "ema"}});
    TrainingSession through(deep_spirals(), r);
    run(through, 40);
    for (const I cut : {2, 11, 33}) {
      TrainingSession a(deep_spirals(), r), b(deep_spirals(), r);
      run(a, cut);
      b.load(a.save());
      run(b, 40 - cut);
      expect_same(b.save(), through.save());
    }
    // A branch of the same recipe is its parent.
    TrainingSession parent(deep_spirals(), r), child(deep_spirals(), r);
    run(parent, 17);
    child.branch(parent.save(), r);
    run(child, 23);
    expect_same(child.save(), through.save());
  }
}

TEST(Prune, what_does_not_fit_is_said) {
  const auto made = [](const Recipe& r) { return error_of([&] { TrainingSession s(deep_spirals(), r); }); };
  EXPECT_NE(made(pruned("layers=fc9")).find("the model has no weight of such a name"), std::string::npos);
  EXPECT_NE(made(pruned("kind=channels layers=fc3")).find("those of fc3 must stay: the model's output"),
            std::string::npos);
  EXPECT_NE(made(pruned("kind=n_m n=4")).find("is all of them"), std::string::npos);
  TrainingSession s(deep_spirals(), pruned("amount=0.5")), other(tanh_model(), spirals({{"data.batch_size", "16"}}));
  run(s, 2);
  Checkpoint c = s.save();
  c.state["callbacks"]["kept"][0][1]["masks"]["fc1.weight"][0] = 7;
  TrainingSession again(deep_spirals(), pruned("amount=0.5"));
  EXPECT_THROW(again.load(c), Error);
}

}  // namespace
}  // namespace tenon::prune_tests
