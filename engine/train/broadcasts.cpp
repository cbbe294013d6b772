#include "engine/train/broadcasts.h"

#include "engine/train/recipe.h"
#include "engine/train/session.h"

namespace tenon {

std::vector<BroadcastWarning> broadcasts_of_a_step(const ModelSpec& model, const Recipe& recipe) {
  Recipe alone = recipe;
  alone.reset("distill.from");  // a teacher broadcasts nothing, and nobody gave one
  TrainingSession session(model, alone);
  BroadcastWatch watch;
  session.step();
  return watch.warnings();
}

}  // namespace tenon
