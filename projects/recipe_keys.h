#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::projects {

/// Every value that a stored recipe holds, by its whole key: "optimizer.lr".
void each_recipe_key(const nlohmann::json& recipe,
                     const std::function<void(const std::string& key, const nlohmann::json& value)>& tell);

}  // namespace tenon::projects
