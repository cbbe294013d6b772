#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace tenon::formats {

/// A state_dict: tensors by name, in an order that a file keeps where its format can.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tenon::formats
