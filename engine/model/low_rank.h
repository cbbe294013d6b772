#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/model/shrink.h"

namespace tenon {

/// Which layers become two of a lower rank.
struct FactorChoice {
  double energy = 0.9;  ///< share of the squares of its singular values that a layer keeps, above 0 and at most 1
  std::function<bool(const std::string& layer)> named = [](const std::string&) { return true; };
};

/// The model with each Linear and convolution (of one group) that gets smaller by it as two: LAYER.down, which makes as
/// many channels as the weights, as a matrix [outputs, all others], need to keep the energy, and LAYER.up behind it,
/// which is Linear or a convolution of one place. The weights are those of the truncated singular value decomposition,
/// nearest to the layer's own of that rank (Eckart and Young, 1936), their square roots in either half. `state` is the
/// model's state_dict. Throws Error (usage) where no layer would get smaller.
Shrunk factor(const ModelSpec& spec, const std::vector<nn::Named>& state, const FactorChoice& choice);

}  // namespace tenon
