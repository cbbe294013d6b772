#pragma once
#include <string>
#include <vector>

#include "engine/op/broadcast_watch.h"

namespace tenon {

class Recipe;
struct ModelSpec;

/// What one step of a recipe, in a session of its own, pairs of sizes that are likely not meant for each other. Throws
/// Error as a session of the model and the recipe does.
std::vector<BroadcastWarning> broadcasts_of_a_step(const ModelSpec& model, const Recipe& recipe);
/// What is said where there are none.
inline constexpr const char* kNoBroadcasts = "every size of a step pairs as one would expect";

}  // namespace tenon
