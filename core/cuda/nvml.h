#pragma once
#include "core/cuda/abi.h"

namespace tenon::cuda {

/// Of the Module: what the driver says of a device at this moment, by NVML.
Outcome device_load(int32_t device, LoadFacts* facts);

}  // namespace tenon::cuda
