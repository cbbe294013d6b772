// Losses over classes.
#include "engine/nn/loss_attrs.h"
#include "engine/ops/loss.h"

namespace tenon::nn {
namespace {

using In = std::span<const Tensor>;
constexpr const char* kClassWeights =
    "weights of the classes, separated by commas; empty: all 1; balanced: samples / (classes x those of the class)";

CrossEntropyOptions cross_entropy_options(const LayerArgs& a, const Tensor& logits) {
  CrossEntropyOptions o;
  o.weight = weights(a, "weight", logits);
  o.ignore_index = a.integer("ignore_index");
  o.axis = static_cast<int>(a.integer("axis"));
  o.reduction = reduction(a);
  return o;
}
std::vector<AttrDef> class_attrs(bool smoothing) {
  std::vector<AttrDef> attrs{weights_attr("weight", kClassWeights),
                             {"ignore_index", int64_t{-100}, -1e9, 1e9, "targets of this number count for nothing"},
                             {"axis", int64_t{1}, -8, 7, "axis of the classes; -1 for outputs whose last axis it is"},
                             reduction_attr()};
  if (smoothing) attrs.push_back({"label_smoothing", 0.0, 0, 1, "share of the target that is spread over all classes"});
  return attrs;
}

const bool registered_loss_classes[] = {
    register_loss({{.type = "cross_entropy",
                    .group = "Classes",
                    .help = "-log of the share that softmax gives to the right class.",
                    .inputs = 2,
                    .attrs = class_attrs(true)},
                   {.classes = true},
                   [](const LayerArgs& a, In in) {
                     CrossEntropyOptions o = cross_entropy_options(a, in[0]);
                     o.label_smoothing = a.number("label_smoothing");
                     return cross_entropy(in[0], in[1], o);
                   }}),
    register_loss({{.type = "nll",
                    .group = "Classes",
                    .help = "-log-probability of the right class, where the output is log-probabilities.",
                    .inputs = 2,
                    .attrs = class_attrs(false)},
                   {.classes = true},
                   [](const LayerArgs& a, In in) { return nll_loss(in[0], in[1], cross_entropy_options(a, in[0])); }}),
    register_loss({{.type = "multi_margin",
                    .group = "Classes",
                    .help = "How far other classes come within a margin of the right one.",
                    .inputs = 2,
                    .attrs = {{"p", int64_t{1}, 1, 2, "power of what is missing"},
                              {"margin", 1.0, -1e9, 1e9, "the margin"},
                              weights_attr("weight", kClassWeights),
                              reduction_attr()}},
                   {.classes = true},
                   [](const LayerArgs& a, In in) {
                     return multi_margin_loss(in[0], in[1], static_cast<int>(a.integer("p")), a.number("margin"),
                                              weights(a, "weight", in[0]), reduction(a));
                   }}),
    register_loss({{.type = "multilabel_margin",
                    .group = "Classes",
                    .help = "The same for several right classes a row: their numbers, then -1.",
                    .inputs = 2,
                    .attrs = {reduction_attr()}},
                   {},
                   [](const LayerArgs& a, In in) { return multilabel_margin_loss(in[0], in[1], reduction(a)); }}),
    register_loss({{.type = "multilabel_soft_margin",
                    .group = "Classes",
                    .help = "Binary cross entropy of every class, for several right classes a row.",
                    .inputs = 2,
                    .attrs = {weights_attr("weight", kClassWeights), reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) {
                     return multilabel_soft_margin_loss(in[0], in[1], weights(a, "weight", in[0]), reduction(a));
                   }}),
    register_loss({{.type = "bce",
                    .group = "Classes",
                    .help = "Binary cross entropy of probabilities.",
                    .inputs = 2,
                    .attrs = {weights_attr("weight", "weights of the last axis, separated by commas; empty: all 1"),
                              reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) {
                     return binary_cross_entropy(in[0], in[1], weights(a, "weight", in[0]), reduction(a));
                   }}),
    register_loss({{.type = "bce_with_logits",
                    .group = "Classes",
                    .help = "Binary cross entropy of logits.",
                    .inputs = 2,
                    .attrs = {weights_attr("weight", "weights of the last axis, separated by commas; empty: all 1"),
                              weights_attr("pos_weight",
                                           "weights of targets that are 1, by the last axis; empty: all 1; balanced: "
                                           "zeros for each one in the training split"),
                              reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) {
                     return binary_cross_entropy_with_logits(in[0], in[1], weights(a, "weight", in[0]),
                                                             weights(a, "pos_weight", in[0]), reduction(a));
                   }}),
    register_loss({{.type = "focal",
                    .group = "Classes",
                    .help = "Binary cross entropy of logits in which easy elements count for little.",
                    .inputs = 2,
                    .attrs = {{"alpha", 0.25, -1, 1, "weight of targets that are 1; below 0: none"},
                              {"gamma", 2.0, 0, 100, "how little"},
                              reduction_attr()}},
                   {.values = true},
                   [](const LayerArgs& a, In in) {
                     return sigmoid_focal_loss(in[0], in[1], a.number("alpha"), a.number("gamma"), reduction(a));
                   }}),
    register_loss(
        {{.type = "dice",
          .group = "Classes",
          .help = "1 - twice what a sample's mask (sigmoid of logits) and its target share, over the sum of both.",
          .inputs = 2,
          .attrs = {{"smooth", 1.0, 0, 1e9, "added to both"}, reduction_attr()}},
         {.values = true},
         [](const LayerArgs& a, In in) { return dice_loss(in[0], in[1], a.number("smooth"), reduction(a)); }}),
    register_loss({{.type = "ctc",
                    .group = "Classes",
                    .help = "-log of the share of ways to read the target out of a sequence of log-probabilities. "
                            "Inputs: [steps, n, classes], targets, lengths of both.",
                    .inputs = 4,
                    .attrs = {{"blank", int64_t{0}, 0, 1e9, "the class that stands for nothing"},
                              {"zero_infinity", false, 0, 0, "sequences too short for their target count for nothing"},
                              reduction_attr()}},
                   {},
                   [](const LayerArgs& a, In in) {
                     return ctc_loss(in[0], in[1], in[2], in[3], a.integer("blank"), reduction(a),
                                     a.flag("zero_infinity"));
                   }}),
};

}  // namespace
}  // namespace tenon::nn
