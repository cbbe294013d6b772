// Causes that lie in one layer: how it began, and its updates.
#include <fmt/format.h>

#include "core/error.h"
#include "projects/spikes/cause.h"

namespace tenon::projects {
namespace {

constexpr int64_t kFarthestStart = 100;  // steps after which starting values are no longer asked for

/// Of replays that differ in one layer each, the one in which the spike is gone and the loss lowest.
template <class TrialOf>
std::optional<Culprit> ask_each_layer(Inquiry& q, const char* what, const TrialOf& trial_of) {
  std::optional<Culprit> best;
  for (const std::string& layer : q.layers()) {
    const Tried& t = q.replay(trial_of(layer));
    if (t.gone && (!best || t.highest < best->tried->highest))
      best = Culprit{fmt::format("{} {}", what, layer), &t, {}, layer};
  }
  return best;
}

std::string start_ruled_out(Inquiry& q) {
  if (q.run().branch) return "the run is a branch: its weights began in " + q.run().branch.name;
  if (q.last() > kFarthestStart)
    return fmt::format("the spike stands more than {} steps after the start", kFarthestStart);
  return {};
}

const bool registered_layer_causes[] = {
    register_cause({.name = "start",
                    .title = "The starting values of a layer",
                    .order = 50,
                    .ruled_out = start_ruled_out,
                    .most =
                        [](Inquiry& q) {
                          const auto n = static_cast<int64_t>(q.layers().size());
                          return ReplayCost{n, n * q.last()};
                        },
                    .ask =
                        [](Inquiry& q) {
                          return ask_each_layer(q, "the starting values of", [](const std::string& layer) {
                            return Counterfactual{0,
                                                  {{"init.anew", layer + ".*"}},
                                                  fmt::format("with other starting values of {}", layer)};
                          });
                        }}),
    register_cause({.name = "update",
                    .title = "The updates of one layer",
                    .order = 70,
                    .ruled_out =
                        [](Inquiry& q) {
                          return q.layers().size() < 2 ? std::string("there is one layer that is trained")
                                                       : std::string();
                        },
                    .most =
                        [](Inquiry& q) {
                          const auto n = static_cast<int64_t>(q.layers().size());
                          return ReplayCost{n, n * (q.last() - q.first() + 1)};
                        },
                    .ask =
                        [](Inquiry& q) {
                          const std::string frozen = q.recipe_after(q.first() - 1).text("init.freeze");
                          return ask_each_layer(q, "the updates of", [&](const std::string& layer) {
                            return Counterfactual{
                                q.first() - 1,
                                {{"init.freeze", (frozen.empty() ? "" : frozen + "; ") + layer + ".*"}},
                                fmt::format("without updates of {} after step {}", layer, q.first() - 1)};
                          });
                        }}),
};

}  // namespace
}  // namespace tenon::projects
