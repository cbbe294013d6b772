#include "views/sweeps/sweep_draft.h"

#include <algorithm>

#include "core/error.h"
#include "projects/search/sweep_plan.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char* kUsual[] = {"optimizer.lr", "data.batch_size", "optimizer.weight_decay", "optimizer.type",
                                  "schedule.type"};

const AttrDef* find(const std::vector<AttrDef>& defs, const std::string& key) {
  const auto at = std::find_if(defs.begin(), defs.end(), [&](const AttrDef& d) { return d.name == key; });
  return at == defs.end() ? nullptr : &*at;
}
}  // namespace

void SweepDraft::reset(const Recipe& recipe) {
  recipe_ = recipe;
  keys_.clear();
  attrs_.clear();
  add_key();
}

void SweepDraft::set_key(size_t at, const std::string& key) {
  const auto defs = choices();
  const AttrDef* def = find(defs, key);
  keys_.at(at) = {key, def ? projects::suggested_range(*def, recipe_) : std::string()};
}

void SweepDraft::add_key() {
  const auto defs = choices();
  const auto is_free = [&](const std::string& key) {
    return std::none_of(keys_.begin(), keys_.end(), [&](const auto& k) { return k.first == key; });
  };
  const auto add = [&](const std::string& key) {
    keys_.emplace_back();
    set_key(keys_.size() - 1, key);
  };
  for (const char* key : kUsual)
    if (find(defs, key) && is_free(key)) return add(key);
  for (const AttrDef& d : defs)
    if (is_free(d.name)) return add(d.name);
}

void SweepDraft::remove_key(size_t at) { keys_.erase(keys_.begin() + static_cast<int64_t>(at)); }

std::vector<AttrDef> SweepDraft::choices() const {
  std::vector<AttrDef> all = recipe_.used_keys();
  for (const auto& [key, range] : keys_) {
    const AttrDef* def = find(all, key);
    if (!def || def->choices.empty()) continue;
    for (const std::string& value : def->choices) {
      if (("," + range + ",").find("," + value + ",") == std::string::npos) continue;
      Recipe other = recipe_;
      other.set(key, value);
      const size_t had = all.size();
      for (const AttrDef& d : other.used_keys())
        if (!find(all, d.name)) all.push_back(d);
      if (all.size() != had) def = find(all, key);  // the list has moved
    }
  }
  return all;
}

AttrValue SweepDraft::attr(const std::string& name) const {
  if (const auto at = attrs_.find(name); at != attrs_.end()) return at->second;
  for (const AttrDef& d : projects::SweepPlan::attrs())
    if (d.name == name) return d.fallback;
  throw Error("a sweep has no attribute " + name);
}

std::vector<Attr> SweepDraft::attrs() const {
  std::vector<Attr> out;
  for (const auto& [name, value] : attrs_) out.push_back({name, value});
  return out;
}

int64_t SweepDraft::trials() const {
  try {
    return projects::SweepPlan(keys_, attrs(), recipe_).runs;
  } catch (const Error&) {
    return 0;
  }
}

std::string SweepDraft::fault() const {
  if (keys_.empty()) return tr("Add a key to search over.");
  try {
    projects::SweepPlan(keys_, attrs(), recipe_);
    return {};
  } catch (const Error& e) {
    return e.message() + (e.hint().empty() ? "" : ". " + e.hint());
  }
}

}  // namespace tenon::views
