#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/train/recipe.h"

namespace tenon {

/// A recipe that learns from a file or folder of somebody's own, and what is there.
struct OwnData {
  Recipe recipe;
  data::Split split;
};
/// The recipe with another file or folder, which is not opened yet. Its kind is what it is
/// (data::recognised_dataset()); what was told of data of another kind is forgotten. Throws Error where no kind reads
/// it.
Recipe naming_data(const Recipe& recipe, const std::string& path);
/// The same, and opens it, with `settings` as typed. What was told of other data of its kind is forgotten where this
/// one cannot be read by it. What is taken for granted of the data, and what suit_to_data() changes, is said by the
/// recipe. Throws Error where the data cannot be read.
OwnData with_own_data(const Recipe& recipe, const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& settings = {});

/// Gives the recipe a loss for the targets, where its own is for others, and a batch that the samples fill.
void suit_to_data(Recipe& recipe, const data::Dataset& train);

}  // namespace tenon
