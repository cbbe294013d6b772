#pragma once
#include <string>

#include "engine/data/dataset.h"
#include "engine/train/recipe.h"

namespace tenon {

/// A recipe that learns from a file or folder of somebody's own, and what is there.
struct OwnData {
  Recipe recipe;
  data::Split split;
};
/// The kind is what the file or folder is (data::recognised_dataset()); what was told of data of another kind is
/// forgotten, and so is what was told of others of its kind where these cannot be read by it. What is taken for granted
/// of the data, and what suit_to_data() changes, is said by the recipe. Throws Error where the data cannot be read.
OwnData with_own_data(const Recipe& recipe, const std::string& path);

/// Gives the recipe a loss for the targets, where its own is for others, and a batch that the samples fill.
void suit_to_data(Recipe& recipe, const data::Dataset& train);

}  // namespace tenon
