#include "engine/train/recipe.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/data/dataset.h"

namespace tenon {
namespace {

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const data::Kind& k : data::dataset_kinds()) names.push_back(k.name);
  return names;
}

/// The only list of what a recipe may say.
std::vector<RecipeKey> make_table() {
  using I = int64_t;
  using S = std::string;
  constexpr double none = 0, huge = 9e15, real = 1e300;
  return {
      {"seed", I{0}, 0, huge, {}, "decides every random number: starting weights, order of the samples, dropout"},
      {"epochs", I{3}, 1, 1e6, {}, "passes over the training set"},
      {"max_steps", I{0}, 0, huge, {}, "stop after so many steps; 0: only epochs count"},
      {"eval_every", I{1}, 0, 1e6, {}, "evaluate on the test split after so many epochs; 0: never"},
      {"checkpoint_every", I{200}, 0, huge, {}, "steps between checkpoints; 0: only at the end of an epoch"},
      {"on_nan",
       S("stop"),
       none,
       none,
       {"stop", "continue"},
       "what to do when the loss or a gradient is not finite: stop before the weights are written, or go on"},
      {"data.dataset", S("fashion-mnist"), none, none, dataset_names(), "the data set"},
      {"data.dir", S(""), none, none, {}, "folder of the data set's files; empty: where the distribution's package puts them"},
      {"data.batch_size", I{64}, 1, huge, {}, "samples a step"},
      {"data.shuffle", true, none, none, {}, "a new order every epoch"},
      {"data.drop_last", false, none, none, {}, "leave out a last batch that is not full"},
      {"data.workers", I{1}, 0, 256, {}, "threads that prepare batches ahead; 0: none"},
      {"data.prefetch", I{4}, 1, 1024, {}, "batches prepared ahead"},
      {"data.samples", I{0}, 0, 1e9, {}, "training samples of a generated data set; 0: its default"},
      {"data.noise", 0.03, 0, 1e6, {}, "standard deviation of the noise of a generated data set"},
      {"data.nan_sample", I{-1}, -1, huge, {}, "row of the training set to spoil with a NaN, to try the NaN doctor on; -1: none"},
      {"data.nan_value_index", I{0}, 0, huge, {}, "which value of that row becomes NaN"},
      {"loss.type", S("cross_entropy"), none, none, {"cross_entropy", "mse"}, "what is minimised"},
      {"optimizer.type", S("adam"), none, none, {"sgd", "adam", "adamw"}, "how the weights follow the gradients"},
      {"optimizer.lr", 1e-3, 0, 1e30, {}, "base learning rate"},
      {"optimizer.momentum", 0.9, 0, 1, {}, "of sgd"},
      {"optimizer.nesterov", false, none, none, {}, "look ahead along the momentum (sgd)"},
      {"optimizer.weight_decay",
       0.0,
       0,
       1e30,
       {},
       "pull of the weights towards 0: added to the gradient, or for adamw applied apart from it"},
      {"optimizer.beta1", 0.9, 0, 0.9999999, {}, "of adam and adamw: memory of the mean"},
      {"optimizer.beta2", 0.999, 0, 0.9999999, {}, "of adam and adamw: memory of the square"},
      {"optimizer.eps", 1e-8, 0, 1e30, {}, "of adam and adamw: added to the root of the square"},
      {"schedule.type", S("constant"), none, none, {"constant", "step", "cosine"}, "how the learning rate changes"},
      {"schedule.warmup_steps", I{0}, 0, huge, {}, "steps over which the rate first rises in a line from 0"},
      {"schedule.step_epochs", 1.0, 1e-6, 1e6, {}, "step: epochs between reductions"},
      {"schedule.gamma", 0.1, 0, real, {}, "step: factor of each reduction"},
      {"schedule.min_lr", 0.0, 0, 1e30, {}, "cosine: the rate at the end"},
  };
}

size_t index_of(const std::string& key) {
  const auto& keys = Recipe::keys();
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i].key == key) return i;
  std::vector<std::string> names;
  for (const RecipeKey& k : keys) {
    names.push_back(k.key);
    // "lr" means optimizer.lr to most people.
    if (k.key.ends_with("." + key)) throw Error::usage("a recipe has no key \"" + key + "\" (did you mean " + k.key + "?)");
  }
  std::string near = near_names(key, names.data(), names.size());
  throw Error::usage("a recipe has no key \"" + key + "\"" + (near.empty() ? "" : " (" + near + ")"),
                     "keys look like optimizer.lr, data.batch_size, epochs, seed");
}

std::string text_of(const AttrValue& v) {
  struct {
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const {
      char b[32];
      return {b, std::to_chars(b, b + sizeof b, d).ptr};
    }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const std::string& s) const { return "\"" + s + "\""; }
    std::string operator()(const std::vector<int64_t>&) const { return "a list"; }
  } show;
  return std::visit(show, v);
}

const char* kind_of(const AttrValue& v) {
  constexpr const char* kinds[] = {"a whole number", "a number", "true or false", "text", "a list of whole numbers"};
  return kinds[v.index()];
}

[[noreturn]] void refuse(const RecipeKey& k, const std::string& value, const std::string& why) {
  throw Error::usage(k.key + " = " + value + ": " + why, k.key + ": " + k.help);
}

