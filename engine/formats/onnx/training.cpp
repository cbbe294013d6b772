// ONNX's optimizer operators: ai.onnx.preview.training. Inputs are the learning rate, the step, then for n tensors:
// values, gradients, states.
#include <cmath>

#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"

namespace tenon::formats {
namespace {

#define TENON_ONNX_TRAINING(TYPE)                                                                                  \
  Out run_##TYPE(const OnnxCall& c);                                                                               \
  const bool registered_##TYPE = register_onnx("ai.onnx.preview.training." #TYPE, OnnxTensorOperator(run_##TYPE)); \
  Out run_##TYPE(const OnnxCall& c)

/// Calls update(group...) for each of n tensors, whose parts lie n apart; results are laid out the same way, without
/// the gradients.
template <class F>
Out each_tensor(const OnnxCall& c, size_t parts, const F& update) {
  if (c.in.size() < 2 || (c.in.size() - 2) % parts)
    throw Error(fmt::format("{} inputs: the rate, the step and {} for each tensor", c.in.size(), parts));
  const size_t n = (c.in.size() - 2) / parts;
  Out out(n * (parts - 1));
  for (size_t i = 0; i < n; ++i) {
    std::vector<Tensor> group;
    for (size_t k = 0; k < parts; ++k) group.push_back(c.input(2 + k * n + i));
    const Out result = update(group);
    for (size_t k = 0; k < result.size(); ++k) out[k * n + i] = result[k];
  }
  return out;
}

TENON_ONNX_TRAINING(Adagrad) {
  const double eps = c.node.number("epsilon", 1e-6), decay = c.node.number("decay_factor", 0),
               norm = c.node.number("norm_coefficient", 0);
  const double rate = item(c.input(0)) / (1 + item(c.input(1)) * decay);
  return each_tensor(c, 3, [&](const std::vector<Tensor>& p) -> Out {
    const Tensor g = add(mul(p[0], norm), p[1]), h = add(p[2], square(g));
    return {sub(p[0], div(mul(g, rate), add(sqrt(h), eps))), h};
  });
}

TENON_ONNX_TRAINING(Momentum) {
  const double alpha = c.node.number("alpha", 0), beta = c.node.number("beta", 0),
               norm = c.node.number("norm_coefficient", 0);
  const double rate = item(c.input(0)), step = item(c.input(1));
  const bool nesterov = c.node.text("mode", "standard") == "nesterov";
  return each_tensor(c, 3, [&](const std::vector<Tensor>& p) -> Out {
    const Tensor g = add(mul(p[0], norm), p[1]), v = add(mul(p[2], alpha), mul(g, step > 0 ? beta : 1));
    return {sub(p[0], mul(nesterov ? add(g, mul(v, alpha)) : v, rate)), v};
  });
}

TENON_ONNX_TRAINING(Adam) {
  const double alpha = c.node.number("alpha", 0.9), beta = c.node.number("beta", 0.999),
               eps = c.node.number("epsilon", 1e-6);
  const double norm = c.node.number("norm_coefficient", 0), norm_post = c.node.number("norm_coefficient_post", 0),
               step = item(c.input(1));
  double rate = item(c.input(0));
  if (step > 0) rate *= std::sqrt(1 - std::pow(beta, step)) / (1 - std::pow(alpha, step));
  return each_tensor(c, 4, [&](const std::vector<Tensor>& p) -> Out {
    const Tensor g = add(mul(p[0], norm), p[1]), v = add(mul(p[2], alpha), mul(g, 1 - alpha)),
                 h = add(mul(p[3], beta), mul(square(g), 1 - beta));
    const Tensor x = sub(p[0], div(mul(v, rate), add(sqrt(h), eps)));
    return {mul(x, 1 - norm_post), v, h};
  });
}

}  // namespace
}  // namespace tenon::formats
