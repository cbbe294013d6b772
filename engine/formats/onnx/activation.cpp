// ONNX's activations with attributes.
#include <cmath>
#include <limits>

#include "core/error.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/activation.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

using Out = std::vector<Tensor>;

const bool elu_op =
    register_onnx("Elu", [](const OnnxCall& c) -> Out { return {elu(c.input(0), c.node.number("alpha", 1))}; });
const bool celu_op =
    register_onnx("Celu", [](const OnnxCall& c) -> Out { return {celu(c.input(0), c.node.number("alpha", 1))}; });
const bool leaky_relu_op = register_onnx(
    "LeakyRelu", [](const OnnxCall& c) -> Out { return {leaky_relu(c.input(0), c.node.number("alpha", 0.01))}; });
const bool hard_sigmoid_op = register_onnx("HardSigmoid", [](const OnnxCall& c) -> Out {
  return {hardsigmoid(c.input(0), c.node.number("alpha", 0.2), c.node.number("beta", 0.5))};
});
const bool selu_op = register_onnx("Selu", [](const OnnxCall& c) -> Out {
  double alpha = c.node.number("alpha", 1.67326319217681884765625),
         gamma = c.node.number("gamma", 1.05070102214813232421875);
  return {mul(elu(c.input(0), alpha), gamma)};
});
const bool thresholded_relu_op = register_onnx(
    "ThresholdedRelu", [](const OnnxCall& c) -> Out { return {threshold(c.input(0), c.node.number("alpha", 1), 0)}; });
const bool prelu_op = register_onnx("PRelu", [](const OnnxCall& c) -> Out {
  const Tensor& x = c.input(0);
  Tensor slope = c.input(1);
  if (c.opset < 7 && slope.ndim() == 1 && x.ndim() > 1) {  // before broadcasting came: one number a channel
    Shape channels = Shape::filled(x.ndim() - 1, 1);
    channels[0] = slope.numel();
    slope = reshape(slope, channels);
  }
  return {where(gt(x, 0), x, mul(x, slope))};
});
const bool shrink_op = register_onnx("Shrink", [](const OnnxCall& c) -> Out {
  double lambd = c.node.number("lambd", 0.5), bias = c.node.number("bias", 0);
  if (!is_floating(c.input(0).dtype()))
    throw Error(std::string("an input of ") + name(c.input(0).dtype()) + " is not supported");
  const Tensor& x = c.input(0);
  if (bias == 0) return {hardshrink(x, lambd)};
  if (bias == lambd) return {softshrink(x, lambd)};
  return {where(gt(x, lambd), sub(x, bias), where(lt(x, -lambd), add(x, bias), mul(x, 0)))};
});
const bool clip_op = register_onnx("Clip", [](const OnnxCall& c) -> Out {
  Tensor x = c.input(0);
  // The bounds were attributes before opset 11.
  if (c.opset < 11) {
    double lo = c.node.number("min", -INFINITY), hi = c.node.number("max", INFINITY);
    return {std::isinf(lo) && std::isinf(hi) ? x : hardtanh(x, lo, hi)};
  }
  if (c.has(1)) x = maximum(x, c.in[1]);
  if (c.has(2)) x = minimum(x, c.in[2]);
  return {x};
});

}  // namespace
}  // namespace tenon::formats
