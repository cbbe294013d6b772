#include "projects/surgery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/error.h"
#include "engine/formats/python/reader.h"
#include "engine/model/layer_sizes.h"
#include "engine/spec/layer_edits.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "projects/project.h"
#include "tracing/analyses/finding.h"

namespace tenon::projects {
namespace {

using Deed = SurgeryRow::Deed;

AttrValue value_in(const LayerSpec& layer, const AttrDef& def) {
  const AttrValue* own = layer.find(def.name);
  return own ? *own : def.fallback;
}

void layer_changes(const LayerSpec& was, const LayerSpec& is, std::vector<std::string>& words) {
  if (was.type != is.type) {
    words.push_back(fmt::format("{} {} → {}", is.name, was.type, is.type));
    return;
  }
  if (was.off != is.off) words.push_back(fmt::format("{} {}", is.name, is.off ? "off" : "on"));
  const LayerInfo* info = find_layer_type(is.type);
  if (!info) return;  // of a plug-in that is not here
  for (const AttrDef& def : info->attrs) {
    const AttrValue a = value_in(was, def), b = value_in(is, def);
    if (!(a == b)) words.push_back(fmt::format("{}.{} {} → {}", is.name, def.name, attr_text(a), attr_text(b)));
  }
}

using Wires = std::set<std::tuple<std::string, int, std::string, int>>;
/// Between layers that both models have.
Wires wires_between(const ModelSpec& model, const ModelSpec& other) {
  Wires all;
  for (const WireSpec& w : model.wires)
    if (other.find(w.from) && other.find(w.to)) all.emplace(w.from, w.from_port, w.to, w.to_port);
  return all;
}

/// Whether another recipe has another batch, or another loss of it.
bool judges_otherwise(const Recipe& a, const Recipe& b) {
  const auto other = differences(a, b);
  return std::any_of(other.begin(), other.end(), [](const KeyDifference& d) {
    return d.key == "seed" || d.key.starts_with("data.") || d.key.starts_with("loss.") || d.key.starts_with("distill.");
  });
}

int64_t count(const std::vector<SurgeryRow>& rows, bool (*is)(const SurgeryRow&)) {
  return std::count_if(rows.begin(), rows.end(), is);
}

}  // namespace

bool SurgeryPlan::keeps_function() const { return std::abs(loss_after - loss) <= 1e-6 * std::max(1.0, std::abs(loss)); }

std::string SurgeryPlan::text() const {
  using tracing::count_text;
  const int64_t had = count(rows, [](const SurgeryRow& r) { return r.before.has_value(); });
  const int64_t begun = count(rows, [](const SurgeryRow& r) { return r.deed == Deed::begun; });
  const int64_t gone = count(rows, [](const SurgeryRow& r) { return r.deed == Deed::gone; });
  const int64_t new_ones = count(rows, [](const SurgeryRow& r) { return !r.before; });
  const int64_t lost = count(rows, [](const SurgeryRow& r) { return r.before && r.deed == Deed::begun; });
  std::string t =
      fmt::format("{} of {} tensors go on with what they learnt", count_text(had - gone - lost), count_text(had));
  if (new_ones > 0) t += fmt::format(", {} {} new", count_text(new_ones), new_ones == 1 ? "is" : "are");
  if (begun > 0)
    t += fmt::format(", {} {} as the seed gives {}", count_text(begun), begun == 1 ? "begins" : "begin",
                     begun == 1 ? "it" : "them");
  if (std::isnan(loss)) return t;
  return t + fmt::format("\nloss of the next batch, in evaluation: {:.6g} before, {:.6g} after: {}", loss, loss_after,
                         keeps_function() ? "the function is kept" : "it is another function");
}

RunInfo run_of_step(const Project& project, const RunInfo& run, int64_t step) {
  RunInfo of = run;
  while (of.branch && step < of.branch.step) of = project.run(of.branch.run);
  return of;
}

SurgeryPlan plan_surgery(Project& project, const RunInfo& run, int64_t step, const ModelSpec& model,
                         const std::vector<std::pair<std::string, std::string>>& set, const Progress& progress) {
  const auto before = replay_to(project, run.id, step, progress);
  if (model_changes(before->spec(), model).empty())
    throw Error::usage(fmt::format("the model is that of {} already", run.name),
                       "Change a layer: --layer fc1.out_features=96, or the project's model in the builder.");
  Recipe recipe = before->recipe();
  recipe.reset("init.anew");
  for (const auto& [key, text] : set) recipe.set(key, text);
  SurgeryPlan plan{run.name, step, before->spec(), model, {}, 0, 0};
  const Checkpoint state = before->save();
  auto after = std::make_unique<TrainingSession>(model, recipe);
  plan.rows = after->branch(state, before->recipe(), before->spec());
  if (judges_otherwise(before->recipe(), recipe)) {
    Recipe same = before->recipe();
    same.reset("init.anew");
    after = std::make_unique<TrainingSession>(model, same);
    after->branch(state, before->recipe(), before->spec());
  }
  plan.loss = before->loss_ahead();
  plan.loss_after = after->loss_ahead();
  return plan;
}

namespace {
Error no_layer(const ModelSpec& model, const std::string& name) {
  std::vector<std::string> names;
  for (const LayerSpec& l : model.layers) names.push_back(l.name);
  return Error::usage(fmt::format("the model has no layer \"{}\"", name), near_names(name, names.data(), names.size()));
}
}  // namespace

ModelSpec with_inserted(ModelSpec model, const std::string& behind, const std::string& layer) {
  const LayerSpec* before = model.find(behind);
  if (!before) throw no_layer(model, behind);
  const size_t colon = layer.find(':');
  const std::string type = layer.substr(colon == layer.npos ? 0 : colon + 1);
  const LayerInfo* info = find_layer_type(type);
  if (!info) {
    std::vector<std::string> names;
    for (const LayerDef& d : layers()) names.push_back(d.info.type);
    throw Error::usage(fmt::format("there is no layer type \"{}\"", type),
                       near_names(type, names.data(), names.size()));
  }
  const LayerInfo* of = find_layer_type(before->type);
  if (info->inputs == 0 || info->outputs == 0 || (of && of->outputs == 0))
    throw Error::usage(fmt::format("no {} can stand behind {}", type, behind));
  LayerSpec fresh = new_layer(model, *info);
  const std::string scope = behind.substr(0, behind.rfind('.') + 1);
  fresh.name = colon == layer.npos ? free_name(model, scope + fresh.name) : layer.substr(0, colon);
  if (fresh.name.empty() || model.find(fresh.name))
    throw Error::usage(fmt::format("\"{}\" is no name for a layer more: {}", fresh.name,
                                   fresh.name.empty() ? "it is empty" : "a layer has it"));
  const std::string name = fresh.name;
  model.layers.insert(model.layers.begin() + (before - model.layers.data()) + 1, std::move(fresh));
  wire_behind(model, name, behind);
  return model;
}

ModelSpec with_removed(const ModelSpec& model, const std::string& name) {
  const LayerSpec* layer = model.find(name);
  if (!layer) throw no_layer(model, name);
  if (layer->type == "Input" || layer->type == "Output")
    throw Error::usage(fmt::format("{} is an end of the model, which it needs", name));
  return without_layers(model, {name});
}

ModelSpec with_layer(const ModelSpec& model, const std::string& place, const std::string& value) {
  const size_t dot = place.rfind('.');
  const std::string name = place.substr(0, dot), attr = dot == place.npos ? "" : place.substr(dot + 1);
  ModelSpec changed = model;
  LayerSpec* layer = dot == place.npos ? nullptr : changed.find(name);
  if (dot == place.npos)
    throw Error::usage(fmt::format("\"{}\" names no attribute of a layer", place),
                       "It is written LAYER.ATTRIBUTE=VALUE: fc1.out_features=96");
  if (!layer) throw no_layer(model, name);
  if (attr == "off") {
    layer->off = std::get<bool>(parse_attr({"off", false, 0, 0, ""}, value, place));
    return changed;
  }
  const LayerInfo* info = find_layer_type(layer->type);
  if (!info) throw Error::usage(fmt::format("{} is a {}, which nothing here defines", name, layer->type));
  const auto def =
      std::find_if(info->attrs.begin(), info->attrs.end(), [&](const AttrDef& d) { return d.name == attr; });
  if (def == info->attrs.end()) {
    std::vector<std::string> names;
    for (const AttrDef& d : info->attrs) names.push_back(d.name);
    throw Error::usage(fmt::format("{} ({}) has no attribute \"{}\"", name, layer->type, attr),
                       near_names(attr, names.data(), names.size()));
  }
  AttrValue fit = parse_attr(*def, value, place);
  if (attr == channels_attr(*layer)) return with_channels(model, name, std::get<int64_t>(fit));
  std::erase_if(layer->attrs, [&](const Attr& a) { return a.name == attr; });
  layer->attrs.push_back({attr, std::move(fit)});
  return changed;
}

std::string model_changes(const ModelSpec& before, const ModelSpec& after) {
  if (before == after || python::same_model(before, after)) return {};
  std::vector<std::string> words;
  for (const LayerSpec& l : after.layers) {
    const LayerSpec* was = before.find(l.name);
    if (was)
      layer_changes(*was, l, words);
    else
      words.push_back(fmt::format("{} ({}) added", l.name, l.type));
  }
  for (const LayerSpec& l : before.layers)
    if (!after.find(l.name)) words.push_back(fmt::format("{} gone", l.name));
  if (words.empty() && wires_between(before, after) != wires_between(after, before)) words.push_back("other wires");
  std::string text;
  constexpr size_t kShown = 6;
  for (size_t i = 0; i < std::min(kShown, words.size()); ++i) text += (i ? ", " : "") + words[i];
  if (words.size() > kShown) text += fmt::format(" and {} more", words.size() - kShown);
  return text;
}

}  // namespace tenon::projects
