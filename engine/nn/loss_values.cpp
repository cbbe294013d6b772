// Losses over values, and between several outputs.
#include "engine/nn/loss_attrs.h"
#include "engine/ops/loss.h"

namespace tenon::nn {
namespace {

using In = std::span<const Tensor>;

const bool registered_loss_values[] = {
    register_loss(
        {{.type = "mse", .group = "Values", .help = "(output - target)^2.", .inputs = 2, .attrs = {reduction_attr()}},
         {.values = true},
         [](const LayerArgs& a, In in) { return mse_loss(in[0], in[1], reduction(a)); }}),
    register_loss(
        {{.type = "l1", .group = "Values", .help = "|output - target|.", .inputs = 2, .attrs = {reduction_attr()}},
         {.values = true},
         [](const LayerArgs& a, In in) { return l1_loss(in[0], in[1], reduction(a)); }}),
    register_loss(
        {{.type = "smooth_l1",
          .group = "Values",
          .help = "|output - target|, a parabola near 0.",
          .inputs = 2,
          .attrs = {{"beta", 1.0, 0, 1e9, "half the width of the parabola"}, reduction_attr()}},
         {.values = true},
         [](const LayerArgs& a, In in) { return smooth_l1_loss(in[0], in[1], a.number("beta"), reduction(a)); }}),
    register_loss(
        {{.type = "huber",
          .group = "Values",
          .help = "(output - target)^2 / 2, a straight line far from 0.",
          .inputs = 2,
          .attrs = {{"delta", 1.0, 1e-9, 1e9, "where the line begins"}, reduction_attr()}},
         {.values = true},
         [](const LayerArgs& a, In in) { return huber_loss(in[0], in[1], a.number("delta"), reduction(a)); }}),
    register_loss({{.type = "kl_div",
                    .group = "Values",
                    .help = "Kullback and Leibler's divergence of log-probabilities from the target's probabilities.",
                    .inputs = 2,
                    .attrs = {{"log_target", false, 0, 0, "targets are log-probabilities too"},
                              reduction_attr({"mean", "sum", "none", "batchmean"})}},
                   {.values = true},
                   [](const LayerArgs& a, In in) { return kl_div(in[0], in[1], a.flag("log_target"), reduction(a)); }}),
    register_loss({{.type = "poisson_nll",
                    .group = "Values",
                    .help = "-log-likelihood of counts under Poisson's distribution.",
                    .inputs = 2,
                    .attrs = {{"log_input", true, 0, 0, "the output is the logarithm of the rate"},
                              {"full", false, 0, 0, "with the part that does not depend on the output"},
                              {"eps", 1e-8, 0, 1, "keeps logarithms of rates finite"},
                              reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) {
                     return poisson_nll_loss(in[0], in[1], a.flag("log_input"), a.flag("full"), a.number("eps"),
                                             reduction(a));
                   }}),
    register_loss({{.type = "gaussian_nll",
                    .group = "Values",
                    .help = "-log-likelihood under a normal distribution. Inputs: mean, target, variance.",
                    .inputs = 3,
                    .attrs = {{"full", false, 0, 0, "with the constant part"},
                              {"eps", 1e-6, 0, 1, "least variance"},
                              reduction_attr()}},
                   {},
                   [](const LayerArgs& a, In in) {
                     return gaussian_nll_loss(in[0], in[1], in[2], a.flag("full"), a.number("eps"), reduction(a));
                   }}),
    register_loss({{.type = "soft_margin",
                    .group = "Values",
                    .help = "log(1 + exp(-target output)), targets -1 or 1.",
                    .inputs = 2,
                    .attrs = {reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) { return soft_margin_loss(in[0], in[1], reduction(a)); }}),
    register_loss({{.type = "hinge_embedding",
                    .group = "Values",
                    .help = "The output where the target is 1, what it lacks of a margin where it is -1.",
                    .inputs = 2,
                    .attrs = {{"margin", 1.0, -1e9, 1e9, "the margin"}, reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) {
                     return hinge_embedding_loss(in[0], in[1], a.number("margin"), reduction(a));
                   }}),
    register_loss(
        {{.type = "margin_ranking",
          .group = "Pairs",
          .help =
              "Whether the first of two outputs ranks higher (target 1) or lower (-1). Inputs: two outputs, target.",
          .inputs = 3,
          .attrs = {{"margin", 0.0, -1e9, 1e9, "by how much"}, reduction_attr()}},
         {},
         [](const LayerArgs& a, In in) {
           return margin_ranking_loss(in[0], in[1], in[2], a.number("margin"), reduction(a));
         }}),
    register_loss({{.type = "cosine_embedding",
                    .group = "Pairs",
                    .help = "Whether two rows point the same way (target 1) or not (-1). Inputs: two outputs, target.",
                    .inputs = 3,
                    .attrs = {{"margin", 0.0, -1, 1, "cosine that unlike rows may have"}, reduction_attr()}},
                   {},
                   [](const LayerArgs& a, In in) {
                     return cosine_embedding_loss(in[0], in[1], in[2], a.number("margin"), reduction(a));
                   }}),
    register_loss(
        {{.type = "triplet_margin",
          .group = "Pairs",
          .help = "Whether the positive row lies nearer to the anchor than the negative one. Inputs: anchor, positive, "
                  "negative.",
          .inputs = 3,
          .attrs = {{"margin", 1.0, -1e9, 1e9, "by how much"},
                    {"p", 2.0, 1e-3, 1e3, "power of the distance"},
                    {"eps", 1e-6, 0, 1, "added to differences"},
                    {"swap", false, 0, 0, "the negative's distance to the positive counts where it is smaller"},
                    reduction_attr()}},
         {},
         [](const LayerArgs& a, In in) {
           return triplet_margin_loss(in[0], in[1], in[2], a.number("margin"), a.number("p"), a.number("eps"),
                                      a.flag("swap"), reduction(a));
         }}),
};

}  // namespace
}  // namespace tenon::nn
