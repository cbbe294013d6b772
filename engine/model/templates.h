#pragma once
#include <string>
#include <vector>

#include "engine/model/model_spec.h"
#include "engine/train/recipe.h"

namespace tenon {

/// A model with the recipe it is trained by: what a new project starts from.
struct Template {
  std::string name;   ///< "fashion-cnn"
  std::string title;  ///< one line for people
  ModelSpec model;
  Recipe recipe;
};
/// Sorted by name.
const std::vector<Template>& templates();
/// Throws Error (usage) that lists the near names.
const Template& find_template(const std::string& name);
/// `make` runs on first use, when every layer and data set is registered.
bool register_template(Template (*make)());

}  // namespace tenon
