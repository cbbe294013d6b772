#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/train/recipe.h"
#include "projects/search/search_space.h"

namespace tenon::views {

/// A sweep that is being put together in a form: what was typed, right or wrong.
class SweepDraft {
 public:
  /// Of another project: one key, the learning rate, over two decades.
  void reset(const Recipe& recipe);
  /// Of the next run, whose keys are searched.
  void set_recipe(const Recipe& recipe) { recipe_ = recipe; }

  const projects::Settings& keys() const { return keys_; }
  /// Another key at a place, with what it might sensibly be.
  void set_key(size_t at, const std::string& key);
  void set_range(size_t at, const std::string& range) { keys_.at(at).second = range; }
  /// One more: the first of the usual ones that is not searched yet.
  void add_key();
  void remove_key(size_t at);
  /// What can be searched: keys that say something to the recipe, or under a definition that the draft lists.
  std::vector<AttrDef> choices() const;

  /// Everything but the keys (SweepPlan::attrs()), as it is set.
  AttrValue attr(const std::string& name) const;
  void set_attr(const std::string& name, const AttrValue& value) { attrs_[name] = value; }
  std::vector<Attr> attrs() const;

  /// How many trials it is; 0 where fault() says what is wrong.
  int64_t trials() const;
  /// In words what keeps it from beginning; empty: nothing does.
  std::string fault() const;

 private:
  Recipe recipe_;
  projects::Settings keys_;
  std::map<std::string, AttrValue> attrs_;
};

}  // namespace tenon::views
