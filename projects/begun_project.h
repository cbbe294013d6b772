#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/train/session.h"
#include "projects/project.h"

namespace tenon {
class Recipe;
}

namespace tenon::projects {

/// A recipe as that of another model that goes on from weights of a run: without what the run began with, its
/// teacher, its edits and watches, and without callbacks that prune.
Recipe recipe_to_go_on(const Recipe& recipe);

/// Writes a new project of a model whose weights are there already: one run, of no steps, has them as its state of step
/// 0, and the recipe says that every other run begins with that (init.run). `data` may be shared with a session that
/// has it open. Returns the run. Throws where the file is there, and where a tensor does not fit; nothing is written
/// then.
RunInfo create_begun(const std::string& path, const ModelSpec& model, const Recipe& recipe,
                     const std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& run,
                     const std::string& note);

}  // namespace tenon::projects
