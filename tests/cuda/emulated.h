#pragma once
#include <cstdint>
#include <functional>

#include "core/tensor.h"

namespace tenon::emulated {

/// The device cuda:0 of the emulated GPU (tests/simt); of the module that the environment's TENON_CUDA_FILE names,
/// where it names one: with that of a build on a machine with a GPU, the same tests run there.
Device device();
/// Which threads of kernels go first from now on: 0 forward, 1 backward, 2 shuffled. False where the GPU is a real one.
bool set_order(int order, uint32_t seed);
/// Whether kernels multiply on tensor cores while f runs. Of a real GPU nothing is known: as expected.
bool uses_tensor_cores(const std::function<void()>& f, bool expected);

}  // namespace tenon::emulated
