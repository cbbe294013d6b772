#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/model/model_spec.h"

namespace tenon {

/// One key a recipe has. `choices` empty and min == max: any value of the kind (that is the alternative `fallback` holds).
struct RecipeKey {
  std::string key;  ///< dotted: "optimizer.lr"
  AttrValue fallback;
  double min = 0, max = 0;
  std::vector<std::string> choices;
  std::string help;
};

/// How a model is trained: data, loss, optimizer, schedule, length, seed. Every key has a default; the table in recipe.cpp is the only
/// list. Unknown keys, values of the wrong kind and values out of limits throw Error (usage) that names the key and what it may be.
class Recipe {
 public:
  Recipe();
  static const std::vector<RecipeKey>& keys();
  /// Nested objects ({"optimizer": {"lr": 0.1}}) and dotted keys are both read; keys left out keep their default.
  static Recipe from_json(const nlohmann::json& j);
  /// Every key, nested.
  nlohmann::json to_json() const;

  /// From text as typed after --set. "true", "1e-3", "adamw", ...
  void set(const std::string& key, const std::string& text);
  void set_value(const std::string& key, AttrValue value);

  const AttrValue& at(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool flag(const std::string& key) const;
  const std::string& text(const std::string& key) const;
  bool operator==(const Recipe&) const = default;

 private:
  std::vector<AttrValue> values_;  ///< in the order of keys()
};

}  // namespace tenon
