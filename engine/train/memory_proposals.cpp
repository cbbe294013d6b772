#include "engine/train/memory_proposals.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/optim/optimizer.h"
#include "engine/spec/model_spec.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

using Kind = MemoryProposal::Kind;
using Setting = std::pair<std::string, std::string>;

double seconds_a_sample(const MemoryForecast& f) {
  return f.seconds / static_cast<double>(std::max<int64_t>(1, f.batch));
}

/// Forecasts of recipes that differ from one in a few keys.
class Trials {
 public:
  Trials(const ModelSpec& spec, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
         const MemoryForecast& now, const Cancelled& cancelled)
      : spec_(spec), recipe_(recipe), data_(data), now_(now), cancelled_(cancelled) {}
  /// Nothing where the change does not go with the rest of the recipe.
  std::optional<MemoryProposal> of(Kind kind, std::vector<Setting> set) const {
    if (cancelled_ && cancelled_()) throw Error("the forecast of memory was cancelled");
    MemoryProposal p{.kind = kind, .set = std::move(set)};
    try {
      p.then = forecast_memory(spec_, applied(recipe_, p), data_);
    } catch (const Error&) {
      return {};
    }
    p.saved_bytes = now_.needed_bytes() - p.then.needed_bytes();
    p.time = now_.seconds > 0 ? seconds_a_sample(p.then) / seconds_a_sample(now_) : 1;
    p.same_steps = kind == Kind::recompute || kind == Kind::accumulate;
    return p;
  }
  /// Whichever saves most; of two that save about as much the quicker one.
  std::optional<MemoryProposal> best(Kind kind, const std::vector<std::vector<Setting>>& changes) const {
    std::optional<MemoryProposal> best;
    for (const auto& set : changes) {
      auto p = of(kind, set);
      if (!p) continue;
      const int64_t alike = now_.needed_bytes() / 200;
      if (!best || p->saved_bytes > best->saved_bytes + alike ||
          (p->saved_bytes > best->saved_bytes - alike && p->time < best->time))
        best = std::move(p);
    }
    return best;
  }

 private:
  const ModelSpec& spec_;
  const Recipe& recipe_;
  const std::shared_ptr<const data::Split>& data_;
  const MemoryForecast& now_;
  const Cancelled& cancelled_;
};

/// Stretches to try: the square root of the layers is the classic choice; the best one lies around it.
std::vector<std::vector<Setting>> stretches(const ModelSpec& spec) {
  std::vector<std::vector<Setting>> all;
  const auto layers = static_cast<double>(spec.layers.size());
  int64_t last = 1;
  for (double share : {0.5, 1.0, 2.0}) {
    const int64_t n = std::max<int64_t>(2, std::llround(share * std::sqrt(layers)));
    if (n > last) all.push_back({{"recompute", std::to_string(n)}});
    last = n;
  }
  return all;
}

}  // namespace

Recipe applied(const Recipe& recipe, const MemoryProposal& proposal) {
  Recipe r = recipe;
  for (const auto& [key, text] : proposal.set) r.set(key, text);
  return r;
}

std::vector<MemoryProposal> memory_proposals(const ModelSpec& spec, const Recipe& recipe,
                                             const std::shared_ptr<const data::Split>& data, const MemoryForecast& now,
                                             const Cancelled& cancelled) {
  const Trials trials(spec, recipe, data, now, cancelled);
  std::vector<MemoryProposal> all;
  const auto offer = [&](std::optional<MemoryProposal> p) {
    if (p && p->saved_bytes > 0 && p->saved_bytes >= now.needed_bytes() / 100) all.push_back(std::move(*p));
  };
  if (recipe.integer("recompute") < 2) offer(trials.best(Kind::recompute, stretches(spec)));
  const int64_t batch = recipe.integer("data.batch_size"), parts = recipe.integer("data.micro_batches");
  for (int64_t more : {2, 4})
    if (parts * more <= batch)
      offer(trials.of(Kind::accumulate, {{"data.micro_batches", std::to_string(parts * more)}}));
  if (recipe.text("amp") == "none") offer(trials.of(Kind::low_precision, {{"amp", "bf16"}}));
  if (batch >= 2) offer(trials.of(Kind::smaller_batch, {{"data.batch_size", std::to_string(batch / 2)}}));
  std::vector<MemoryProposal> others;
  for (const optim::OptimizerDef& def : optim::optimizers()) {
    if (def.name == recipe.text("optimizer.type")) continue;
    if (auto p = trials.of(Kind::optimizer, {{"optimizer.type", def.name}})) others.push_back(std::move(*p));
  }
  // The least that an optimizer needs, and the least of those that remember something.
  const auto less = [](const MemoryProposal& a, const MemoryProposal& b) {
    return std::make_pair(-a.saved_bytes, a.time) < std::make_pair(-b.saved_bytes, b.time);
  };
  std::sort(others.begin(), others.end(), less);
  const auto optimizer_bytes = [](const MemoryForecast& f) {
    return f.at_peak[static_cast<size_t>(Category::optimizer)];
  };
  if (!others.empty()) {
    const int64_t least = optimizer_bytes(others.front().then);
    const auto next = std::find_if(others.begin(), others.end(),
                                   [&](const MemoryProposal& p) { return optimizer_bytes(p.then) > least; });
    if (next != others.end()) offer(*next);
    offer(others.front());
  }
  std::stable_sort(all.begin(), all.end(), less);
  return all;
}

}  // namespace tenon
