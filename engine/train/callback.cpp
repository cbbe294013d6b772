#include "engine/train/callback.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

constexpr const char* kKey = "callbacks";

Registry<CallbackDef>& callback_registry() {
  static auto& all = *new Registry<CallbackDef>("callback");
  return all;
}

std::string text_of(const std::vector<AttrCall>& calls) {
  std::string text;
  for (const AttrCall& c : calls) {
    text += (text.empty() ? "" : "; ") + c.name;
    for (const auto& [name, value] : c.attrs) text += " " + name + "=" + value;
  }
  return text;
}

/// The definition a call names. Throws Error (usage).
const CallbackDef& listed(const std::string& name) {
  const CallbackDef& def = callbacks().at(name);
  if (!def.listed())
    throw Error::usage(fmt::format("{}: {} is no callback of this list", kKey, name),
                       fmt::format("Its key is {}: --set {}={}", def.keys[0], def.keys[0], attr_text(def.on)));
  return def;
}

bool is_used(const std::vector<AttrDef>& used, const std::string& key) {
  return std::any_of(used.begin(), used.end(), [&](const AttrDef& d) { return d.name == key; });
}

bool is_on(const CallbackDef& def, const Recipe& recipe) {
  const AttrValue& value = recipe.at(def.keys[0]);
  return def.any ? value != def.off : value == def.on;
}

CallbackRow row_of(const CallbackDef& def) {
  CallbackRow row;
  row.name = def.name;
  row.title = def.title;
  row.says = def.help;
  row.keys = def.listed() ? std::vector<std::string>{kKey} : def.keys;
  row.moment = def.moment;
  row.def = &def;
  return row;
}

CallbackRow row_of(const AttrCall& call, int64_t place) {
  CallbackRow row;
  row.name = row.title = call.name;
  row.keys = {kKey};
  row.on = true;
  row.place = place;
  try {
    const CallbackDef& def = listed(call.name);
    row = row_of(def);
    row.on = true;
    row.place = place;
    row.values = AttrValues(def.attrs, call_attrs(call, def.attrs, kKey), def.name);
    std::string settings;
    for (const AttrDef& a : def.attrs)
      settings += (settings.empty() ? "" : ", ") + a.name + " " + attr_text(row.values.at(a.name));
    if (!settings.empty()) row.says += " (" + settings + ")";
  } catch (const Error& e) {
    row.fault = e.message();
  }
  return row;
}

std::vector<AttrCall> calls_of(const Recipe& recipe) { return parse_calls(recipe.text(kKey), kKey); }

Recipe with_calls(const Recipe& recipe, const std::vector<AttrCall>& calls) {
  Recipe r = recipe;
  r.set_value(kKey, text_of(calls));
  return r;
}

}  // namespace

const char* moment_text(Moment m) {
  switch (m) {
    case Moment::rate:
      return "when the learning rate is decided";
    case Moment::samples:
      return "when the batch is drawn";
    case Moment::loss:
      return "when the loss is computed";
    case Moment::check:
      return "when the gradients are there";
    case Moment::gradients:
      return "on the gradients";
    case Moment::clipping:
      return "before the update";
    case Moment::update:
      return "after the update";
    case Moment::evaluation:
      return "after an evaluation";
    case Moment::verdict:
      return "after an evaluation, last";
    case Moment::checkpoint:
      return "at a checkpoint";
  }
  return "";
}

nlohmann::json Callback::state() const { return {}; }
void Callback::load(const nlohmann::json& state) {
  if (!state.is_null()) throw Error("the checkpoint has a state of a callback that keeps none");
}

bool register_callback(CallbackDef def, Place place) { return callback_registry().add(std::move(def), place); }
const Registry<CallbackDef>& callbacks() { return callback_registry(); }

