#include "views/training/branch_draft.h"

#include <algorithm>

#include "core/error.h"
#include "projects/surgery.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char* kUsual[] = {"optimizer.lr", "data.batch_size", "seed", "amp", "optimizer.clip_norm", "epochs"};
}  // namespace

BranchDraft::BranchDraft(projects::RunInfo run, int64_t step) : run_(std::move(run)) { set_step(step); }

void BranchDraft::set_step(int64_t step) {
  step_ = std::clamp<int64_t>(step, 0, run_.steps);
  recipe_ = Recipe::from_json(run_.recipe_after(step_));
}

Recipe BranchDraft::changed() const {
  Recipe r = recipe_;
  for (const auto& [key, value] : changes_) r.set_value(key, value);
  return r;
}

std::vector<AttrDef> BranchDraft::choices(size_t at) const {
  std::vector<AttrDef> all;
  for (AttrDef& def : changed().used_keys()) {
    const bool other = std::any_of(changes_.begin(), changes_.end(),
                                   [&](const Change& c) { return c.first == def.name && &c != changes_.data() + at; });
    if (!other && def.name != "data.without") all.push_back(std::move(def));
  }
  return all;
}

AttrDef BranchDraft::definition(size_t at) const {
  const std::string& key = changes_.at(at).first;
  for (AttrDef& def : changed().used_keys())
    if (def.name == key) return def;
  for (const AttrDef& def : Recipe::keys())
    if (def.name == key) return def;
  throw Error("a recipe has no key \"" + key + "\"");
}

void BranchDraft::add_change() {
  const std::vector<AttrDef> free = choices(changes_.size());
  const auto is_free = [&](const char* key) {
    return std::any_of(free.begin(), free.end(), [&](const AttrDef& d) { return d.name == key; });
  };
  const auto usual = std::find_if(std::begin(kUsual), std::end(kUsual), is_free);
  if (usual != std::end(kUsual))
    changes_.emplace_back(*usual, recipe_.at(*usual));
  else if (!free.empty())
    changes_.emplace_back(free.front().name, recipe_.at(free.front().name));
}

void BranchDraft::set_key(size_t at, const std::string& key) { changes_.at(at) = {key, changed().at(key)}; }
void BranchDraft::set_value(size_t at, AttrValue value) { changes_.at(at).second = std::move(value); }
void BranchDraft::remove(size_t at) { changes_.erase(changes_.begin() + static_cast<std::ptrdiff_t>(at)); }

std::string BranchDraft::fault() const {
  try {
    const Recipe r = changed();
    for (const auto& [key, value] : changes_) r.check_used(key);
  } catch (const Error& e) {
    return e.message();
  }
  if (step_ >= run_.total_steps && !std::any_of(changes_.begin(), changes_.end(), [](const Change& c) {
        return c.first == "epochs" || c.first == "max_steps";
      }))
    return tr("{} has done all its steps there: go on from an earlier step, or give it more epochs", run_.name);
  return {};
}

std::string BranchDraft::said() const {
  std::string text = with_model_ ? projects::model_changes(run_.model, *offered_) : std::string();
  if (const std::string keys = difference_text(differences(recipe_, changed())); !keys.empty())
    text += (text.empty() ? "" : ", ") + keys;
  if (!left_out_.empty()) text += (text.empty() ? "" : ", ") + tr("without samples {}", left_out_);
  return text;
}

std::vector<std::pair<std::string, std::string>> BranchDraft::settings() const {
  std::vector<std::pair<std::string, std::string>> set;
  for (const auto& [key, value] : changes_)
    if (!(recipe_.at(key) == value)) set.emplace_back(key, attr_text(value));
  return set;
}

projects::TrainOptions BranchDraft::options() const {
  projects::TrainOptions o;
  o.run_name = name_;
  o.from = run_.name;
  o.from_step = step_;
  o.without = left_out_;
  o.set = settings();
  if (with_model_) o.model = offered_;
  return o;
}

}  // namespace tenon::views
