#include "projects/leaks/leak_replay.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"

namespace tenon::projects {
namespace {

/// Batches are fetched by the thread that steps: no bit depends on it, and nobody else touches memory while it is
/// looked at.
RunInfo without_workers(RunInfo run) {
  const auto change = [](nlohmann::json& j) {
    Recipe recipe = Recipe::from_json(j);
    recipe.set("data.workers", "0");
    j = recipe.to_json();
  };
  change(run.recipe);
  for (RecipeChange& c : run.changes) change(c.recipe);
  return run;
}

}  // namespace

LeakReplay::LeakReplay(Project& project, const RunInfo& run, const LeakPlan& plan, std::function<void()> stepped)
    : stepped_(std::move(stepped)), replayer_(std::make_unique<Replayer>(without_workers(run))) {
  replayer_->load(project.checkpoint_before(run.id, plan.from - 1));
  while (session().steps_done() < plan.from - 1) {
    replayer_->step();
    stepped_();
  }
  try {
    before_ = std::make_unique<MemoryImage>();
  } catch (const Error&) {
    why_not_ = std::current_exception();
  }
  survivors_ = std::make_unique<tracing::Survivors>(session().group());
}

LeakReplay::~LeakReplay() = default;

void LeakReplay::step() {
  losses_.push_back(replayer_->step().loss);
  survivors_->end_step();
  stepped_();
}

std::vector<tracing::Survivors::Block> LeakReplay::survivors_of(const std::vector<tracing::MemoryPlace>& places) const {
  const auto known = survivors_->places();
  std::vector<tracing::Survivors::Block> all = survivors_->live();
  std::erase_if(all, [&](const tracing::Survivors::Block& b) {
    return b.step + 1 >= survivors_->steps() ||
           std::find(places.begin(), places.end(), known[b.place].place) == places.end();
  });
  return all;
}

std::vector<int64_t> LeakReplay::bytes_of(const std::vector<tracing::MemoryPlace>& places) const {
  std::vector<int64_t> sum(static_cast<size_t>(survivors_->steps()));
  for (const auto& p : survivors_->places())
    if (std::find(places.begin(), places.end(), p.place) != places.end())
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += p.bytes[i];
  if (sum.empty()) return sum;
  sum.back() = 0;
  for (const auto& b : survivors_of(places)) sum.back() += b.bytes;
  return sum;
}

std::vector<tracing::Holding> LeakReplay::holders_of(const std::vector<Storage*>& survivors) const {
  if (why_not_) std::rethrow_exception(why_not_);
  return tracing::find_holders(survivors, tracing::KnownObjects(session()), *before_, survivors_.get());
}

void LeakReplay::empty_tensors(const std::vector<tracing::MemoryPlace>& places,
                               const std::set<tracing::TensorOwner>& owners) {
  std::vector<Storage*> targets;
  for (const auto& b : survivors_of(places)) targets.push_back(b.storage);
  left_.clear();
  if (targets.empty()) return;
  const std::set<const Storage*> growing(targets.begin(), targets.end());
  const std::vector<tracing::Holding> found = holders_of(targets);
  // A list is its owner's as a whole, whatever way led to one of its parts.
  std::set<uint64_t> lists;
  for (const tracing::Holding& h : found)
    if (owners.contains(h.owner)) lists.insert(h.container);
  std::map<uint64_t, Tensor> to_empty;  // all of them before any goes: one may go with the graph of another
  for (const tracing::Holding& h : found) {
    if (!owners.contains(h.owner) && !lists.contains(h.container))
      left_.push_back(h);
    else if (const Tensor t = held_tensor(h))
      to_empty.emplace(h.tensor, t);
    else
      left_.push_back(h);
  }
  for (const auto& [address, t] : to_empty) emptier_.empty_out(t, !growing.contains(t.storage()));
}

}  // namespace tenon::projects
