#include "projects/leaks/leak_replay.h"

#include <algorithm>
#include <map>

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
  survivors_ = std::make_unique<tracing::Survivors>(session().group());
}

LeakReplay::~LeakReplay() = default;

void LeakReplay::step() {
  losses_.push_back(replayer_->step().loss);
  survivors_->end_step();
  stepped_();
}

void LeakReplay::empty_tensors(const std::vector<tracing::MemoryPlace>& places,
                               const std::set<tracing::TensorOwner>& owners) {
  const auto known_places = survivors_->places();
  std::vector<Storage*> targets;
  for (const auto& b : survivors_->live())
    if (b.step + 1 < survivors_->steps() &&
        std::find(places.begin(), places.end(), known_places[b.place].place) != places.end())
      targets.push_back(b.storage);
  left_.clear();
  if (targets.empty()) return;
  const std::set<const Storage*> growing(targets.begin(), targets.end());
  const std::vector<tracing::Holding> found =
      tracing::find_holders(targets, tracing::KnownObjects(session()), survivors_.get());
  // A list is its owner's as a whole, whatever way led to one of its parts.
  std::set<uint64_t> lists;
  for (const tracing::Holding& h : found)
    if (owners.contains(h.owner)) lists.insert(h.container);
  std::vector<Tensor> alive;            // one may go with the graph of another
  std::map<TensorImpl*, bool> emptied;  // and whether its values stay; before any goes
  for (const tracing::Holding& h : found) {
    if (!h.tensor || (!owners.contains(h.owner) && !lists.contains(h.container)))
      left_.push_back(h);
    else if (emptied.try_emplace(h.tensor, !growing.contains(h.tensor->storage.get())).second)
      alive.push_back(Tensor(Ref<TensorImpl>::share(h.tensor)));
  }
  for (const auto& [tensor, keep_values] : emptied) emptier_.empty_out(*tensor, keep_values);
  alive.clear();
}

}  // namespace tenon::projects
