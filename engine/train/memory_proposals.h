#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/memory_forecast.h"

namespace tenon {

/// A change of the recipe that needs less memory, with what it would then need: a forecast of the changed recipe, not
/// an estimate of the difference.
struct MemoryProposal {
  enum class Kind { recompute, accumulate, low_precision, optimizer, smaller_batch };
  Kind kind = Kind::recompute;
  std::vector<std::pair<std::string, std::string>> set;  ///< keys of the recipe, as they are typed
  MemoryForecast then;
  int64_t saved_bytes = 0;  ///< of MemoryForecast::needed_bytes()
  double time = 1;          ///< of a sample, as a multiple of what it takes now (MemoryForecast::seconds)
  bool same_steps = false;  ///< the weights go the same way, but for the rounding of sums that are added in other parts
};

/// `recipe` as a proposal makes it.
Recipe applied(const Recipe& recipe, const MemoryProposal& proposal);

/// What would save at least a hundredth of what `now` needs, the largest saving first; of each kind the best or the
/// nearest.
std::vector<MemoryProposal> memory_proposals(const ModelSpec& spec, const Recipe& recipe,
                                             const std::shared_ptr<const data::Split>& data, const MemoryForecast& now,
                                             const Cancelled& cancelled = {});

}  // namespace tenon
