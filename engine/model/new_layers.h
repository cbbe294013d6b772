#pragma once
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon {

/// How layers that a model has gained can begin so that it computes what it computed before.
struct NewLayers {
  /// A Linear or a convolution that can pass on what arrives: it makes as many channels of the same size, or more.
  std::vector<std::string> passes;
  /// The last of a branch that a new Add adds to what was there before: modules whose weights begin at zero.
  std::vector<std::string> silent;
  /// Batch norms whose gain and shift can be those of a batch, which they undo.
  std::vector<std::string> norms;
};

/// Layers of `after` that `before` has not, or has of another type. Throws Error for a model that cannot be built.
NewLayers new_layers(const ModelSpec& before, const ModelSpec& after);

}  // namespace tenon
