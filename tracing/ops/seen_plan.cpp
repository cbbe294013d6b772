#include "tracing/ops/seen_plan.h"

#include <algorithm>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"

namespace tenon::tracing {
namespace {

/// What is left of a piece beside another one that begins later in the same memory.
void cut(const ArenaPiece& p, const ArenaPiece& by, std::vector<ArenaPiece>& left) {
  if (by.from >= p.to || by.to <= p.from || by.begin >= p.end || by.end <= p.begin) return left.push_back(p);
  const auto add = [&](int from, int to, int64_t begin, int64_t end) {
    if (from < to && begin < end) left.push_back({p.kernel, from, to, begin, end});
  };
  const int from = std::max(p.from, by.from), to = std::min(p.to, by.to);
  add(p.from, from, p.begin, p.end);
  add(from, to, p.begin, by.begin);
  add(from, to, by.end, p.end);
  add(to, p.to, p.begin, p.end);
}

/// Blocks that are needed at once lie apart, but a kernel may write into the block of another one, all of it or a part:
/// from there on that memory is of its result.
void lay_pieces(SeenPlan& plan) {
  std::vector<std::vector<ArenaPiece>> of(plan.kernels.size());
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const PlannedKernel& k = plan.kernels[i];
    if (k.arena_bytes <= 0) continue;
    const ArenaPiece whole{static_cast<int>(i), static_cast<int>(i), std::max(k.row.last, static_cast<int>(i)) + 1,
                           k.row.offset, k.row.offset + k.arena_bytes};
    for (size_t before = 0; before < i; ++before) {
      PlannedKernel& b = plan.kernels[before];
      if (b.row.last < whole.from || b.arena_bytes <= 0 || b.row.offset >= whole.end ||
          b.row.offset + b.arena_bytes <= whole.begin)
        continue;
      if (b.taken_by < 0) b.taken_by = static_cast<int>(i);
      std::vector<ArenaPiece> left;
      for (const ArenaPiece& p : of[before]) cut(p, whole, left);
      of[before] = std::move(left);
    }
    of[i].push_back(whole);
  }
  const int most = static_cast<int>(plan.kernels.size());
  for (size_t i = 0; i < of.size(); ++i) {
    PlannedKernel& k = plan.kernels[i];
    bool gone = k.taken_by >= 0;
    for (ArenaPiece& p : of[i]) {
      p.to = std::min(p.to, most);
      plan.pieces.push_back(p);
      gone &= p.to <= k.taken_by;
    }
    if (!gone) continue;  // the memory is needed for longer, but not this value
    k.row.last = k.taken_by;
  }
}

void find_peak(SeenPlan& plan) {
  std::vector<int64_t> change(plan.kernels.size() + 1);
  for (const ArenaPiece& p : plan.pieces) {
    change[static_cast<size_t>(p.from)] += p.end - p.begin;
    change[static_cast<size_t>(p.to)] -= p.end - p.begin;
  }
  int64_t live = 0;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    live += change[i];
    if (live <= plan.peak_bytes) continue;
    plan.peak_bytes = live;
    plan.peak = static_cast<int>(i);
  }
  for (const ArenaPiece& p : plan.pieces)
    if (p.from <= plan.peak && plan.peak < p.to)
      plan.kernels[static_cast<size_t>(p.kernel)].peak_bytes += p.end - p.begin;
}

}  // namespace

SeenPlan seen_plan(const StepPlan& plan) {
  SeenPlan seen;
  seen.figures = plan.figures();
  for (StepPlanRow& row : plan.rows()) {
    const auto at = static_cast<int>(seen.kernels.size());
    const auto& out = plan.trace().steps[static_cast<size_t>(at)].out;
    PlannedKernel k{std::move(row)};
    if (k.row.last < 0) k.row.last = at;
    if (k.row.offset >= 0 && !out.empty())
      k.arena_bytes = out.front().layout.size.product() * static_cast<int64_t>(itemsize(out.front().dtype));
    seen.kernels.push_back(std::move(k));
  }
  lay_pieces(seen);
  find_peak(seen);
  return seen;
}

SeenPlan see_plan(TrainingSession& session, const std::function<bool(int64_t done, int64_t total)>& go_on) {
  Recipe recipe = session.recipe();
  recipe.set("compile", "true");
  session.change(recipe);
  const int64_t first = session.steps_done() + 1,
                steps = std::min(kStepsUntilPlanned, session.total_steps() - session.steps_done());
  for (int64_t i = 0; i < steps; ++i) {
    if (go_on && !go_on(i, steps)) throw Error("cancelled");
    session.step();
  }
  SeenPlan seen;
  if (const StepPlan* plan = session.plan()) seen = seen_plan(*plan);
  seen.told = session.planned();
  if (!seen.planned() && seen.told.empty())
    seen.told = {"too few steps of the run are left: two with batches of one size are traced"};
  if (steps > 0) seen.first_step = first, seen.last_step = session.steps_done();
  return seen;
}

}  // namespace tenon::tracing
