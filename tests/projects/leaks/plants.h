#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"
#include "engine/train/recipe.h"
#include "tracing/record/memory_owners.h"

namespace tenon::projects::testing_leaks {

/// Something in a run that keeps tensors, as a person's plug-in might: for good, or as it should.
struct Plant {
  std::string type;  ///< of its layer; empty: the model has none
  bool leaks = false;
  tracing::OwnerKind kind = tracing::OwnerKind::unknown;
  std::string owner = {};  ///< a part of the owner's name
  std::string as = {};     ///< "graph" or "view"; empty: a tensor
  bool used = false;       ///< what is kept goes into the losses
  std::vector<std::pair<std::string, std::string>> set = {};
};
/// Leaks, then those that only look like one.
const std::vector<Plant>& plants();
/// Adds their layers, data set, callbacks, optimizer and op to the open scope.
void register_plants();
/// What the variables among them have kept is given up.
void clear_plants();

/// A small model with the plant in it, and how it is trained; everything that may vary does, by the seed.
ModelSpec model_of(const Plant& plant, uint64_t seed);
Recipe recipe_of(const Plant& plant, uint64_t seed);

}  // namespace tenon::projects::testing_leaks
