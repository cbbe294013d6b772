// Layers that join several inputs.
#include "core/error.h"
#include "engine/model/layer_registry.h"
#include "engine/nn/functional.h"
#include "engine/ops/pointwise.h"

namespace tenon::nn {
namespace {

using Made = std::shared_ptr<Module>;

template <Tensor (*F)(const Tensor&, const Tensor&)>
bool pair(const char* type, const char* help) {
  return register_layer({{.type = type, .group = "Shape", .help = help, .inputs = 2, .attrs = {}}, [](const LayerArgs& a) -> Made {
                           return nary(a.spec.type, 2, [](std::span<const Tensor> in) { return F(in[0], in[1]); });
                         }});
}
const bool layers[] = {
    pair<tenon::add>("Add", "Adds two tensors of the same size."),
    pair<tenon::sub>("Sub", "The first input minus the second."),
    pair<tenon::mul>("Mul", "Multiplies two tensors, element by element."),
};

}  // namespace
}  // namespace tenon::nn
