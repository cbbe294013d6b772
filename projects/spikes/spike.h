#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "projects/project.h"

namespace tenon::projects {

/// A step whose loss stands out.
struct Spike {
  int64_t step = 0;  ///< the first one of those that stand out together
  double loss = 0;   ///< of that step; NaN or infinite where it was no number
  double usual = 0;  ///< the median of the losses that it stands out against
  /// The spike is gone where the loss stays below: a third of the way from `usual` to `loss`; two thirds at the first
  /// steps, whose losses would lie above `usual` anyway.
  double limit = 0;
};

/// Of all steps that stand out the one that rises most; nothing where none does. A loss stands out that lies more than
/// ten times their spread (1.4826 medians of the distance from the median, at least a twentieth of the median) above
/// the median of the twenty losses before it. The first steps of a run have none before them, and fall by themselves:
/// one of these stands out that is more than four times the median of the twenty that follow soon, and it is meant
/// where nothing later rises a fourth as far.
std::optional<Spike> find_spike(const std::vector<MetricPoint>& loss);
/// A step that a person names. Throws Error (usage) where it has no loss, or one that is no larger than those around
/// it.
Spike spike_at(const std::vector<MetricPoint>& loss, int64_t step);

}  // namespace tenon::projects
