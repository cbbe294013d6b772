#pragma once
#include <functional>
#include <vector>

#include "engine/autograd/node.h"

namespace tenon {

/// The gradient of an op as that of `f`, the same function written in public ops: what an op with a fused backward does
/// where the gradient itself is to be differentiated (grad_enabled()). `inputs` are the op's own, as d.x(i) gives them;
/// f returns the op's outputs, or the first of them. Differentiable to any order.
void composite_gradient(Grad& d, const std::vector<Tensor>& inputs,
                        const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f);

}  // namespace tenon
