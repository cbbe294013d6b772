// Losses over classes.
#include "engine/nn/loss.h"
#include "engine/ops/loss.h"

namespace tenon::nn {
namespace {

const bool cross_entropy_loss = register_loss(
    {{.type = "cross_entropy", .group = "Classes", .help = "-log of the share that softmax gives to the right class.", .inputs = 2, .attrs = {}},
     {.classes = true},
     [](const LayerArgs&, std::span<const Tensor> in) { return tenon::cross_entropy(in[0], in[1]); }});

}  // namespace
}  // namespace tenon::nn
