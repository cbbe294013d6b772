#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/spec/model_spec.h"

namespace tenon {

/// Of the elements of a tensor along one of its axes: from which of the same tensor of another model each one comes.
struct AxisOrigin {
  std::vector<int64_t> from;  ///< -1: from none
  /// The layer adds up along it: of elements that come from the same one each has a part.
  bool read = false;
  std::string why = {};  ///< why some come from none
  /// Why another function is computed, though each element has a source: a norm over other channels, other heads.
  std::string otherwise = {};
  std::vector<double> times = {};  ///< by which each is multiplied; empty: by 1
  bool same(int64_t size) const;
};

struct ChannelOrigins {
  /// By axis, of the tensors that both models have with as many axes.
  std::map<std::string, std::vector<AxisOrigin>> tensors;
  /// Of layers that pass on what arrives and make more of it: which input each of their outputs is.
  std::map<std::string, std::vector<int64_t>> passed;
};

/// Where the tensors of a model come from that another one was changed into. Channels that are there in both are
/// themselves; more of them are copies of others, chosen by the seed (Chen, Goodfellow & Shlens: Net2Net, 2016), where
/// everyone who reads them is followed (channel_groups()); of fewer those of largest 1-norm stay, in their order.
/// Where a norm takes the mean over all of them each is copied as often as the next, as far as the number allows. Heads
/// of attention and groups of a GroupNorm are copied and stay as a whole; where there are as many, but larger ones, the
/// channels within each are.
/// `passes`: new layers, Linear or convolutions, that will pass on what arrives. `tensor` gives those of before.
ChannelOrigins channel_origins(const ModelSpec& before, const ModelSpec& after, const std::vector<std::string>& passes,
                               const std::function<Tensor(const std::string&)>& tensor, uint64_t seed);

}  // namespace tenon
