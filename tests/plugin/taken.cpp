// A plug-in whose layer has a name that Tenon's own has.
#include "core/plugin.h"
#include "engine/nn/functional.h"
#include "engine/spec/layer_registry.h"

TENON_PLUGIN("taken") {
  for (const char* type : {"OfItsOwn", "ReLU"})
    tenon::register_layer({{.type = type, .group = "Activation", .help = "x"},
                           [](const tenon::LayerArgs& a) -> std::shared_ptr<tenon::nn::Module> {
                             return tenon::nn::unary(a.spec.type, [](const tenon::Tensor& x) { return x; });
                           }});
}
