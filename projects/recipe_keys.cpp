#include "projects/recipe_keys.h"

#include <nlohmann/json.hpp>

namespace tenon::projects {

namespace {
using TellKey = std::function<void(const std::string& key, const nlohmann::json& value)>;

void tell_keys(const nlohmann::json& j, const std::string& path, const TellKey& tell) {
  if (!j.is_object()) return tell(path, j);
  for (const auto& [key, value] : j.items()) tell_keys(value, path.empty() ? key : path + "." + key, tell);
}
}  // namespace

void each_recipe_key(const nlohmann::json& recipe, const TellKey& tell) { tell_keys(recipe, "", tell); }

}  // namespace tenon::projects
