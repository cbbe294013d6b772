#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/spec/attr.h"

namespace tenon {

// Note [Keys come from definitions]
// A key "group.selector" (optimizer.type, schedule.type, loss.type, data.dataset) chooses one definition of a registry;
// the attributes of every definition there are the keys "group.<attribute>". So whoever registers an optimizer has
// given the recipe its keys. Definitions may share a key ("optimizer.lr"); each has its own default, which holds while
// that definition is the chosen one and nothing was set.

/// How a model is trained: data, loss, optimizer, schedule, length, seed. Every key has a default. Unknown keys, values
/// of the wrong kind and values out of limits throw Error (usage) that names the key and what it may be.
class Recipe {
 public:
  /// What a recipe may say: attributes of dotted names ("optimizer.lr"). Grows with the registries.
  static const std::vector<AttrDef>& keys();
  /// Nested objects ({"optimizer": {"lr": 0.1}}) and dotted keys are both read; keys left out keep their default. A
  /// value that is its key's default counts as not set: choosing another definition later brings that one's default.
  static Recipe from_json(const nlohmann::json& j);
  /// Every key that has a meaning here, nested, and those that were set beside them.
  nlohmann::json to_json() const;

  /// From text as typed after --set. "true", "1e-3", "adamw", ...
  void set(const std::string& key, const std::string& text);
  void set_value(const std::string& key, AttrValue value);
  /// Throws Error (usage) where a key says nothing to the definition that is chosen, or its value does not fit that.
  void check_used(const std::string& key) const;

  /// The keys that have a meaning here, each as the definition that is chosen has it (default, limits, help), in the
  /// order of a form: what chooses a definition stands before its settings, and those before what holds for all.
  std::vector<AttrDef> used_keys() const;
  /// Back to the default.
  void reset(const std::string& key);

  const AttrValue& at(const std::string& key) const;
  /// What the key is where nothing was set: the default of the definition that is chosen.
  const AttrValue& fallback(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool flag(const std::string& key) const;
  const std::string& text(const std::string& key) const;
  /// What is set of the attributes of the definition that is chosen in a group ("optimizer"), by the attribute's name.
  std::vector<Attr> attrs(const std::string& group) const;
  /// The same values for every key that has a meaning.
  bool operator==(const Recipe& o) const;

 private:
  std::map<std::string, AttrValue> values_;  ///< by key; the others have their defaults
};

/// A key that two recipes disagree on, with their values as text; empty where the key says nothing to a recipe.
struct KeyDifference {
  std::string key, from, to;
};
/// In the order of used_keys(), those of `to` first.
std::vector<KeyDifference> differences(const Recipe& from, const Recipe& to);
/// `theirs` with what `mine` changed of `base`: where both changed a key, it is as in `mine`.
Recipe merged(const Recipe& base, const Recipe& mine, const Recipe& theirs);
/// "optimizer.lr 0.01 → 0.003, epochs 3 → 5"
std::string difference_text(const std::vector<KeyDifference>& all);

}  // namespace tenon
