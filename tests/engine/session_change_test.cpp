// A recipe that changes in the middle of a run.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/tensor_bytes.h"
#include "engine/optim/optimizer.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::session_changes {
namespace {

using namespace testing_sessions;

using testing_files::error_of;
using I = int64_t;

Recipe adamw_recipe(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "16"},  // 9 batches an epoch
                       {"epochs", "4"},
                       {"optimizer.type", "adamw"},
                       {"schedule.type", "constant"}}),
              set);
}

TEST(SessionChange, a_replay_that_changes_at_the_same_step_has_the_same_bits) {
  const Settings changes[] = {
      {{"optimizer.lr", "0.1"}},         {{"optimizer.weight_decay", "0.5"}, {"optimizer.clip_norm", "0.1"}},
      {{"optimizer.beta1", "0.5"}},      {{"schedule.type", "cosine"}, {"epochs", "3"}},
      {{"loss.label_smoothing", "0.2"}}, {{"optimizer.groups", "fc2.*: lr=10"}}};
  for (const Settings& change : changes) {
    const std::string what = change.front().first;
    TrainingSession plain(tanh_model(), adamw_recipe()), a(tanh_model(), adamw_recipe());
    run(a, 7);
    const Checkpoint before = a.save();
    run(a, 4);
    a.change(with(a.recipe(), change));
    EXPECT_EQ(a.recipe(), adamw_recipe(change)) << what;
    run(a, 6);
    const Checkpoint end = a.save();

    TrainingSession b(tanh_model(), adamw_recipe());  // from before the change
    b.load(before);
    run(b, 4);
    b.change(with(b.recipe(), change));
    const Checkpoint changed = b.save();
    run(b, 6);
    expect_same(b.save(), end);

    TrainingSession c(tanh_model(), adamw_recipe(change));  // from the change on
    c.load(changed);
    run(c, 6);
    expect_same(c.save(), end);

    run(plain, 17);
    EXPECT_NE(plain.save().tensors.front().second.dtype(), DType::i64);
    std::vector<char> x, y;
    bool differs = false;
    for (size_t i = 0; i < end.tensors.size(); ++i)
      differs |= logical_bytes(end.tensors[i].second, x) != logical_bytes(plain.save().tensors[i].second, y);
    EXPECT_TRUE(differs) << what << " changed nothing";
  }
}

TEST(SessionChange, a_rate_of_nought_leaves_the_weights_and_more_epochs_go_on) {
  TrainingSession s(tanh_model(), adamw_recipe());
  run(s, 5);
  s.change(with(s.recipe(), {{"optimizer.lr", "0"}}));
  EXPECT_EQ(s.learning_rate(), 0);
  const Checkpoint before = s.save();
  EXPECT_EQ(s.step().lr, 0);
  std::vector<char> x, y;
  for (const auto& [name, tensor] : s.save().tensors) {
    if (!name.starts_with("model/")) continue;
    for (const auto& [other, old] : before.tensors)
      if (other == name) {
        EXPECT_EQ(logical_bytes(tensor, x), logical_bytes(old, y)) << name;
      }
  }
  EXPECT_EQ(s.total_steps(), 36);
  s.change(with(s.recipe(), {{"epochs", "5"}}));
  EXPECT_EQ(s.total_steps(), 45);
  while (!s.finished()) s.step();
  EXPECT_EQ(s.steps_done(), 45);
  s.change(with(s.recipe(), {{"max_steps", "40"}}));
  EXPECT_TRUE(s.finished());
}

TEST(SessionChange, what_the_run_stands_on_is_refused_and_nothing_has_changed) {
  TrainingSession s(tanh_model(), adamw_recipe({{"optimizer.type", "sgd"}}));
  run(s, 3);
  const Checkpoint before = s.save();
  const Recipe was = s.recipe();
  for (const auto& [key, value] : Settings{{"data.batch_size", "8"},
                                           {"seed", "7"},
                                           {"optimizer.type", "adam"},
                                           {"loss.type", "nll"},
                                           {"amp", "bf16"},
                                           {"average.type", "ema"}}) {
    EXPECT_FALSE(TrainingSession::may_change(key));
    EXPECT_SAYS(error_of([&] { s.change(with(was, {{key, value}})); }), key);
  }
  EXPECT_SAYS(error_of([&] { s.change(with(was, {{"optimizer.groups", "nothing.*: lr=2"}})); }), "optimizer.groups");
  EXPECT_SAYS(error_of([&] { s.change(with(was, {{"optimizer.momentum", "0.9"}})); }), "remember");
  expect_same(s.save(), before);
  EXPECT_EQ(s.recipe(), was);
}

TEST(SessionChange, what_a_schedule_was_told_stays_with_it) {
  TrainingSession s(tanh_model(), adamw_recipe({{"schedule.type", "plateau"}, {"schedule.patience", "0"}}));
  run(s, 9);
  Evaluation bad;
  bad.loss = 1;
  s.report(bad);
  bad.loss = 2;
  s.report(bad);
  const double lowered = s.learning_rate();
  EXPECT_LT(lowered, s.recipe().number("optimizer.lr"));
  s.change(with(s.recipe(), {{"optimizer.weight_decay", "0.1"}}));
  EXPECT_EQ(s.learning_rate(), lowered);
  s.change(with(s.recipe(), {{"schedule.type", "constant"}}));
  EXPECT_EQ(s.learning_rate(), s.recipe().number("optimizer.lr"));
}

}  // namespace
}  // namespace tenon::session_changes
