// Losses over values.
#include "engine/nn/loss.h"
#include "engine/ops/loss.h"

namespace tenon::nn {
namespace {

const bool mse = register_loss({{.type = "mse", .group = "Values", .help = "(output - target)^2.", .inputs = 2, .attrs = {}},
                                {.values = true},
                                [](const LayerArgs&, std::span<const Tensor> in) { return mse_loss(in[0], in[1]); }});

}  // namespace
}  // namespace tenon::nn
