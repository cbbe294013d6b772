#include "engine/train/recipe_table.h"

#include <algorithm>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/nn/loss.h"
#include "engine/op/cuda_device.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"
#include "engine/train/metric.h"

namespace tenon {
namespace {

using I = int64_t;
using S = std::string;
constexpr double none = 0, huge = 9e15;

/// "none", and what an evaluation may record.
std::vector<S> evaluated_metrics() {
  std::vector<S> names{"none", "test_loss"};
  for (const MetricDef& m : metrics()) names.push_back("test_" + m.name);
  return names;
}

/// What a recipe may say beside the attributes of definitions.
std::vector<AttrDef> plain_keys() {
  return {
      {"seed", I{0}, 0, huge, "decides every random number: starting weights, order of the samples, dropout", {}},
      {"epochs", I{3}, 1, 1e6, "passes over the training set", {}, "epochs"},
      {"max_steps", I{0}, 0, huge, "stop after so many steps; 0: only epochs count", {}, "steps"},
      {"eval_every", I{1}, 0, 1e6, "evaluate on the test split after so many epochs; 0: never", {}, "epochs"},
      {"checkpoint_every", I{200}, 0, huge, "steps between checkpoints; 0: only at the end of an epoch", {}, "steps"},
      {"on_nan",
       S("stop"),
       none,
       none,
       "what to do when the loss or a gradient is not finite: stop before the weights are written, or go on",
       {"stop", "continue"}},
      {"callbacks",
       S(""),
       none,
       none,
       "what else accompanies the run, one after the other: \"gradient_noise std=0.1; centralize\"; `tenon keys "
       "callbacks` lists them",
       {}},
      {"watches",
       S(""),
       none,
       none,
       "conditions that are looked at while it trains, which changes no bit, and what is done where one begins to "
       "hold: "
       "\"loss > 3 * median(loss, 50): pause; dead(activation(relu*)) > 0.9 every 10: count\"; `tenon keys watches` "
       "lists the parts",
       {}},
      {"edits",
       S(""),
       none,
       none,
       "values that are changed within a step, by replays as well: \"120 #14: output[3, 4] = 0.5; 120: "
       "weight(fc1.weight) * 0.1; 120: grad(fc1.weight) clamp -1..1\"; #14: when that op of the step has run",
       {}},
      {"device",
       S("cpu"),
       none,
       none,
       "where the run computes: cpu, cuda, cuda:1; its steps have the bits of that device, so a replay needs one too",
       {},
       "",
       device_names},
      {"amp",
       S("none"),
       none,
       none,
       "mixed precision: ops compute in this type where their definition allows it",
       {"none", "bf16", "fp16"}},
      {"amp_scale",
       65536.0,
       1e-30,
       1e30,
       "fp16: what gradients are multiplied by at first; overflows lower it, and good steps raise it",
       {}},
      {"tf32",
       false,
       none,
       none,
       "on a GPU, training and its evaluations multiply f32 by the tensor cores in TF32, in products and convolutions: "
       "factors rounded to 10 bits of mantissa, sums in f32 (PyTorch's allow_tf32); elsewhere it changes nothing",
       {}},
      {"compile",
       true,
       none,
       none,
       "forward and backward are traced once and run from a plan: the same bits in less time and memory; what cannot "
       "be planned runs op by op, and the run's end says why. false: all steps run op by op",
       {}},
      {"recompute",
       I{0},
       0,
       1e6,
       "gradient checkpointing: stretches of layers whose insides backward computes again instead of keeping them; the "
       "same bits for less memory; with compile, results of norms and of ops element by element are computed again "
       "too, "
       "and of 1 these alone; 0: all is kept",
       {},
       "stretches"},
      {"init.from",
       S(""),
       none,
       none,
       "file whose weights the run begins with: .safetensors, .gguf, .pt, .pth, .onnx, .tenon; empty: those the seed "
       "gives",
       {}},
      {"init.run",
       S(""),
       none,
       none,
       "run of init.from, or of this project where that is empty, and its step: cnn-01@best, cnn-01@120, @last",
       {}},
      {"init.map",
       S(""),
       none,
       none,
       "names in the file and in the model: \"backbone.*=features.*; head.*=\"; the first rule that fits; no name "
       "behind the =: left out",
       {}},
      {"init.match",
       S("name"),
       none,
       none,
       "shape: what has no partner by name is given what is left of its shape, in order",
       {"name", "shape"}},
      {"init.missing",
       S("fail"),
       none,
       none,
       "what to do where the file does not give all of the model: begin no run, or keep the values the seed gives",
       {"fail", "keep"}},
      {"init.sha256",
       S(""),
       none,
       none,
       "SHA-256 that the file must have (of a run: its digest at the step); a run keeps what it was; empty: any",
       {}},
      {"init.freeze",
       S(""),
       none,
       none,
       "what is not trained: \"features.*; stem.weight\"; a norm whose running statistics are frozen uses them as they "
       "are",
       {}},
      {"init.anew",
       S(""),
       none,
       none,
       "of a branch: what does not go on from its parent but begins with other starting values: \"features.0.*\"",
       {}},
      {"distill.from",
       S(""),
       none,
       none,
       "the teacher whose outputs are learnt beside the targets: a run of this project (cnn-01@best, cnn-01@120), "
       "another project (big.tenon, big.tenon:cnn-01@best), or an ONNX model (big.onnx); empty: none",
       {}},
      {"distill.temperature",
       4.0,
       0.01,
       1000,
       "by which the scores of both are divided before they are compared: more shows how alike classes are",
       {}},
      {"distill.weight", 0.7, 0, 1, "share of the teacher in the loss; the targets have the rest", {}},
      {"distill.features",
       S(""),
       none,
       none,
       "layers that learn to give what layers of the teacher give: \"stage2; stage3=layer4.1\" (the student's, = the "
       "teacher's where it has another name); empty: none",
       {}},
      {"distill.features_by",
       S("values"),
       none,
       none,
       "values: the mean square of their differences, for layers of one size; similarity: which samples of the batch "
       "they find alike, for layers of any size",
       {"values", "similarity"}},
      {"distill.features_weight", 1.0, 0, 1e6, "by which their distance is multiplied before it joins the loss", {}},
      {"distill.sha256",
       S(""),
       none,
       none,
       "SHA-256 that the teacher must have (of a run: its digest at the step); a run keeps what it was; empty: any",
       {}},
      {"stop.metric", S("none"), none, none,
       "end the run early where this does not become better; its best checkpoint stays the one called best",
       evaluated_metrics()},
      {"stop.patience", I{3}, 1, 1e9, "evaluations without a better value before the run ends", {}, "evaluations"},
      {"stop.min_delta", 0.0, 0, 1e30, "how much better a value must be to count", {}},
      {"stop.mode",
       S("auto"),
       none,
       none,
       "whether small or large values are better; auto: as the metric has it",
       {"auto", "min", "max"}},
      {"average.type",
       S("none"),
       none,
       none,
       "weights averaged over the steps (ema) or over the epochs (swa), kept beside those that are trained",
       {"none", "ema", "swa"}},
      {"average.decay", 0.999, 0, 0.9999999, "ema: memory of the average", {}},
      {"average.start_epochs", 0.0, 0, 1e6, "epochs before the average begins", {}, "epochs"},
      {"average.evaluate", true, none, none, "evaluate with the averaged weights", {}},
      {"data.target",
       S("own"),
       none,
       none,
       "what is to be learnt: the data set's own target, or the input itself",
       {"own", "input"}},
      {"data.transforms",
       S(""),
       none,
       none,
       "what is done to samples, one after the other: \"random_crop padding=4; flip\"; random ones in training only",
       {}},
      {"data.micro_batches",
       I{1},
       1,
       1e6,
       "parts a batch is computed in, one after the other: the gradients add up to the whole batch's",
       {},
       "parts"},
      {"data.dir",
       S(""),
       none,
       none,
       "where the data set's files are; empty: where the distribution's package puts them",
       {}},
      {"data.batch_size", I{64}, 1, huge, "samples a step", {}, "samples"},
      {"data.shuffle", true, none, none, "a new order every epoch", {}},
      {"data.sampling",
       S("uniform"),
       none,
       none,
       "balanced: every class is drawn as often as any other, with replacement; uniform: every sample once an epoch",
       {"uniform", "balanced"}},
      {"data.without",
       S(""),
       none,
       none,
       "rows of the training set that are left out: \"96, 120-130\"; all others keep their places in the batches",
       {}},
      {"data.seed", I{-1}, -1, huge, "decides samples that are generated; -1: seed does", {}},
      {"data.order_seed", I{-1}, -1, huge, "decides the order of the samples; -1: seed does", {}},
      {"data.drop_last", false, none, none, "leave out a last batch that is not full", {}},
      {"data.workers", I{1}, 0, 256, "threads that prepare batches ahead; 0: none", {}, "threads"},
      {"data.prefetch", I{4}, 1, 1024, "batches prepared ahead", {}, "batches"},
      {"data.nan_sample",
       I{-1},
       -1,
       huge,
       "row of the training set to spoil with a NaN, to try the NaN doctor on; -1: none",
       {}},
      {"data.nan_value_index", I{0}, 0, huge, "which value of that row becomes NaN", {}},
      {"optimizer.groups",
       S(""),
       none,
       none,
       "what holds for some parameters only: \"head.*: lr=10; *.bias: weight_decay=0\"; lr is a multiple of the rate",
       {}},
      {"optimizer.decay_all",
       true,
       none,
       none,
       "weight decay for every parameter; false: not for biases and the gains of norms",
       {}},
      {"optimizer.clip_norm",
       0.0,
       0,
       1e30,
       "largest 2-norm of all gradients together: longer ones are scaled down to it; 0: any",
       {}},
      {"optimizer.clip_value", 0.0, 0, 1e30, "largest value of a gradient; 0: any", {}},
      {"schedule.warmup_steps", I{0}, 0, huge, "steps over which the rate first rises in a line from 0", {}, "steps"},
  };
}

template <class List>
RecipeGroup group(S name, S selector, S fallback, S help, const List& list) {
  RecipeGroup g{std::move(name), std::move(selector), std::move(fallback), std::move(help), {}};
  for (const auto& def : list) g.members.push_back({def.name, def.help, &def.attrs});
  return g;
}

/// Two definitions may share a key: its limits are those of both, its help says whose it is.
void add_attr(std::vector<AttrDef>& keys, const RecipeGroup& g, const RecipeGroup::Member& m, const AttrDef& a) {
  const S key = g.name + "." + a.name;
  auto found = std::find_if(keys.begin(), keys.end(), [&](const AttrDef& k) { return k.name == key; });
  if (found == keys.end()) {
    keys.push_back({key, a.fallback, a.min, a.max, "of " + m.name + ": " + a.help, a.choices, a.unit});
    return;
  }
  AttrDef& k = *found;
  if (!k.help.starts_with("of "))
    throw Error(g.name + " \"" + m.name + "\" defines the recipe's own key " + key + " again");
  if (k.fallback.index() != a.fallback.index())
    throw Error(key + " is " + attr_kind(a.fallback) + " of " + m.name + " and " + attr_kind(k.fallback) +
                " of others; it must be one kind");
  k.help.insert(3, m.name + ", ");
  bool any = k.min == k.max || a.min == a.max;
  k.min = any ? 0 : std::min(k.min, a.min);
  k.max = any ? 0 : std::max(k.max, a.max);
  if (k.choices.empty() || a.choices.empty()) k.choices.clear();
  for (const S& c : a.choices)
    if (!k.choices.empty() && std::find(k.choices.begin(), k.choices.end(), c) == k.choices.end())
      k.choices.push_back(c);
}

/// Losses that compare an output with a target.
RecipeGroup losses() {
  RecipeGroup g{"loss", "type", "cross_entropy", "what is minimised", {}};
  for (const nn::LossDef& def : nn::losses())
    if (def.info.inputs - def.info.optional == 2) g.members.push_back({def.info.type, def.info.help, &def.info.attrs});
  return g;
}

}  // namespace

const std::vector<RecipeGroup>& recipe_groups() {
  static auto& cache = *new MadeOfRegistries<std::vector<RecipeGroup>>([] {
    return std::vector<RecipeGroup>{
        losses(),
        group("data", "dataset", "fashion-mnist", "the data set", data::dataset_defs()),
        group("optimizer", "type", "adam", "how the weights follow the gradients", optim::optimizers()),
        group("schedule", "type", "constant", "how the learning rate changes", optim::schedules()),
    };
  });
  return cache.get();
}

std::vector<AttrDef> make_recipe_table() {
  std::vector<AttrDef> keys = plain_keys();
  for (const RecipeGroup& g : recipe_groups()) {
    AttrDef selector{
        g.name + "." + g.selector, g.fallback, none, none, g.help + "; plug-ins bring more: --plugin FILE.so", {}};
    for (const auto& m : g.members) selector.choices.push_back(m.name);
    keys.push_back(selector);
    // The default of a key is that of the definition chosen by default, so its attributes come first.
    for (bool first : {true, false})
      for (const auto& m : g.members)
        if ((m.name == g.fallback) == first)
          for (const AttrDef& a : *m.attrs) add_attr(keys, g, m, a);
  }
  return keys;
}

}  // namespace tenon