void check(const RecipeKey& k, const AttrValue& v) {
  if (!k.choices.empty()) {
    const std::string& s = std::get<std::string>(v);
    std::string list;
    for (const std::string& c : k.choices) {
      if (c == s) return;
      list += (list.empty() ? "" : ", ") + c;
    }
    std::string near = near_names(s, k.choices.data(), k.choices.size());
    refuse(k, text_of(v), "it is one of " + list + (near.empty() ? "" : " (" + near + ")"));
  }
  if (k.min == k.max) return;
  double x = v.index() == 0 ? static_cast<double>(std::get<int64_t>(v)) : std::get<double>(v);
  if (!(x >= k.min)) refuse(k, text_of(v), std::isnan(x) ? "it is a number" : "it is at least " + text_of(k.min));
  if (!(x <= k.max)) refuse(k, text_of(v), "it is at most " + text_of(k.max));
}

AttrValue parse(const RecipeKey& k, const std::string& text) {
  const char *begin = text.data(), *end = begin + text.size();
  std::string quoted = "\"" + text + "\"", need = std::string("it is ") + kind_of(k.fallback);
  if (std::holds_alternative<std::string>(k.fallback)) return text;
  if (std::holds_alternative<bool>(k.fallback)) {
    if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "0" || text == "no" || text == "off") return false;
    refuse(k, quoted, need);
  }
  double d = 0;
  auto [rest, error] = std::from_chars(begin, end, d);
  if (error != std::errc{} || rest != end) refuse(k, quoted, need);
  if (std::holds_alternative<double>(k.fallback)) return d;
  int64_t i = 0;
  auto whole = std::from_chars(begin, end, i);
  if (whole.ec == std::errc{} && whole.ptr == end) return i;
  if (d != std::floor(d) || std::abs(d) > 9e15) refuse(k, quoted, need);  // 1e4 is a whole number too
  return static_cast<int64_t>(d);
}

AttrValue from_json_value(const RecipeKey& k, const nlohmann::json& j) {
  std::string need = std::string("it is ") + kind_of(k.fallback);
  switch (k.fallback.index()) {
    case 0:
      if (j.is_number_integer()) return j.get<int64_t>();
      if (j.is_number_float() && j.get<double>() == std::floor(j.get<double>()) && std::abs(j.get<double>()) < 9e15)
        return static_cast<int64_t>(j.get<double>());
      break;
    case 1:
      if (j.is_number()) return j.get<double>();
      break;
    case 2:
      if (j.is_boolean()) return j.get<bool>();
      break;
    case 3:
      if (j.is_string()) return j.get<std::string>();
      break;
    default:
      break;
  }
  refuse(k, j.dump(), need);
}

void read(Recipe& recipe, const nlohmann::json& j, const std::string& prefix) {
  for (const auto& [name, value] : j.items()) {
    std::string key = prefix + name;
    if (value.is_object())
      read(recipe, value, key + ".");
    else
      recipe.set_value(key, from_json_value(Recipe::keys()[index_of(key)], value));
  }
}

}  // namespace

const std::vector<RecipeKey>& Recipe::keys() {
  static const std::vector<RecipeKey> table = make_table();
  return table;
}

Recipe::Recipe() {
  for (const RecipeKey& k : keys()) values_.push_back(k.fallback);
}

Recipe Recipe::from_json(const nlohmann::json& j) {
  Recipe r;
  if (j.is_null()) return r;
  if (!j.is_object()) throw Error::usage("a recipe is a JSON object, not " + std::string(j.type_name()));
  read(r, j, "");
  return r;
}

nlohmann::json Recipe::to_json() const {
  nlohmann::json j = nlohmann::json::object();
  for (size_t i = 0; i < values_.size(); ++i) {
    const std::string& key = keys()[i].key;
    size_t dot = key.find('.');
    nlohmann::json& place = dot == std::string::npos ? j[key] : j[key.substr(0, dot)][key.substr(dot + 1)];
    std::visit([&](const auto& v) { place = v; }, values_[i]);
  }
  return j;
}

void Recipe::set(const std::string& key, const std::string& text) {
  size_t i = index_of(key);
  AttrValue v = parse(keys()[i], text);
  check(keys()[i], v);
  values_[i] = std::move(v);
}

void Recipe::set_value(const std::string& key, AttrValue value) {
  size_t i = index_of(key);
  const RecipeKey& k = keys()[i];
  if (value.index() == 0 && k.fallback.index() == 1) value = static_cast<double>(std::get<int64_t>(value));
  if (value.index() != k.fallback.index()) refuse(k, text_of(value), std::string("it is ") + kind_of(k.fallback));
  check(k, value);
  values_[i] = std::move(value);
}

const AttrValue& Recipe::at(const std::string& key) const { return values_[index_of(key)]; }
int64_t Recipe::integer(const std::string& key) const { return std::get<int64_t>(at(key)); }
double Recipe::number(const std::string& key) const { return std::get<double>(at(key)); }
bool Recipe::flag(const std::string& key) const { return std::get<bool>(at(key)); }
const std::string& Recipe::text(const std::string& key) const { return std::get<std::string>(at(key)); }

}  // namespace tenon
