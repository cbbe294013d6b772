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
  /// Queries of attention: the products of a block of them with keys are added up, and divided by the root of its size.
  enum class Asks : uint8_t { no, sum, root } asks = Asks::no;
};

/// Channels that go together: what the layers that make them give is added up, or read by the same layer, so that one
/// of them can only be taken out of all its tensors.
struct ChannelGroup {
  int64_t channels = 0;
  std::vector<std::string> makers;  ///< layers, in the order in which they run
  std::vector<ChannelSlot> made;    ///< of the makers: their filters and biases
  std::vector<ChannelSlot> along;   ///< on the way, a value or a filter a channel: norms, depthwise convolutions, PReLU
  std::vector<ChannelSlot> read;    ///< of the layers that read them
  std::string fixed;                ///< why its channels must stay; empty: there may be more or fewer of them
  std::string bound;                ///< why none can go by itself: heads, norms over all of them
  /// They stand in blocks of as many, each of which is treated as a whole: heads, groups of a GroupNorm.
  int64_t block = 1;
  bool dotted = false;  ///< queries and keys: the products of a block are added up
  /// Attributes that say how many there are, "block.d_model"; groups that have one in common are of one size.
  std::vector<std::string> sized = {};
  std::vector<std::string> normed = {};  ///< modules that take the mean or variance over all of them
};

/// The groups of a model, followed from every Linear, convolution and Embedding through norms, activations, dropout,
/// pooling, padding, Flatten, sums, products, Concat and attention (a layer, or wired by hand of Linear, MatMul and
/// Softmax) to whoever reads them, and those within attention, the layers of a transformer and recurrent layers. What
/// is not followed holds its channels, as do the model's ends. Throws Error for a model that cannot be built.
std::vector<ChannelGroup> channel_groups(const ModelSpec& spec);

}  // namespace tenon
