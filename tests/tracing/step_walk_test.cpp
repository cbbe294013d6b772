// A step op by op: where one goes, where one stops, and what is there.
#include "tracing/record/step_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/state.h"
#include "engine/templates/templates.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tests/messages.h"
#include "tracing/record/memory_history.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_recorder.h"
#include "tracing/record/tensor_versions.h"

namespace tenon::tracing {
namespace {

using testing_words::error_of;

std::shared_ptr<const StepRecord> recorded() {
  static const std::shared_ptr<const StepRecord> record = [] {
    const Template& t = find_template("spirals");
    TrainingSession session(t.model, t.recipe);
    session.step();
    return record_step(session, "run");
  }();
  return record;
}

TEST(StepWalk, goes_through_every_op_and_back) {
  const StepRecord& r = *recorded();
  std::vector<uint32_t> there, back;
  for (uint32_t at = walk_to(r, 0, WalkMove::op, false); at; at = walk_to(r, at, WalkMove::op, false))
    there.push_back(at);
  for (uint32_t at = walk_to(r, static_cast<uint32_t>(r.ops.size()) + 1, WalkMove::op, true); at;
       at = walk_to(r, at, WalkMove::op, true))
    back.push_back(at);
  ASSERT_EQ(there.size(), r.ops.size());
  std::reverse(back.begin(), back.end());
  EXPECT_EQ(there, back);
  std::set<Phase> phases;
  for (uint32_t seq : there) phases.insert(r.ops[seq - 1].origin.phase);
  EXPECT_TRUE(phases.contains(Phase::forward) && phases.contains(Phase::backward) && phases.contains(Phase::optimizer));
  EXPECT_EQ(walk_to(r, there.back(), WalkMove::op, false), 0u);
  EXPECT_EQ(walk_to(r, there.front(), WalkMove::op, true), 0u);
}

TEST(StepWalk, stays_in_a_module_goes_into_one_and_out) {
  StepRecord r;
  const char* modules[] = {"", "a", "a.x", "a.x", "a", "ab", "a.x", ""};
  for (const char* m : modules) {
    OpRecord op;
    op.seq = static_cast<uint32_t>(r.ops.size()) + 1;
    op.name = "op";
    op.origin.module = intern_module(m);
    r.ops.push_back(op);
  }
  EXPECT_EQ(walk_to(r, 2, WalkMove::module, false), 5u);
  EXPECT_EQ(walk_to(r, 5, WalkMove::module, true), 2u);
  EXPECT_EQ(walk_to(r, 4, WalkMove::module, false), 7u);
  EXPECT_EQ(walk_to(r, 2, WalkMove::into, false), 3u);
  EXPECT_EQ(walk_to(r, 1, WalkMove::into, false), 2u);
  EXPECT_EQ(walk_to(r, 7, WalkMove::into, false), 0u);
  EXPECT_EQ(walk_to(r, 3, WalkMove::out, false), 5u);
  EXPECT_EQ(walk_to(r, 2, WalkMove::out, false), 6u);  // "ab" does not lie in "a"
  EXPECT_EQ(walk_to(r, 6, WalkMove::out, true), 5u);
  EXPECT_EQ(walk_to(r, 0, WalkMove::module, false), 1u);
  EXPECT_EQ(walk_to(r, 99, WalkMove::op, false), 0u);
}

TEST(StepWalk, stops_at_modules_ops_and_conditions) {
  const StepRecord& r = *recorded();
  const auto all = [&](const std::string& text) {
    std::vector<uint32_t> at;
    const auto breaks = parse_breaks(text);
    for (WalkRun run = run_to_break(r, 0, breaks, false); run.stop; run = run_to_break(r, at.back(), breaks, false))
      at.push_back(run.stop->seq);
    return at;
  };
  std::vector<uint32_t> linear, fat;
  const std::string layer = [&] {
    for (const OpRecord& op : r.ops)
      if (op.name == "linear") return module_path(op.origin.module);
    return std::string();
  }();
  std::vector<uint32_t> of_layer;
  for (const OpRecord& op : r.ops) {
    if (op.name == "linear") linear.push_back(op.seq);
    if (module_path(op.origin.module) == layer) of_layer.push_back(op.seq);
    for (int t : op.outputs) {
      const Tensor value = value_after(r.tensors[static_cast<size_t>(t)], op.seq);
      double most = 0;
      each_value(value, [&](int64_t, double v) {
        most = std::max(most, std::fabs(v));
        return true;
      });
      if (most > 0.5) {
        fat.push_back(op.seq);
        break;
      }
    }
  }
  ASSERT_GT(linear.size(), 1u);
  ASSERT_GT(of_layer.size(), 1u);
  ASSERT_GT(fat.size(), 3u);
  ASSERT_LT(fat.size(), r.ops.size());
  EXPECT_EQ(all("op linear"), linear);
  EXPECT_EQ(all("op lin*r; op nothing"), linear);
  EXPECT_EQ(all("module " + layer), of_layer);
  EXPECT_EQ(all("max_abs(output(*)) > 0.5"), fat);
  EXPECT_TRUE(all("nonfinite(output(*)) > 0").empty());
  // A pattern is of ops or of modules.
  EXPECT_EQ(all("norm(output(linear)) >= 0"), linear);
  EXPECT_EQ(all("norm(output(" + layer + ")) >= 0"), of_layer);
  // Backwards, and from an op on.
  const WalkRun last = run_to_break(r, static_cast<uint32_t>(r.ops.size()) + 1, parse_breaks("op linear"), true);
  ASSERT_TRUE(last.stop);
  EXPECT_EQ(last.stop->seq, linear.back());
  const WalkRun hit = run_to_break(r, 0, parse_breaks("op nothing; max_abs(output(*)) > 0.5"), false);
  EXPECT_EQ(hit.stop->which, 1u);
  EXPECT_GE(hit.stop->output, 0);
  EXPECT_GT(hit.stop->value, 0.5);
}

TEST(StepWalk, a_module_stands_for_what_lies_below_it) {
  StepRecord r;
  for (const char* m : {"a", "ab", "a.x.y"}) {
    OpRecord op;
    op.seq = static_cast<uint32_t>(r.ops.size()) + 1;
    op.name = "op";
    op.origin.module = intern_module(m);
    r.ops.push_back(op);
  }
  EXPECT_EQ(run_to_break(r, 0, parse_breaks("module a"), false).stop->seq, 1u);
  EXPECT_EQ(run_to_break(r, 1, parse_breaks("module a"), false).stop->seq, 3u);
  EXPECT_EQ(run_to_break(r, 1, parse_breaks("module a.*"), false).stop->seq, 3u);
  EXPECT_FALSE(run_to_break(r, 3, parse_breaks("module a"), false).stop);
}

TEST(StepWalk, what_was_not_kept_is_counted_and_judged_by_nobody) {
  const Template& t = find_template("spirals");
  TrainingSession session(t.model, t.recipe);
  const auto r = record_step(session, "run", {.keep_bytes = 0});
  const WalkRun run = run_to_break(*r, 0, parse_breaks("max_abs(output(*)) >= 0"), false);
  EXPECT_FALSE(run.stop);
  EXPECT_GT(run.unknown, 10);
}

TEST(StepWalk, a_break_that_is_none_is_refused) {
  EXPECT_SAYS(error_of([] { parse_breaks("module"); }), "a pattern of names is missing");
  EXPECT_SAYS(error_of([] { parse_breaks("op "); }), "a pattern of names is missing");
  EXPECT_SAYS(error_of([] { parse_breaks("max_abs(grad(*)) > 1"); }), "break: \"max_abs(grad(*)) > 1\", character 9");
  EXPECT_SAYS(error_of([] { parse_breaks("max_abs(grad(*)) > 1"); }), "output(...) is expected");
  EXPECT_SAYS(error_of([] { parse_breaks("loss > 1"); }), "there is no measure \"loss\"");
  EXPECT_SAYS(error_of([] { parse_breaks("max_abs(output(*)) > 2 * median(loss, 3)"); }), "a condition ends here");
  EXPECT_SAYS(error_of([] { parse_breaks("ratio(output(*)) > 2"); }), "is of an update");
  EXPECT_SAYS(error_of([] { parse_breaks("max(output(*)) > 2 every 3"); }), "a condition ends here");
  EXPECT_TRUE(parse_breaks(" ; ").empty());
}

TEST(StepWalk, the_tensors_of_an_op_have_their_values_before_and_after_it) {
  const StepRecord& r = *recorded();
  int written = 0, outputs = 0;
  for (const OpRecord& op : r.ops) {
    for (const WalkTensor& w : tensors_at(r, op.seq)) {
      if (w.role == WalkTensor::Role::input) {
        ASSERT_TRUE(w.before.defined() && w.after.defined()) << op.name;
        EXPECT_EQ(statistics(w.before).norm, statistics(w.after).norm) << op.name;
      } else if (w.role == WalkTensor::Role::output) {
        EXPECT_FALSE(w.before.defined()) << op.name;
        EXPECT_TRUE(w.after.defined()) << op.name;
        ++outputs;
      } else {
        ASSERT_TRUE(w.before.defined() && w.after.defined()) << op.name;
        EXPECT_NE(statistics(w.before).norm, statistics(w.after).norm) << op.name;
        ++written;
      }
    }
  }
  EXPECT_GT(outputs, 10);
  EXPECT_GE(written, 8);  // weights and moments
  EXPECT_TRUE(tensors_at(r, 0).empty());
  EXPECT_TRUE(tensors_at(r, 9999).empty());
}

TEST(StepWalk, what_is_alive_is_what_the_pool_has_given_out) {
  const StepRecord& r = *recorded();
  const auto lives = tensor_lives(r);
  ASSERT_EQ(lives.size(), r.tensors.size());
  int ended = 0;
  for (size_t i = 0; i < lives.size(); ++i) {
    const TensorRecord& t = r.tensors[i];
    if (t.category == Category::parameter) {
      EXPECT_TRUE(lives[i].at(1) && lives[i].at(99999)) << t.name;
    }
    if (t.producer) {
      EXPECT_FALSE(lives[i].at(0)) << t.name;
    }
    if (lives[i].to == UINT32_MAX) continue;
    ++ended;
    EXPECT_LE(lives[i].from, lives[i].to) << t.name;
    // Whoever reads it does so while it is there.
    for (const OpRecord& op : r.ops)
      for (int in : op.inputs)
        if (in == static_cast<int>(i)) {
          EXPECT_TRUE(lives[i].at(op.seq)) << t.name << " read by " << op.name << op.seq;
        }
  }
  EXPECT_GT(ended, 10);
  // At each op the bytes are about those of the memory history: it has blocks that no op knows, and rounds up.
  for (uint32_t seq : {3u, static_cast<uint32_t>(r.ops.size() / 2)}) {
    std::set<uint32_t> counted;
    double bytes = 0, pool = 0;
    for (size_t i = 0; i < lives.size(); ++i)
      if (lives[i].at(seq) && r.tensors[i].producer && counted.insert(r.tensors[i].storage).second)
        bytes += static_cast<double>(r.tensors[i].layout.numel()) * static_cast<double>(itemsize(r.tensors[i].dtype));
    for (const AllocEvent& a : r.allocs)
      if (a.origin.seq >= 1 && (a.bytes > 0 ? a.origin.seq <= seq : a.origin.seq < seq))
        pool += static_cast<double>(a.bytes);
    EXPECT_GT(bytes, 0);
    EXPECT_LE(bytes, pool * 1.01 + 4096) << seq;
  }
}

}  // namespace
}  // namespace tenon::tracing
