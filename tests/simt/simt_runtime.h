#pragma once
// What core/cuda/runtime.h finds where kernels are compiled for the emulated GPU.
#include "tests/simt/cuda_calls.h"
#include "tests/simt/simt.h"
