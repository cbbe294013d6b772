#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/spec/model_spec.h"

namespace tenon {

/// Where the channels of a group lie in a tensor of the model: from `begin` on along `axis`, `repeat` elements each.
struct ChannelSlot {
  std::string tensor;  ///< "features.0.weight"
  int axis = 0;
  int64_t begin = 0, repeat = 1;
};

/// Channels that go together: what the layers that make them give is added up, or read by the same layer, so that one
/// of them can only be taken out of all its tensors.
struct ChannelGroup {
  int64_t channels = 0;
  std::vector<std::string> makers;  ///< layers, in the order in which they run
  std::vector<ChannelSlot> made;    ///< of the makers: their filters and biases
  std::vector<ChannelSlot> along;   ///< on the way, a value or a filter a channel: norms, depthwise convolutions, PReLU
  std::vector<ChannelSlot> read;    ///< of the layers that read them
  std::string fixed;                ///< why its channels must stay; empty: they may go
};

/// The groups of a model, followed from every Linear and convolution through norms, activations, dropout, pooling,
/// padding, Flatten, sums, products and Concat to whoever reads them, and the units within a transformer layer. What is
/// not followed holds its channels, as do the model's ends. Throws Error for a model that cannot be built.
std::vector<ChannelGroup> channel_groups(const ModelSpec& spec);

}  // namespace tenon
