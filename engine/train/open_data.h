#pragma once
#include "engine/data/dataset.h"

namespace tenon {

class Recipe;

/// The data set of a recipe, as a session with it opens it. Throws as data::open_dataset().
data::Split open_data(const Recipe& recipe);

}  // namespace tenon
