#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon::emulated {

/// Numbers between -1 and 1 in no order, so that sums of many do not cancel.
Tensor scattered(const Shape& size, double phase, DType dtype = DType::f32);

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// The result of f and the gradients of its inputs on the GPU are those of the CPU but for rounding, have the same bits
/// in every order of threads, and none of `ops` was run on the CPU.
void expect_the_cpus(const char* name, const Function& f, const std::vector<Tensor>& inputs,
                     const std::vector<std::string>& ops);

}  // namespace tenon::emulated
