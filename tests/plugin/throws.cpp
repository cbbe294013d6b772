// A plug-in that fails half way: what it has added by then is taken back.
#include "core/error.h"
#include "core/plugin.h"
#include "engine/nn/functional.h"
#include "engine/spec/layer_registry.h"

TENON_PLUGIN("throws") {
  tenon::register_layer({{.type = "HalfWay", .group = "Activation", .help = "x"},
                         [](const tenon::LayerArgs&) -> std::shared_ptr<tenon::nn::Module> {
                           return tenon::nn::unary("HalfWay", [](const tenon::Tensor& x) { return x; });
                         }});
  throw tenon::Error("its licence server does not answer", "try later");
}
