#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/train/recipe.h"
#include "engine/train/weight_map.h"
#include "projects/time_travel.h"

// The weights that a run begins with, from wherever its recipe says.
namespace tenon::projects {

/// The tensors of a file, read as data: nothing in it is ever run.
struct WeightsFile {
  std::string text;    ///< "/data/resnet.pt, a PyTorch checkpoint", "run cnn-01 of /data/a.tenon at step 938"
  std::string sha256;  ///< of the file; of a run its digest at the step
  std::vector<GivenTensor> tensors;
  ModelSpec model = {};  ///< of a run
};

/// Whether a recipe says what a run begins with (init.from, init.run).
bool begins_with_weights(const Recipe& recipe);
/// What it says; `project` is whose runs init.run means where init.from names no other. A gpt2 of llama.cpp (GGUF) is
/// read with the names that `model`, which begins with it, has for its tensors, where that is such a transformer and
/// init.map says nothing else. Throws Error naming the file that is not there, is none with weights, or is not the one
/// that init.sha256 says.
WeightsFile read_weights(Project& project, const ModelSpec& model, const Recipe& recipe, const Progress& progress = {});
/// Of a run: "cnn-01@best", as init.run has it. Its averaged weights where it is evaluated with them.
WeightsFile weights_of_run(Project& project, const std::string& which, const Progress& progress = {});
/// The table of a recipe and a model, without a run.
WeightMap weight_table(Project& project, const ModelSpec& model, const Recipe& recipe, const Progress& progress = {});

}  // namespace tenon::projects
