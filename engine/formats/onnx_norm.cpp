// ONNX's normalisations beyond that of a batch.
#include "core/error.h"
#include "engine/formats/onnx_run.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

using Out = std::vector<Tensor>;

const bool layer_norm_op = register_onnx("LayerNormalization", [](const OnnxCall& c) -> Out {
  const Tensor& x = c.input(0);
  int axis = wrap_axis(c.node.integer("axis", -1), x.ndim());
  Shape shape;
  for (int i = axis; i < x.ndim(); ++i) shape.push_back(x.size(i));
  auto fitted = [&](size_t i) { return c.has(i) ? reshape(expand(c.in[i], shape), shape) : Tensor(); };
  return {layer_norm(x, shape, fitted(1), fitted(2), c.node.number("epsilon", 1e-5))};
});
const bool instance_norm_op = register_onnx("InstanceNormalization", [](const OnnxCall& c) -> Out {
  return {group_norm(c.input(0), c.input(0).ndim() > 1 ? c.input(0).size(1) : 0, c.input(1), c.input(2), c.node.number("epsilon", 1e-5))};
});

}  // namespace
}  // namespace tenon::formats
