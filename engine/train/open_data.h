#pragma once
#include "engine/data/dataset.h"
#include "engine/data/loader.h"

namespace tenon {

class Recipe;

/// The data set of a recipe, as a session with it opens it. Throws as data::open_dataset().
data::Split open_data(const Recipe& recipe);
/// Data that were opened without the recipe's transforms, with these.
data::Split transformed_as(const Recipe& recipe, const data::Split& raw);
/// How the recipe has its batches loaded, without what a session adds: samplers, rows left out, replicas.
data::LoaderOptions loader_options(const Recipe& recipe);

}  // namespace tenon
