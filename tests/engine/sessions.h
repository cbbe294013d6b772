#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/tensor_bytes.h"
#include "engine/spec/chain.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"

// What tests of sessions share.
namespace tenon::testing_sessions {

using Settings = std::vector<std::pair<std::string, std::string>>;

inline Recipe with(Recipe r, const Settings& set) {
  for (const auto& [key, value] : set) r.set(key, value);
  return r;
}
/// 130 samples of spirals.
inline Recipe spirals(const Settings& set) {
  return with(with({}, {{"data.dataset", "spirals"}, {"data.samples", "130"}}), set);
}
/// Six epochs of them in batches of 16, with callbacks.
inline Recipe accompanied(const std::string& callbacks, const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "16"}, {"epochs", "6"}, {"callbacks", callbacks}}), set);
}
/// Of two numbers, for spirals, with ReLUs between three layers.
inline ModelSpec deep_spirals() {
  return Chain("deep", {2})
      .add("fc1", "Linear", {{"out_features", int64_t{16}}})
      .add("act1", "ReLU")
      .add("fc2", "Linear", {{"out_features", int64_t{12}}})
      .add("act2", "ReLU")
      .add("fc3", "Linear", {{"out_features", int64_t{2}}})
      .done();
}
/// Of two numbers, for spirals.
inline ModelSpec tanh_model() {
  return Chain("test", {2})
      .add("fc1", "Linear", {{"out_features", int64_t{16}}})
      .add("act", "Tanh")
      .add("fc2", "Linear", {{"out_features", int64_t{2}}})
      .done();
}

inline void run(TrainingSession& s, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    s.step();
    if (s.watches_evaluations() && s.evaluation_due()) s.report(s.evaluate());
  }
}

inline void expect_same(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.state, b.state);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  std::vector<char> ca, cb;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].first, b.tensors[i].first);
    EXPECT_EQ(logical_bytes(a.tensors[i].second, ca), logical_bytes(b.tensors[i].second, cb)) << a.tensors[i].first;
  }
}

}  // namespace tenon::testing_sessions
