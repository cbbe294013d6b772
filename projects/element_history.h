#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/layout.h"
#include "projects/time_travel.h"

namespace tenon::projects {

/// One element of a tensor as one op found and left it.
struct ElementWrite {
  uint32_t seq = 0;
  std::string op, module, phase;
  double before = 0, after = 0;  ///< NaN where it was not kept
};
/// What became of the element in one step.
struct ElementStep {
  int64_t step = 0;
  std::string missing;               ///< not empty: the step has no such tensor, or none of that size
  bool had = false;                  ///< it was there before the first op
  double before = 0, after = 0;      ///< `before` where it was; NaN where it was not kept
  std::vector<ElementWrite> writes;  ///< the op that made the tensor, where one did, and those that wrote over it
};
/// One element over the last steps of a run.
struct ElementHistory {
  std::string run, tensor;
  Dims element;
  std::vector<ElementStep> steps;
};

struct ElementQuery {
  /// As a recorded step calls it: "fc1.weight", "grad of fc1.weight", "fc1.weight/momentum", "linear #4".
  std::string tensor;
  Dims element;
  int64_t step = 0;   ///< the last one
  int64_t last = 20;  ///< how many; fewer where the run has not done so many
};
/// By replays of those steps, bit for bit. Throws Error (usage) for a step that the run has not done, for a tensor that
/// the first of the steps does not have (naming near ones), and for an element that it does not have.
ElementHistory element_history(Project& project, int64_t run, const ElementQuery& query, const Progress& progress = {});

}  // namespace tenon::projects
