// The instruments on a device whose memory the host cannot read: they say of a step what they say of it on the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/poisoned_device.h"
#include "tracing/record/memory_history.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_recorder.h"

namespace tenon::tracing {
namespace {

std::shared_ptr<const StepRecord> recorded_step(Device device,
                                                const std::vector<std::pair<std::string, std::string>>& set = {}) {
  const Template& t = find_template("spirals");
  Recipe recipe = t.recipe;
  for (const auto& [key, value] : set) recipe.set(key, value);
  TrainingSession session(t.model, recipe, {device, nullptr});
  return record_step(session, "run");
}

void expect_same(const Statistics& a, const Statistics& b, const std::string& what) {
  EXPECT_EQ(a.count, b.count) << what;
  EXPECT_EQ(a.finite, b.finite) << what;
  EXPECT_EQ(a.nan, b.nan) << what;
  EXPECT_EQ(a.min, b.min) << what;
  EXPECT_EQ(a.max, b.max) << what;
  EXPECT_EQ(a.mean, b.mean) << what;
  EXPECT_EQ(a.deviation, b.deviation) << what;
}

TEST(InstrumentsOnADevice, AStepIsRecordedAsOnTheCpu) {
  const auto here = recorded_step({}), there = recorded_step(poisoned::device());
  EXPECT_EQ(here->loss, there->loss);
  ASSERT_EQ(here->ops.size(), there->ops.size());
  for (size_t i = 0; i < here->ops.size(); ++i) {
    EXPECT_EQ(here->ops[i].name, there->ops[i].name);
    EXPECT_EQ(here->ops[i].attrs, there->ops[i].attrs);
    EXPECT_EQ(here->ops[i].bytes, there->ops[i].bytes);
  }
  ASSERT_EQ(here->tensors.size(), there->tensors.size());
  int compared = 0;
  for (size_t i = 0; i < here->tensors.size(); ++i) {
    const TensorRecord &a = here->tensors[i], &b = there->tensors[i];
    EXPECT_EQ(a.value.defined(), b.value.defined()) << a.name;
    if (!a.value.defined()) continue;
    EXPECT_FALSE(b.value.device() == Device{}) << b.name;
    expect_same(statistics(a.value), statistics(b.value), a.name);
    compared += a.value.numel() > 0;
  }
  EXPECT_GT(compared, 30);
  ASSERT_EQ(here->grad_nodes.size(), there->grad_nodes.size());
  for (size_t i = 0; i < here->grad_nodes.size(); ++i)
    EXPECT_EQ(here->grad_nodes[i].grad_norm, there->grad_nodes[i].grad_norm) << here->grad_nodes[i].name;
}

TEST(InstrumentsOnADevice, MemoryOfTheDeviceIsInTheHistory) {
  const auto record = recorded_step(poisoned::device());
  int64_t taken = 0, given_back = 0;
  std::set<Category> categories;
  for (const AllocEvent& e : record->allocs) {
    if (e.address < poisoned::kAway) continue;  // the host's, where batches are put together
    (e.bytes > 0 ? taken : given_back) += 1;
    categories.insert(e.origin.category);
  }
  EXPECT_GT(taken, 25);
  EXPECT_GT(given_back, 15);
  for (const Category c : {Category::parameter, Category::gradient, Category::activation, Category::optimizer})
    EXPECT_TRUE(categories.count(c)) << name(c);
}

TEST(InstrumentsOnADevice, NanIsFoundWhereItBegan) {
  const std::vector<std::pair<std::string, std::string>> broken = {{"optimizer.lr", "1e30"}, {"on_nan", "continue"}};
  const Template& t = find_template("spirals");
  std::string said[2];
  for (const bool on_device : {false, true}) {
    Recipe recipe = t.recipe;
    for (const auto& [key, value] : broken) recipe.set(key, value);
    TrainingSession session(t.model, recipe, {on_device ? poisoned::device() : Device{}, nullptr});
    for (int i = 0; i < 6 && said[on_device].empty(); ++i)
      if (const auto record = record_step(session, "run", {.look_at_updates = true}); record->nan)
        said[on_device] = record->nan->sentence;
  }
  EXPECT_FALSE(said[0].empty());
  EXPECT_EQ(said[0], said[1]);
  const std::vector<std::pair<std::string, std::string>> sample = {{"data.nan_sample", "7"}, {"data.shuffle", "false"}};
  const auto here = recorded_step({}, sample), there = recorded_step(poisoned::device(), sample);
  ASSERT_TRUE(here->nan);
  ASSERT_TRUE(there->nan);
  EXPECT_EQ(there->nan->sentence, here->nan->sentence);
}

}  // namespace
}  // namespace tenon::tracing
