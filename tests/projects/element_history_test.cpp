// One element over steps: the same numbers as the checkpoints have, and the ops that made them.
#include "projects/element_history.h"

#include <gtest/gtest.h>

#include <cmath>

#include "projects/time_travel.h"
#include "tests/messages.h"
#include "tests/projects/spirals.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

using testing_words::error_of;

struct Histories : testing_files::SpiralsTest {
  std::string weight;
  void SetUp() override {
    SpiralsTest::SetUp();
    train("r",
          {{"data.samples", "200"},
           {"data.batch_size", "10"},
           {"checkpoint_every", "15"},
           {"optimizer.type", "adam"},
           {"optimizer.clip_norm", "0.01"}},
          40);
    for (const auto& [name, t] : state_at(*project, id(), 0).tensors)
      if (weight.empty() && name.starts_with("model/") && t.ndim() == 2) weight = name.substr(6);
  }
  int64_t id() { return project->run("r").id; }
  double state(const std::string& name, const Dims& at, int64_t step) {
    for (const auto& [known, t] : state_at(*project, id(), step).tensors)
      if (known == name) return value_at(t, at);
    ADD_FAILURE() << name;
    return 0;
  }
};

TEST_F(Histories, a_weight_and_what_the_optimizer_remembers_are_those_of_the_states) {
  for (const auto& [shown, kept] :
       {std::pair{weight, "model/" + weight}, std::pair{weight + "/exp_avg", "optimizer/" + weight + "/exp_avg"}}) {
    const ElementHistory h = element_history(*project, id(), {shown, {1, 0}, 33, 7});
    ASSERT_EQ(h.steps.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      const ElementStep& s = h.steps[i];
      EXPECT_EQ(s.step, 27 + static_cast<int64_t>(i));
      EXPECT_TRUE(s.had && s.missing.empty()) << s.missing;
      EXPECT_EQ(s.before, state(kept, {1, 0}, s.step - 1)) << shown << " " << s.step;
      EXPECT_EQ(s.after, state(kept, {1, 0}, s.step)) << shown << " " << s.step;
      ASSERT_EQ(s.writes.size(), 1u);
      EXPECT_EQ(s.writes[0].phase, "optimizer");
      EXPECT_EQ(s.writes[0].before, s.before);
      EXPECT_EQ(s.writes[0].after, s.after);
    }
  }
}

TEST_F(Histories, a_gradient_is_made_by_backward_and_clipped_behind_it) {
  std::string bias;  // of the last layer: each of its elements has one at every step
  for (const auto& [name, t] : state_at(*project, id(), 0).tensors)
    if (name.starts_with("model/") && t.ndim() == 1) bias = name.substr(6);
  const ElementHistory h = element_history(*project, id(), {"grad of " + bias, {0}, 10, 3});
  ASSERT_EQ(h.steps.size(), 3u);
  for (const ElementStep& s : h.steps) {
    EXPECT_FALSE(s.had);
    ASSERT_EQ(s.writes.size(), 2u);
    EXPECT_EQ(s.writes[0].phase, "backward");
    EXPECT_TRUE(std::isnan(s.writes[0].before));
    EXPECT_EQ(s.writes[1].phase, "optimizer");
    EXPECT_EQ(s.writes[1].before, s.writes[0].after);
    EXPECT_EQ(s.writes[1].after, s.after);
    EXPECT_LT(std::fabs(s.after), std::fabs(s.writes[0].after));
  }
}

TEST_F(Histories, an_activation_is_that_of_each_step) {
  const auto record = record_step(*project, id(), 12);
  std::string name;
  for (const tracing::OpRecord& op : record->ops)
    if (name.empty() && op.name == "linear") name = record->tensors[static_cast<size_t>(op.outputs[0])].name;
  const ElementHistory h = element_history(*project, id(), {name, {2, 1}, 12, 2});
  ASSERT_EQ(h.steps.size(), 2u);
  for (const tracing::TensorRecord& t : record->tensors)
    if (t.name == name) {
      EXPECT_EQ(h.steps[1].after, value_at(t.value, {2, 1}));
    }
  ASSERT_EQ(h.steps[1].writes.size(), 1u);
  EXPECT_EQ(h.steps[1].writes[0].op, "linear");
}

TEST_F(Histories, goes_on_before_the_branch_and_over_a_change_of_the_recipe) {
  TrainOptions o;
  o.from = "r";
  o.from_step = 20;
  o.run_name = "b";
  o.set = {{"optimizer.lr", "0.05"}};
  auto d = RunDriver::start(project, o);
  d->wait();
  const int64_t b = project->run("b").id;
  const ElementHistory h = element_history(*project, b, {weight, {1, 1}, 23, 6});
  ASSERT_EQ(h.steps.size(), 6u);
  for (size_t i = 1; i < 6; ++i) EXPECT_EQ(h.steps[i].before, h.steps[i - 1].after);
  EXPECT_EQ(h.steps.front().step, 18);
  EXPECT_EQ(h.steps[2].after, state("model/" + weight, {1, 1}, 20));
  EXPECT_NE(h.steps[3].after, state("model/" + weight, {1, 1}, 21));

  train("more", {{"data.batch_size", "10"}, {"optimizer.type", "adam"}}, 10);
  train("", {{"optimizer.lr", "0.3"}, {"max_steps", "20"}}, 0, "more");
  const int64_t more = project->run("more").id;
  const ElementHistory changed = element_history(*project, more, {weight, {1, 1}, 14, 8});
  for (const ElementStep& s : changed.steps) {
    const Checkpoint there = state_at(*project, more, s.step);
    for (const auto& [name, t] : there.tensors)
      if (name == "model/" + weight) {
        EXPECT_EQ(s.after, value_at(t, {1, 1})) << s.step;
      }
  }
}

TEST_F(Histories, fewer_steps_and_what_is_not_there) {
  EXPECT_EQ(element_history(*project, id(), {weight, {0, 0}, 3, 20}).steps.size(), 3u);
  const auto says = [&](const ElementQuery& q) { return error_of([&] { element_history(*project, id(), q); }); };
  EXPECT_SAYS(says({weight + "s", {0, 0}, 3, 2}), "has no tensor \"" + weight + "s\"");
  EXPECT_SAYS(says({weight + "s", {0, 0}, 3, 2}), weight);
  EXPECT_SAYS(says({weight, {0, 999}, 3, 2}), "there is no element [0, 999]");
  EXPECT_SAYS(says({weight, {0}, 3, 2}), "An element has an index for every axis");
  EXPECT_SAYS(says({weight, {0, 0}, 41, 2}), "run r has steps 1 to 40");
  EXPECT_SAYS(says({weight, {0, 0}, 0, 2}), "there is no step 0");
}

}  // namespace
}  // namespace tenon::projects
