#pragma once
#include <string>
#include <vector>

#include "projects/search/next_settings.h"

namespace tenon::projects {

/// How much of what differs between trials each key accounts for by itself.
struct Importance {
  struct Share {
    std::string key;
    double share = 0;  ///< of the variance, 0 to 1
  };
  std::vector<Share> shares;  ///< in the order of the space's keys
  double together = 0;        ///< the rest: what only several keys together account for
  std::string too_few;        ///< why nothing can be said yet; then there are no shares
};

/// By functional analysis of variance on a forest of regression trees (Hutter, Hoos & Leyton-Brown, An Efficient
/// Approach for Assessing Hyperparameter Importance, ICML 2014): each tree cuts the space into boxes of one value,
/// whose mean along a key, over all values of the other keys, is computed exactly; the variance of that mean is the
/// key's share of the tree's variance, and a forest's are the means over its trees. `finished`: trials with a value
/// that were trained to their end. The same trials give the same bits.
Importance importance(const SweepPlan& plan, const std::vector<Result>& finished);

}  // namespace tenon::projects
