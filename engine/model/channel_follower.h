#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/model/channel_groups.h"
#include "engine/nn/module.h"
#include "engine/spec/layer_registry.h"

namespace tenon {

/// Goes through a model in the order in which it runs, with whose channels each value has: what channel_groups() is
/// made of. Layers of several groups (attention, transformers, recurrent ones) are in channel_layers.cpp.
class ChannelFollower {
 public:
  explicit ChannelFollower(const ModelSpec& spec);
  std::vector<ChannelGroup> result();

 private:
  /// Channels of one group among those of a value.
  struct Part {
    size_t group;
    int64_t channels, repeat;
    bool operator==(const Part& o) const { return channels == o.channels && repeat == o.repeat; }
  };
  /// What is known of a value: along which axis its channels lie, and whose they are.
  struct Flow {
    int axis = 1;
    std::vector<Part> parts;
    /// The axis of heads: each has a block of the channels along `axis`. -1: they lie along that alone.
    int heads = -1;
    /// The Linear whose weights can be multiplied instead of this: nothing else reads what it makes on the way here.
    std::string asker = {};
    /// Of products of queries and keys: what ties their heads to those of the values.
    std::string scores = {};
  };

  using Asks = ChannelSlot::Asks;

  size_t root(size_t i) const;
  ChannelGroup& group(const Part& p) { return groups_[root(p.group)]; }
  void join(size_t a, size_t b);
  /// Smaller blocks within larger ones go with these.
  static void block(ChannelGroup& g, int64_t size);
  Flow begin(int axis, int64_t channels, const std::string& fixed = {});
  void hold(const Flow& f, const std::string& why);
  /// A slot a part, behind each other along an axis of a tensor.
  void put(const Flow& f, std::vector<ChannelSlot> ChannelGroup::*list, const std::string& tensor, int axis);
  void make(const Flow& f, const LayerSpec& layer, const nn::Module& module, int weight_axis);

  void follow(const LayerSpec& layer, const std::vector<const LayerSpec*>& from);

  /// False where nothing is known of how the layer treats channels.
  bool known(const LayerSpec& layer, const nn::Module& module, const std::vector<Tensor>& in, const Tensor& out,
             const std::vector<Flow>& flows, Flow& flow);

  bool layer_norm(const LayerSpec& layer, const nn::Module& module, const AttrValues& values, const Tensor& x,
                  const Flow& f, Flow& flow);
  void norm_over(const Flow& f, const std::string& module, const std::string& bound);

  bool group_norm(const LayerSpec& layer, const nn::Module& module, int64_t groups, const Flow& f, Flow& flow);

  /// A row is a token, a place in it a channel.
  void embedding(const LayerSpec& layer, const Tensor& out, Flow& flow);

  bool moved(const std::string& type, const AttrValues& values, int axes, const Flow& f, Flow& flow);

  /// The units between the two Linears within a layer of a transformer: nobody outside sees them.
  void feed_forward(const LayerSpec& layer, const std::string& at, int64_t units);

  /// Attention at a module's path: `heads` of channels between its projections, which nobody outside sees. What it
  /// reads is of the size that `sized` says, or, of keys and values that are not, has projections of its own.
  bool attention(const std::string& at, const std::string& sized, const Flow& q, const Flow& k, const Flow& v,
                 int64_t heads, bool bias);
  void projected(const Flow& f, const std::string& at, const std::string& maker, bool bias);

  bool attention_layer(const LayerSpec& layer, const AttrValues& values, const std::vector<Tensor>& in,
                       const Tensor& out, const std::vector<Flow>& flows, Flow& flow);

  /// One layer, or a stack of them: what goes through is added to at every place.
  bool transformer(const LayerSpec& layer, const nn::Module& module, const AttrValues& values,
                   const std::vector<Tensor>& in, const std::vector<Flow>& flows, Flow& flow);
  void stack_norm(const std::string& at, const Flow& f);
  /// The units of each layer and direction: what they make at a step they read at the next.
  bool recurrent(const LayerSpec& layer, const nn::Module& module, const AttrValues& values,
                 const std::vector<Tensor>& in, const Tensor& out, const Flow& f, Flow& flow);
  /// Channels into heads, the last axis into two, or back.
  bool regrouped(const LayerSpec& layer, const Tensor& in, const Tensor& out, const Flow& f, Flow& flow);
  /// Queries and keys, whose channels are multiplied and added up.
  bool dot(const LayerSpec& layer, const Flow& q, const Flow& k, Asks asks, Flow& scores);
  /// Shares of what the values are.
  bool weigh(const Flow& scores, const Flow& v, const Tensor& out, Flow& flow);
  bool matrix_product(const LayerSpec& layer, const std::vector<Tensor>& in, const Tensor& out,
                      const std::vector<Flow>& flows, Flow& flow);
  void one(const LayerSpec& layer, const std::string& at, const AttrValues& values, const Flow& x, const Flow* memory,
           bool followed);

  void linear(const LayerSpec& layer, const nn::Module& module, const Tensor& x, const Tensor& out, const Flow& f,
              Flow& flow);

  bool conv(const LayerSpec& layer, const nn::Module& module, const AttrValues& values, const Flow& f, Flow& flow);

  bool each_channel(const LayerSpec& layer, const nn::Module& module, const Flow& f, Flow& flow);

  bool together(const std::vector<Flow>& flows, const std::vector<Tensor>& in, Flow& flow);

  bool concat(int64_t dim, int axes, const std::vector<Flow>& flows, Flow& flow);

  bool flatten(const AttrValues& values, const Tensor& x, const Flow& f, Flow& flow);

  bool mean(const AttrValues& values, int axes, const Flow& f, Flow& flow);

  std::vector<ChannelGroup> groups_;
  std::vector<size_t> parent_;
  std::map<std::string, std::string> shared_;  ///< by layer: another one with the same weights
  std::map<const LayerSpec*, Tensor> values_;
  std::map<const LayerSpec*, Flow> flows_;
  std::map<std::string, int> readers_;            ///< wires that leave a layer
  std::map<std::string, size_t> without_values_;  ///< by `scores`: groups whose heads those of no values go with yet
};

}  // namespace tenon
