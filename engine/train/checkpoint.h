#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// The whole state of a training session after a step: loading it and going on gives the same bits as never having
/// stopped. Tensors are named by role and module path: "model/features.0.weight", "model/features.1.running_mean",
/// "optimizer/features.0.weight/exp_avg". `state` holds the rest as plain numbers: step, epoch, data cursor, random
/// seed and offset, scheduler, best metric.
struct Checkpoint {
  int64_t step = 0;
  std::vector<std::pair<std::string, Tensor>> tensors;  ///< sorted by name
  nlohmann::json state;
};

}  // namespace tenon
