// A plug-in with a fault that is easily made: its layer keeps what it gave, in a list that nobody empties.
#include "core/plugin.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/functional.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/layer_registry.h"

using namespace tenon;

namespace {
std::vector<Tensor> seen_outputs;
}

TENON_PLUGIN("hoard") {
  register_layer({{.type = "Hoard", .group = "Activation", .help = "1.5 x, of which it keeps every one"},
                  [](const LayerArgs&) -> std::shared_ptr<nn::Module> {
                    return nn::unary("Hoard", [](const Tensor& x) {
                      Tensor y = mul(x, 1.5);
                      if (!y.is_meta()) seen_outputs.push_back(detach(y));
                      return y;
                    });
                  }});
}
