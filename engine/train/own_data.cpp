#include "engine/train/own_data.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "engine/data/transform.h"
#include "engine/nn/loss.h"
#include "engine/train/open_data.h"

namespace tenon {
namespace {

/// The keys that say how files of the recipe's kind are read, and what is done to their samples.
void forget_kind(Recipe& r) {
  for (const AttrDef& a : data::dataset_defs().at(r.text("data.dataset")).attrs) r.reset("data." + a.name);
  for (const char* key : {"data.transforms", "data.target", "data.nan_sample", "data.nan_value_index"}) r.reset(key);
}

data::Split open_as_told_or_plainly(Recipe& r) {
  try {
    return open_data(r);
  } catch (const Error&) {
    Recipe plain = r;
    forget_kind(plain);
    if (plain == r) throw;
    try {
      data::Split split = open_data(plain);
      r = plain;
      return split;
    } catch (const Error&) {  // what is wrong with the data as they were told of is nearer
    }
    throw;
  }
}

}  // namespace

namespace {

void suit_loss(Recipe& recipe, const data::Dataset& train) {
  if (recipe.text("data.target") == "input") return;
  const nn::Targets takes = nn::losses().at(recipe.text("loss.type")).targets;
  const std::string task = train.task();
  const bool classes = task == "classification" || task == "segmentation" || task == "language";
  if (classes ? takes.classes : takes.values) return;
  for (const AttrDef& key : recipe.used_keys())
    if (key.name.starts_with("loss.")) recipe.reset(key.name);
  if (!classes) recipe.set("loss.type", task == "binary" ? "bce_with_logits" : "mse");
}

}  // namespace

void suit_to_data(Recipe& recipe, const data::Dataset& train) {
  suit_loss(recipe, train);
  // Where there are fewer samples than a batch wants, no run could begin: several batches make an epoch.
  const int64_t samples = train.size();
  if (recipe.integer("data.batch_size") <= samples) return;
  constexpr uint64_t kBatches = 4;
  recipe.set_value(
      "data.batch_size",
      static_cast<int64_t>(std::bit_floor(std::max(static_cast<uint64_t>(samples) / kBatches, uint64_t{1}))));
}

Recipe naming_data(const Recipe& recipe, const std::string& path) {
  Recipe r = recipe;
  const std::string kind = data::recognised_dataset(path);
  if (kind != r.text("data.dataset")) {
    forget_kind(r);
    r.set("data.dataset", kind);
  }
  r.set("data.dir", path);
  return r;
}

OwnData with_own_data(const Recipe& recipe, const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& settings) {
  OwnData own{naming_data(recipe, path), {}};
  for (const auto& [key, text] : settings) own.recipe.set(key, text);
  for (const auto& [key, text] : settings) own.recipe.check_used(key);
  own.split = settings.empty() ? open_as_told_or_plainly(own.recipe) : open_data(own.recipe);
  own.recipe.set("data.transforms", data::with_rate(own.recipe.text("data.transforms"), own.split));
  for (const Attr& a : own.split.found) own.recipe.set_value("data." + a.name, a.value);
  suit_to_data(own.recipe, *own.split.train);
  return own;
}

}  // namespace tenon
