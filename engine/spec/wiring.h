#pragma once
#include <map>

#include "core/tensor.h"
#include "engine/spec/model_spec.h"

namespace tenon {

/// A ModelSpec whose wires were checked: an order, and for every layer what feeds its ports. Layers that are off are
/// not there: what feeds the first port of one feeds its readers.
struct Wiring {
  /// Throws Error for a circle, a wire without an end, two wires into one port, no or several Input or Output layers.
  explicit Wiring(const ModelSpec& spec);
  /// By port, null where an optional input has no wire. Throws Error naming a port that nothing is wired to.
  std::vector<const LayerSpec*> inputs_of(const LayerSpec& layer) const;

  std::vector<const LayerSpec*> order;

 private:
  std::map<std::string, std::map<int, const LayerSpec*>> sources_;
};

/// What the "Input" layer stands for: one sample, without the batch axis.
Meta input_meta(const LayerSpec& input);
/// A meta tensor of `batch` of them.
Tensor with_batch(const Meta& sample, int64_t batch);

}  // namespace tenon
