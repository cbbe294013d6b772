#pragma once
#include <string>
#include <vector>

#include "engine/train/recipe.h"

namespace tenon {

/// A registry whose definitions are chosen by "<name>.<selector>" and set by "<name>.<attribute>".
struct RecipeGroup {
  struct Member {
    std::string name, help;
    const std::vector<AttrDef>* attrs;
  };
  std::string name, selector, fallback, help;
  std::vector<Member> members;
};
/// As the registries are now.
const std::vector<RecipeGroup>& recipe_groups();
/// The keys of no group, and those of every group.
std::vector<AttrDef> make_recipe_table();

}  // namespace tenon
