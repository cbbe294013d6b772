#pragma once
#include <string>

#include "core/cuda/abi.h"

namespace tenon {

/// The CUDA module where it is there, opened on the first call: Note [The CUDA module]. Null where it is missing or
/// belongs to another version of Tenon; cuda_module_missing() says which. The file is lib/tenon/cuda.so, or the one
/// that the environment's TENON_CUDA_FILE names.
const cuda::Module* cuda_module();
std::string cuda_module_missing();

/// The GPUs there are, and why there are none: empty where there are some. One sentence each, `hint` may be empty.
struct CudaState {
  int devices = 0;
  std::string why, hint;
};
const CudaState& cuda_state();

}  // namespace tenon