std::vector<CallbackRow> callback_rows(const Recipe& recipe) {
  std::vector<CallbackRow> on, off;
  const std::vector<AttrDef> used = recipe.used_keys();
  for (const CallbackDef& def : callbacks()) {
    CallbackRow row = row_of(def);
    if (!def.listed()) {
      if (!is_used(used, def.keys[0])) {
        row.fault = fmt::format("{} says nothing in this recipe", def.keys[0]);
      } else if (is_on(def, recipe)) {
        row.on = true;
        if (def.says) row.says = def.says(recipe);
      }
    }
    (row.on ? on : off).push_back(std::move(row));
  }
  try {
    int64_t place = 0;
    for (const AttrCall& call : calls_of(recipe)) on.push_back(row_of(call, place++));
  } catch (const Error& e) {
    CallbackRow row;
    row.name = row.title = kKey;
    row.keys = {kKey};
    row.on = true;
    row.fault = e.message();
    on.push_back(std::move(row));
  }
  std::stable_sort(on.begin(), on.end(), [](const auto& a, const auto& b) { return a.moment < b.moment; });
  std::stable_sort(off.begin(), off.end(), [](const auto& a, const auto& b) { return a.title < b.title; });
  on.insert(on.end(), std::make_move_iterator(off.begin()), std::make_move_iterator(off.end()));
  return on;
}

Recipe with_callback(const Recipe& recipe, const std::string& name) {
  const CallbackDef& def = callbacks().at(name);
  if (def.listed()) {
    std::vector<AttrCall> calls = calls_of(recipe);
    calls.push_back({name, {}});
    return with_calls(recipe, calls);
  }
  recipe.check_used(def.keys[0]);
  Recipe r = recipe;
  r.set_value(def.keys[0], def.on);
  return r;
}

Recipe without_callback(const Recipe& recipe, const CallbackRow& row) {
  if (!row.on) return recipe;
  if (row.place < 0 && row.def) {
    Recipe r = recipe;
    r.set_value(row.def->keys[0], row.def->off);
    return r;
  }
  Recipe r = recipe;
  if (row.place < 0) {  // a text that cannot be read
    r.reset(kKey);
    return r;
  }
  std::vector<AttrCall> calls = calls_of(recipe);
  if (static_cast<size_t>(row.place) < calls.size()) calls.erase(calls.begin() + row.place);
  return with_calls(recipe, calls);
}

Recipe with_callback_moved(const Recipe& recipe, int64_t place, int64_t by) {
  std::vector<AttrCall> calls = calls_of(recipe);
  const int64_t to = place + by, n = static_cast<int64_t>(calls.size());
  if (place < 0 || place >= n || to < 0 || to >= n) return recipe;
  AttrCall moved = std::move(calls[static_cast<size_t>(place)]);
  calls.erase(calls.begin() + place);
  calls.insert(calls.begin() + to, std::move(moved));
  return with_calls(recipe, calls);
}

Recipe with_callback_setting(const Recipe& recipe, int64_t place, const std::string& attr, const AttrValue& value) {
  std::vector<AttrCall> calls = calls_of(recipe);
  AttrCall& call = calls.at(static_cast<size_t>(place));
  const CallbackDef& def = listed(call.name);
  for (const AttrDef& a : def.attrs) {
    if (a.name != attr) continue;
    const AttrValue fit = fit_attr(a, value, call.name + " " + attr);
    std::erase_if(call.attrs, [&](const auto& given) { return given.first == attr; });
    std::string text = attr_text(fit);
    std::erase(text, ' ');  // blanks separate settings
    if (fit != a.fallback) call.attrs.emplace_back(attr, text);
    return with_calls(recipe, calls);
  }
  throw Error::usage(fmt::format("{}: {} has no \"{}\"", kKey, call.name, attr));
}

bool callback_moves(const std::vector<CallbackRow>& rows, const CallbackRow& row, int64_t by) {
  return row.place >= 0 && std::any_of(rows.begin(), rows.end(), [&](const CallbackRow& r) {
           return r.on && r.place == row.place + by && r.moment == row.moment;
         });
}

