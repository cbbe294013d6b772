#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double step = 1e-6, absolute = 1e-5, relative = 1e-3;
};
/// Compares backward with central differences of f at `inputs` (f64; those that do not require a gradient are held
/// fixed). Returns an empty string, or where and by how much they differ.
std::string gradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
/// The same for the gradient of the gradient.
std::string gradgradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace tenon
