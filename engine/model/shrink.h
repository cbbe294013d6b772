#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/channel_groups.h"
#include "engine/nn/module.h"
#include "engine/spec/model_spec.h"

namespace tenon {

/// Which channels are taken out of a model.
struct ShrinkChoice {
  double amount = 0.5;  ///< share of the channels of every group, 0..1; at least one stays
  /// Channels whose filters and biases are all zero, instead of a share.
  bool zeros = false;
  /// Whether a layer was named. A group goes where all that make it were.
  std::function<bool(const std::string& layer)> named = [](const std::string&) { return true; };
};

/// A layer of a model that is made smaller.
struct ShrinkRow {
  std::string layer, type;
  int64_t channels = 0, channels_after = 0;  ///< that it makes; 0: it makes none
  int64_t parameters = 0, parameters_after = 0;
  double flops = 0, flops_after = 0;  ///< of a forward pass of one sample
  std::string kept;                   ///< why it stays as it is; empty: it need not
  /// Of a layer that became two (factor()): the rank of its weights then and before, and what they lost: the norm of
  /// the difference over that of the weights.
  int64_t rank = 0, full_rank = 0;
  double error = 0;
};

struct Shrunk {
  ModelSpec model;
  std::vector<std::pair<std::string, Tensor>> tensors;  ///< its state_dict, on the host
  std::vector<ShrinkRow> rows;                          ///< layers with parameters, in the order of the model
  double other_flops = 0, other_flops_after = 0;        ///< of layers without

  int64_t parameters() const, parameters_after() const;
  double flops() const, flops_after() const;  ///< of a forward pass of one sample, through every layer
};

/// The model without the channels of least weight: of each group (channel_groups()) those whose filters, in all layers
/// that make them, have the smallest 1-norm; of equal ones the later. Their values on the way and where they are read
/// go with them. Li, Kadav, Durdanovic, Samet & Graf: Pruning filters for efficient convnets (2017). `state` is the
/// model's state_dict. Throws Error (usage) where nothing would go.
Shrunk shrink(const ModelSpec& spec, const std::vector<nn::Named>& state, const ShrinkChoice& choice);

/// The 1-norm of each channel of a group over what its makers have, in f64.
std::vector<double> channel_norms(const ChannelGroup& group, const std::function<Tensor(const std::string&)>& tensor);

}  // namespace tenon