CallbackList::CallbackList(const Recipe& recipe, const CallbackRun& run) {
  for (const AttrCall& call : calls_of(recipe)) {
    const CallbackDef& def = listed(call.name);
    all_.push_back({&def, def.make(AttrValues(def.attrs, call_attrs(call, def.attrs, kKey), def.name), run)});
  }
  std::stable_sort(all_.begin(), all_.end(),
                   [](const Item& a, const Item& b) { return a.def->moment < b.def->moment; });
}

std::vector<const Callback*> CallbackList::members() const {
  std::vector<const Callback*> all;
  for (const Item& item : all_) all.push_back(item.it.get());
  return all;
}

bool CallbackList::attach(const std::shared_ptr<nn::Module>& model) {
  bool any = false;
  for (const Item& i : all_) any |= i.it->attach(model);
  return any;
}

void CallbackList::detach() {
  for (const Item& i : all_) i.it->detach();
}

bool CallbackList::changes_gradients() const {
  return std::any_of(all_.begin(), all_.end(), [](const Item& i) { return i.def->moment == Moment::gradients; });
}

namespace {
bool watches(const CallbackDef& def) { return def.moment == Moment::evaluation || def.moment == Moment::verdict; }
}  // namespace

bool CallbackList::watches_evaluations() const {
  return std::any_of(all_.begin(), all_.end(), [](const Item& i) { return watches(*i.def); });
}

void CallbackList::on_gradients(const std::vector<nn::Named>& trained, int64_t step) {
  const NoGrad no_grad;
  for (const Item& i : all_) i.it->on_gradients(trained, step);
}

void CallbackList::on_update(const std::vector<nn::Named>& trained, int64_t step) {
  const NoGrad no_grad;
  for (const Item& i : all_) i.it->on_update(trained, step);
}

void CallbackList::on_evaluation(const Evaluation& evaluation, int64_t step) {
  ending_.clear();
  for (const Item& i : all_) {
    if (!watches(*i.def)) continue;
    std::string why = i.it->on_evaluation(evaluation, step);
    if (ending_.empty()) ending_ = std::move(why);
  }
}

std::vector<std::pair<std::string, double>> CallbackList::figures() const {
  std::vector<std::pair<std::string, double>> all;
  for (const Item& i : all_)
    for (auto& f : i.it->figures())
      if (std::none_of(all.begin(), all.end(), [&](const auto& a) { return a.first == f.first; }))
        all.push_back(std::move(f));
  return all;
}

nlohmann::json CallbackList::state() const {
  nlohmann::json all;
  for (const Item& i : all_) all["kept"].push_back(nlohmann::json::array({i.def->name, i.it->state()}));
  if (!all_.empty()) all["ending"] = ending_;
  return all;
}

void CallbackList::load(const nlohmann::json& state) {
  const Error other("the callbacks of the checkpoint are not those of the recipe", "it belongs to another recipe");
  if (state.is_null() && all_.empty()) return;
  if (!state.is_object() || !state.contains("kept") || !state["kept"].is_array() ||
      state["kept"].size() != all_.size() || !state.contains("ending") || !state["ending"].is_string())
    throw other;
  const nlohmann::json& kept = state["kept"];
  for (size_t i = 0; i < all_.size(); ++i)
    if (!kept[i].is_array() || kept[i].size() != 2 || kept[i][0] != all_[i].def->name) throw other;
  for (size_t i = 0; i < all_.size(); ++i) all_[i].it->load(kept[i][1]);
  ending_ = state["ending"].get<std::string>();
}

void CallbackList::take_over(const CallbackList& old) {
  for (size_t i = 0; i < std::min(all_.size(), old.all_.size()); ++i)
    if (all_[i].def == old.all_[i].def) all_[i].it->load(old.all_[i].it->state());
}

void CallbackList::forget_others(const std::vector<nn::Named>& trained) {
  for (const Item& i : all_) i.it->forget_others(trained);
}

}  // namespace tenon
