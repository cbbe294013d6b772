#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon::python {

struct ReadModel {
  ModelSpec model;
  std::vector<std::string> remarks;  ///< what was left out, each with its line
  std::map<std::string, int> lines;  ///< by layer: where it is made, or called if it has no module
};

/// The model that a PyTorch source describes: the part of Python and of torch.nn that write_model() writes, and what
/// people usually write beside it. It is followed, never run. Sizes that a layer would take from its input anyway are
/// left to it.
/// `before`: the model that the source is an edit of. Layers keep their places and the way their attributes were set,
/// and what a source does not say (name, what the input is) stays.
/// Throws Error that begins with "line N: " for what is not read.
ReadModel read_model(const std::string& source, const ModelSpec* before = nullptr);

/// Whether two models are the same but for places, the order of their layers, and attributes that are said or left to
/// their default.
bool same_model(const ModelSpec& a, const ModelSpec& b);
/// The first difference in words; empty where there is none.
std::string difference(const ModelSpec& a, const ModelSpec& b);

}  // namespace tenon::python
