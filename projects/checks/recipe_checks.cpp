// What model and recipe say to each other that cannot go well.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "engine/train/freeze.h"
#include "projects/checks/check.h"

namespace tenon::projects {
namespace {

bool is_batch_norm(const LayerSpec& l) { return !l.off && l.type.starts_with("BatchNorm"); }

/// The layer that gives the model's output; null where it has none, or several.
const LayerSpec* last_layer(const ModelSpec& model) {
  const LayerSpec* last = nullptr;
  for (const LayerSpec& l : model.layers) {
    if (l.off) return nullptr;
    const bool read = std::any_of(model.wires.begin(), model.wires.end(), [&](const WireSpec& w) {
      const LayerSpec* to = model.find(w.to);
      return w.from == l.name && to && to->type != "Output";
    });
    if (read || l.type == "Output") continue;
    if (last) return nullptr;
    last = &l;
  }
  return last;
}

std::vector<Complaint> batch_norm_of_one(Checked& c) {
  const auto norm = std::find_if(c.model().layers.begin(), c.model().layers.end(), is_batch_norm);
  if (norm == c.model().layers.end()) return {};
  const int64_t batch = c.recipe().integer("data.batch_size"), parts = c.recipe().integer("data.micro_batches"),
                samples = c.split().train->size();
  const char* remedy = "a larger data.batch_size, data.drop_last = true, or GroupNorm in its place";
  if (batch / parts <= 1)
    return {{norm->name,
             fmt::format("batches are of {} sample: its mean is the sample itself, and the deviation is 0 or "
                         "that of one picture",
                         batch / parts),
             remedy, norm->name}};
  if (!c.recipe().flag("data.drop_last") && samples > batch && samples % batch == 1)
    return {{norm->name,
             fmt::format("the last batch of every epoch has 1 sample ({} samples in batches of {})", samples, batch),
             remedy, norm->name}};
  return {};
}

std::vector<Complaint> workers(Checked& c) {
  const int64_t wanted = c.recipe().integer("data.workers"), cores = std::thread::hardware_concurrency();
  if (cores < 1 || wanted <= cores) return {};
  return {{"", fmt::format("{} threads load data on a machine of {} cores, where training works too", wanted, cores),
           fmt::format("data.workers = {}", std::max<int64_t>(1, cores / 2))}};
}

std::vector<Complaint> shares_before_loss(Checked& c) {
  const LayerSpec* last = last_layer(c.model());
  if (!last) return {};
  const std::string& loss = c.recipe().text("loss.type");
  const bool softmax = last->type == "Softmax" || last->type == "LogSoftmax" || last->type == "Softmax2d";
  if (softmax && last->type != "LogSoftmax" && loss == "cross_entropy")
    return {{last->name,
             "the model ends with a softmax, and cross_entropy takes the softmax of what it is given: twice, gradients "
             "are small and the loss cannot come near 0",
             "take the last layer out; exports may add it", last->name}};
  if (last->type == "Sigmoid" && (loss == "bce_with_logits" || loss == "cross_entropy" || loss == "focal"))
    return {{last->name, fmt::format("the model ends with a sigmoid, and {} wants numbers before it", loss),
             "take the last layer out, or loss.type = bce", last->name}};
  if (!softmax && last->type != "Sigmoid" && loss == "bce")
    return {{last->name,
             fmt::format("bce wants probabilities, and the model ends with {}, whose numbers may be any", last->type),
             "loss.type = bce_with_logits", last->name}};
  return {};
}

std::vector<Complaint> dropout(Checked& c) {
  std::vector<Complaint> all;
  for (const LayerSpec& l : c.model().layers) {
    const AttrValue* p = !l.off && l.type.find("Dropout") != l.type.npos ? l.find("p") : nullptr;
    if (!p || !std::holds_alternative<double>(*p) || std::get<double>(*p) < 0.8) continue;
    all.push_back({l.name, fmt::format("{:.0f} % of the values are set to 0 in training", 100 * std::get<double>(*p)),
                   "p of 0.1 to 0.5 is usual; p is the share that is dropped, not kept", l.name});
  }
  return all;
}

std::vector<Complaint> half_without_scale(Checked& c) {
  constexpr double kLeast = 16;
  if (c.recipe().text("amp") != "fp16" || c.recipe().number("amp_scale") >= kLeast) return {};
  return {{"",
           fmt::format("amp = fp16 with amp_scale = {:g}: gradients below 6e-8 are 0 in float16",
                       c.recipe().number("amp_scale")),
           "amp_scale = 65536, or amp = bf16"}};
}

std::vector<Complaint> warmup_too_long(Checked& c) {
  const Recipe& r = c.recipe();
  const int64_t warmup = r.integer("schedule.warmup_steps"), batch = r.integer("data.batch_size");
  const int64_t per_epoch = std::max<int64_t>(1, (c.split().train->size() + batch - 1) / batch);
  const int64_t steps = c.run() ? c.run()->total_steps : per_epoch * r.integer("epochs");
  if (warmup < steps || warmup == 0) return {};
  return {{"",
           fmt::format("the rate warms up over {} steps, and the run has {}: it never reaches its rate", warmup, steps),
           fmt::format("schedule.warmup_steps = {}", steps / 10)}};
}

/// A layer that is frozen costs backward all the same where a trained one stands before it.
std::vector<Complaint> frozen_behind_trained(Checked& c) {
  const Freeze freeze(c.recipe().text("init.freeze"));
  if (!freeze.any()) return {};
  std::string trained;
  int64_t frozen = 0;
  std::string first;
  for (const LayerSpec* l : c.model().topological()) {
    const bool has_weights = l->type == "Linear" || l->type.starts_with("Conv") || l->type == "Embedding";
    if (!has_weights) continue;
    if (!freeze.holds(l->name + ".weight")) {
      if (trained.empty()) trained = l->name;
    } else if (!trained.empty()) {
      if (++frozen == 1) first = l->name;
    }
  }
  if (frozen == 0) return {};
  return {{first,
           fmt::format("{} frozen layers stand behind {}, which is trained: gradients go through them all the same",
                       frozen, trained),
           "freeze what stands before them too, or take it that a step saves only their updates", first}};
}

const bool registered_recipe_checks[] = {
    register_check({"model.batch_norm_of_one", "A batch norm sees one sample", false, batch_norm_of_one}),
    register_check({"model.last_layer", "The last layer and the loss do not fit", false, shares_before_loss}),
    register_check({"model.dropout", "Nearly everything is dropped", false, dropout}),
    register_check({"model.frozen_behind_trained", "Frozen layers still cost backward", false, frozen_behind_trained}),
    register_check({"recipe.half_scale", "float16 without a scale", false, half_without_scale}),
    register_check({"recipe.workers", "More workers than cores", false, workers}),
    register_check({"recipe.warmup", "The rate never warms up", false, warmup_too_long}),
};

}  // namespace
}  // namespace tenon::projects
