#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/train/surgery.h"
#include "tests/engine/sessions.h"

namespace tenon::testing_sessions {

/// Small batches of the spirals, at a rate at which a few steps train.
inline Recipe few_spirals(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "26"}, {"epochs", "8"}, {"optimizer.lr", "0.01"}}), set);
}

/// A parent after so many steps, and the session of another model that goes on from there.
struct SurgeryPair {
  std::unique_ptr<TrainingSession> parent, child;
  std::vector<SurgeryRow> rows;

  void begin(const ModelSpec& before, const ModelSpec& after, const Recipe& told, int64_t steps) {
    parent = std::make_unique<TrainingSession>(before, told);
    run(*parent, steps);
    child = std::make_unique<TrainingSession>(after, told);
    rows = child->branch(parent->save(), told, before);
  }
  const SurgeryRow& row(const std::string& tensor) const {
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const SurgeryRow& r) { return r.tensor == tensor; });
    if (at == rows.end()) throw Error("no row " + tensor);
    return *at;
  }
  /// In eval mode, and of the next step as it trains.
  void expect_same_function(double within = 1e-6) {
    const double was = parent->loss_ahead(), is = child->loss_ahead();
    EXPECT_NEAR(is, was, within * std::max(1.0, std::abs(was)));
    EXPECT_EQ(child->steps_done(), parent->steps_done());
    const StepResult a = parent->step(), b = child->step();
    EXPECT_NEAR(b.loss, a.loss, within * std::max(1.0, std::abs(a.loss)));
    EXPECT_EQ(b.rows, a.rows);
    EXPECT_EQ(b.step, a.step);
    EXPECT_GT(a.loss, 0);
  }
};

}  // namespace tenon::testing_sessions
