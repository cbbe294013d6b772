// Values as of an op: what was there before each write and after it.
#include "tracing/record/tensor_versions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/state.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/poisoned_device.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_recorder.h"

namespace tenon::tracing {
namespace {

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> all;
  each_value(t, [&](int64_t, double v) {
    all.push_back(v);
    return true;
  });
  return all;
}

struct Recorded {
  Checkpoint before, after;
  std::shared_ptr<const StepRecord> record;
};
Recorded record_with(const RecordOptions& options = {}, Device device = {}) {
  const Template& t = find_template("spirals");
  Recipe recipe = t.recipe;
  recipe.set("optimizer.type", "adam");
  recipe.set("optimizer.clip_norm", "1e-3");  // every gradient is scaled down in its place
  TrainingSession session(t.model, recipe, {device, nullptr});
  for (int i = 0; i < 4; ++i) session.step();
  Recorded r;
  r.before = session.save();
  r.record = record_step(session, "run", options);
  r.after = session.save();
  return r;
}

const TensorRecord* find(const StepRecord& r, const std::string& name) {
  for (const TensorRecord& t : r.tensors)
    if (t.name == name) return &t;
  return nullptr;
}

void expect_states(const Recorded& r) {
  const auto last = static_cast<uint32_t>(r.record->ops.size());
  std::map<std::string, Tensor> after(r.after.tensors.begin(), r.after.tensors.end());
  int parameters = 0, states = 0;
  for (const auto& [name, tensor] : r.before.tensors) {
    const std::string plain = name.substr(name.find('/') + 1);
    const TensorRecord* t = find(*r.record, plain);
    ASSERT_NE(t, nullptr) << name;
    EXPECT_EQ(numbers(value_after(*t, 0)), numbers(tensor)) << name;
    EXPECT_EQ(numbers(value_after(*t, last)), numbers(after.at(name))) << name;
    ASSERT_EQ(t->versions.size(), 2u) << name;  // written once
    const uint32_t writer = t->versions.back().from;
    const OpRecord& op = r.record->ops.at(writer - 1);
    EXPECT_EQ(op.origin.phase, Phase::optimizer) << op.name;
    EXPECT_EQ(numbers(value_before(*t, writer)), numbers(tensor)) << name;
    EXPECT_EQ(numbers(value_after(*t, writer)), numbers(after.at(name))) << name;
    (name.starts_with("model/") ? parameters : states) += 1;
  }
  EXPECT_GE(parameters, 4);
  EXPECT_GE(states, 8);
}

TEST(TensorVersions, weights_and_what_the_optimizer_remembers_are_known_before_and_after_its_op) {
  expect_states(record_with());
}

TEST(TensorVersions, also_on_a_device_whose_memory_the_host_cannot_read) {
  expect_states(record_with({}, poisoned::device()));
}

TEST(TensorVersions, a_gradient_is_known_before_and_after_it_was_clipped) {
  const Recorded r = record_with();
  int clipped = 0;
  for (const TensorRecord& t : r.record->tensors) {
    if (!t.name.starts_with("grad of ")) continue;
    ASSERT_GE(t.versions.size(), 2u) << t.name;
    const uint32_t clip = t.versions.back().from;
    EXPECT_EQ(r.record->ops.at(clip - 1).origin.phase, Phase::optimizer);
    const auto before = numbers(value_before(t, clip)), after = numbers(value_after(t, clip));
    ASSERT_EQ(before.size(), after.size());
    double norm_before = 0, norm_after = 0;
    for (size_t i = 0; i < before.size(); ++i) norm_before += before[i] * before[i], norm_after += after[i] * after[i];
    EXPECT_GT(norm_before, norm_after) << t.name;
    EXPECT_GT(norm_after, 0) << t.name;
    ++clipped;
  }
  EXPECT_GE(clipped, 4);
}

TEST(TensorVersions, what_nothing_writes_over_keeps_its_one_value) {
  const Recorded r = record_with();
  int whole = 0;
  for (const TensorRecord& t : r.record->tensors) {
    if (!t.versions.empty() || !t.value.defined()) continue;
    ++whole;
    EXPECT_TRUE(value_after(t, 0).same(t.value));
    EXPECT_TRUE(value_before(t, 1u << 30).same(t.value));
  }
  EXPECT_GT(whole, 10);
}

TEST(TensorVersions, without_clocks_the_values_are_the_same_and_the_session_too) {
  const Recorded with = record_with(), without = record_with({.clocks = false});
  EXPECT_TRUE(without.record->allocs.empty());
  ASSERT_EQ(with.record->tensors.size(), without.record->tensors.size());
  const auto last = static_cast<uint32_t>(with.record->ops.size());
  for (size_t i = 0; i < with.record->tensors.size(); ++i) {
    const TensorRecord &a = with.record->tensors[i], &b = without.record->tensors[i];
    EXPECT_EQ(a.producer, b.producer) << a.name;
    for (const uint32_t seq : {uint32_t{0}, last / 2, last}) {
      const Tensor x = value_after(a, seq), y = value_after(b, seq);
      ASSERT_EQ(x.defined(), y.defined()) << a.name;
      if (x.defined()) {
        EXPECT_EQ(numbers(x), numbers(y)) << a.name;
      }
    }
  }
  ASSERT_EQ(with.after.tensors.size(), without.after.tensors.size());
  for (size_t i = 0; i < with.after.tensors.size(); ++i)
    EXPECT_EQ(numbers(with.after.tensors[i].second), numbers(without.after.tensors[i].second));
}

TEST(TensorVersions, where_there_is_no_room_values_are_missing_and_never_wrong) {
  const Recorded whole = record_with();
  for (const int64_t room : {int64_t{0}, int64_t{3000}, int64_t{20000}}) {
    const Recorded r = record_with({.keep_bytes = room});
    int missing = 0;
    int64_t kept = 0;
    for (size_t i = 0; i < r.record->tensors.size(); ++i) {
      const TensorRecord &t = r.record->tensors[i], &known = whole.record->tensors[i];
      ASSERT_EQ(t.producer, known.producer) << t.name;
      for (uint32_t seq = 0; seq <= r.record->ops.size(); seq += 7) {
        const Tensor x = value_after(t, seq), y = value_after(known, seq);
        missing += !x.defined() && y.defined();
        if (x.defined() && y.defined()) {
          EXPECT_EQ(numbers(x), numbers(y)) << t.name << " " << seq;
        }
      }
      if (t.value.defined() && t.versions.empty()) kept += static_cast<int64_t>(t.value.nbytes());
    }
    EXPECT_GT(missing, 0);
    EXPECT_LE(kept, room);
  }
}

TEST(TensorVersions, a_record_stays_what_it_was_while_the_session_goes_on) {
  const Template& t = find_template("spirals");
  TrainingSession session(t.model, t.recipe);
  session.step();
  const auto r = record_step(session, "run");
  std::vector<std::vector<double>> before;
  const auto last = static_cast<uint32_t>(r->ops.size());
  for (const TensorRecord& one : r->tensors) before.push_back(numbers(value_after(one, last)));
  for (int i = 0; i < 3; ++i) session.step();
  for (size_t i = 0; i < r->tensors.size(); ++i)
    EXPECT_EQ(numbers(value_after(r->tensors[i], last)), before[i]) << r->tensors[i].name;
}

}  // namespace
}  // namespace tenon::tracing
