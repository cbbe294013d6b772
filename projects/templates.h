#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/model/model_spec.h"

namespace tenon::projects {

/// A model with the recipe that trains it: what a new project starts from. Registered in the file that defines it.
struct Template {
  std::string name;          ///< "fashion-cnn"
  std::string help;          ///< one line
  ModelSpec (*model)();
  nlohmann::json (*recipe)();
  bool needs_files = false;  ///< its data set lies in files that may be missing
};
bool register_template(Template t);
/// Sorted by name.
const std::vector<Template>& templates();
/// Throws a usage error that lists the near names.
const Template& find_template(const std::string& name);

}  // namespace tenon::projects
