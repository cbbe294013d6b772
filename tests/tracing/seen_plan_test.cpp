// What the steps of a session come to as a plan: where values lie never overlaps, kernels have the numbers of a
// record's ops, and what keeps a step from a plan is told.
#include "tracing/ops/seen_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/messages.h"
#include "tracing/ops/plan_page.h"

namespace tenon::tracing {
namespace {

using testing_words::error_of;

Recipe few_of(const Template& t) {
  Recipe r = t.recipe;
  r.set("data.batch_size", "3");
  if (r.fallback("data.workers") != r.at("data.workers")) r.set("data.workers", "0");
  return r;
}

TEST(SeenPlan, PiecesOfTheArenaNeverOverlapAndTheirPeakFits) {
  for (const char* name : {"spirals", "fashion-cnn", "byte-gpt"}) {
    SCOPED_TRACE(name);
    const Template& t = find_template(name);
    TrainingSession s(t.model, few_of(t));
    const SeenPlan plan = see_plan(s);
    ASSERT_TRUE(plan.planned()) << plan.told.front();
    EXPECT_EQ(static_cast<int64_t>(plan.kernels.size()), plan.figures.kernels);
    EXPECT_EQ(plan.first_step, 1);
    EXPECT_EQ(plan.last_step, 3);
    for (size_t i = 0; i < plan.pieces.size(); ++i) {
      const ArenaPiece& a = plan.pieces[i];
      ASSERT_LT(a.from, a.to);
      ASSERT_LT(a.begin, a.end);
      ASSERT_GE(a.from, a.kernel);
      ASSERT_LE(a.to, static_cast<int>(plan.kernels.size()));
      ASSERT_LE(a.end, plan.figures.arena_bytes);
      for (size_t k = 0; k < i; ++k) {
        const ArenaPiece& b = plan.pieces[k];
        const bool apart = a.to <= b.from || b.to <= a.from || a.end <= b.begin || b.end <= a.begin;
        ASSERT_TRUE(apart) << plan.kernels[static_cast<size_t>(a.kernel)].row.op << " " << a.from << " over "
                           << plan.kernels[static_cast<size_t>(b.kernel)].row.op << " " << b.from;
      }
    }
    // Each value has its memory when it is computed.
    for (size_t i = 0; i < plan.kernels.size(); ++i)
      if (plan.kernels[i].arena_bytes > 0) {
        int64_t has = 0;
        for (const ArenaPiece& p : plan.pieces)
          if (p.kernel == static_cast<int>(i) && p.from == static_cast<int>(i)) has += p.end - p.begin;
        EXPECT_EQ(has, plan.kernels[i].arena_bytes) << plan.kernels[i].row.op;
      }
    // Its memory is its own until the last kernel that needs it, or one that puts its own result there.
    for (const ArenaPiece& p : plan.pieces) {
      const PlannedKernel& k = plan.kernels[static_cast<size_t>(p.kernel)];
      EXPECT_LE(p.to, k.row.last == k.taken_by ? k.row.last : k.row.last + 1) << k.row.op;
    }
    EXPECT_GT(plan.peak_bytes, 0);
    EXPECT_LE(plan.peak_bytes, plan.figures.arena_bytes);
    int64_t alive = 0;
    for (const PlannedKernel& k : plan.kernels) alive += k.peak_bytes;
    EXPECT_EQ(alive, plan.peak_bytes);
  }
}

TEST(SeenPlan, WhatKeepsAStepFromAPlanIsTold) {
  const Template& t = find_template("spirals");
  Recipe r = t.recipe;
  r.set("data.micro_batches", "2");
  TrainingSession parts(t.model, r);
  const SeenPlan none = see_plan(parts);
  EXPECT_FALSE(none.planned());
  EXPECT_TRUE(none.pieces.empty());
  EXPECT_NE(plan_page(none).sentence.find("data.micro_batches adds gradients up"), std::string::npos);
  EXPECT_FALSE(plan_page(none).ok);
  // One step alone is none that could be traced twice.
  r = t.recipe;
  r.set("max_steps", "1");
  TrainingSession one(t.model, r);
  const SeenPlan short_run = see_plan(one);
  EXPECT_FALSE(short_run.planned());
  EXPECT_NE(plan_page(short_run).sentence.find("too few steps"), std::string::npos) << plan_page(short_run).sentence;
  EXPECT_EQ(see_plan(one).last_step, 0) << "none is left";
}

TEST(SeenPlan, ItIsCancelledBetweenSteps) {
  const Template& t = find_template("spirals");
  TrainingSession s(t.model, t.recipe);
  EXPECT_EQ(error_of([&] {
              see_plan(s, [](int64_t done, int64_t total) {
                EXPECT_EQ(total, kStepsUntilPlanned);
                return done < 1;
              });
            }),
            "cancelled");
  EXPECT_EQ(s.steps_done(), 1);
}

TEST(SeenPlan, KernelsThatRunAgainAreCountedAndSaid) {
  const Template& t = find_template("byte-gpt");
  Recipe r = few_of(t);
  const auto plan_with = [&](const char* recompute) {
    r.set("recompute", recompute);
    TrainingSession s(t.model, r);
    return see_plan(s);
  };
  const SeenPlan kept = plan_with("0"), again = plan_with("1");
  EXPECT_LT(again.peak_bytes, kept.peak_bytes);
  EXPECT_EQ(plan_page(kept).sentence.find("again"), std::string::npos);
  const Finding page = plan_page(again);
  EXPECT_SAYS(page.sentence, std::to_string(again.figures.again) + " of the kernels compute again what was not kept");
  int64_t said = 0;
  for (const auto& row : page.tables.front().rows) said += std::get<std::string>(row[1]).ends_with(", again");
  EXPECT_EQ(said, again.figures.again);
  EXPECT_GT(said, 0);
}

TEST(SeenPlan, ThePageHasARowForEachKernelAndSaysChains) {
  const Template& t = find_template("spirals");
  TrainingSession s(t.model, t.recipe);
  SeenPlan plan = see_plan(s);
  ASSERT_GT(plan.kernels.size(), 3u);
  plan.kernels[1].row.chain = 7;
  plan.kernels[2].row.why = "its input is needed whole";
  const Finding page = plan_page(plan);
  const Table& table = page.tables.front();
  ASSERT_EQ(table.rows.size(), plan.kernels.size());
  const auto column = [&](const char* name) {
    return static_cast<size_t>(
        std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& c) { return c.name == name; }) -
        table.columns.begin());
  };
  EXPECT_EQ(std::get<int64_t>(table.rows[1][column("chain")]), 7);
  EXPECT_EQ(std::get<std::string>(table.rows[2][column("chain")]), "");
  EXPECT_EQ(std::get<std::string>(table.rows[2][column("why")]), "its input is needed whole");
}

}  // namespace
}  // namespace tenon::tracing
