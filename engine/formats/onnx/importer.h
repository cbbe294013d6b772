#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "engine/formats/onnx/batch_sizes.h"
#include "engine/formats/onnx/import.h"

namespace tenon::formats {

/// An ONNX model on its way into the builder: what rules (import_layers.cpp) read of a node, and make of it.
///
/// Note [A model is imported by its shapes]
/// The nodes are gone through once, in order. A value that does not depend on the model's input is computed; the
/// others are the result of a layer, known by shape: every layer is tried on tensors without memory as soon as it is
/// made, as the model itself will be: for `batch` samples and once more for another number of them. What differs
/// between the two depends on the batch. A leading axis of size `batch` is taken for that of the samples. Where a rule
/// does not fit, or its layer is refused, the node becomes an OnnxOp layer. Layers whose result nobody reads in the end
/// (the parts of an activation that was recognised as a whole) go.
class Importer {
 public:
  struct Value {
    Tensor tensor;      ///< the value, or only its size (device meta) where a layer makes it
    std::string layer;  ///< that makes it; empty: a constant
    Tensor again;       ///< the same for another batch; a constant that does not depend on it is the same tensor
    bool dynamic() const { return !layer.empty(); }
    bool varies() const { return !dynamic() && !again.same(tensor); }
    const Shape& shape() const { return tensor.size(); }
  };
  struct Weight {
    std::string name;  ///< within the layer: "weight"
    Tensor value;
  };

  Importer(const OnnxModel& onnx, const std::string& name, const std::vector<int64_t>& sample);
  ImportedModel run();

  // Of the node at work.
  const OnnxNode& node() const { return *node_; }
  int64_t opset() const { return onnx_.opset; }
  int64_t batch() const { return batch_.at; }
  bool has(size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  const Value& in(size_t i) const;  ///< throws Error where it is missing or came to nothing
  /// Whether an input is the same in every run, whatever the batch.
  bool constant(size_t i) const { return has(i) && !in(i).dynamic() && !in(i).varies(); }
  bool dynamic(size_t i) const { return has(i) && in(i).dynamic(); }
  /// The one number that an input holds as a constant.
  std::optional<double> number(size_t i) const { return number_of(node_->inputs, i); }
  std::optional<double> number_of(const std::vector<std::string>& inputs, size_t i) const;
  /// Whole numbers of a constant input, or of an attribute where there is none.
  std::vector<int64_t> list(size_t i, const std::string& attribute, const std::vector<int64_t>& fallback = {}) const;
  /// The sizes that a Reshape or Expand is asked for, such that they fit any batch (BatchSizes).
  std::vector<int64_t> sizes_of_any_batch();
  /// Whole numbers of a constant input of which the first may be the batch, and no other one depends on it.
  std::vector<int64_t> sizes_behind_batch(size_t i) const;
  /// The one row of a constant input that is the same for every sample; undefined: it is none.
  Tensor row_of_samples(size_t i);
  /// What made a value; null: no node.
  const OnnxNode* maker(const std::string& value) const;
  const Value* find(const std::string& value) const;
  int readers(const std::string& value) const;
  LayerSpec* made_layer(const std::string& name) { return model_.find(name); }

  /// A layer behind those of `from`; a port is left open where a value there is empty. Throws Error where it does not
  /// fit what arrives.
  Value add(const std::string& type, std::vector<Attr> attrs, const std::vector<Value>& from,
            std::vector<Weight> weights = {});
  /// Further weights of a layer that was made.
  void give(const std::string& layer, Weight weight);
  /// The node's k-th output. `like` another value: the node changes nothing.
  void result(Value v, size_t k = 0);
  /// What the layer of a recurrent node gives: the directions beside each other, where the node's output has an axis of
  /// them. Null: the value is no such output.
  void set_in_one_row(const std::string& value, Value v) { in_one_row_[value] = std::move(v); }
  const Value* in_one_row(const std::string& value) const {
    const auto at = in_one_row_.find(value);
    return at == in_one_row_.end() ? nullptr : &at->second;
  }
  void note(const std::string& sentence);
  /// A number of 16 bits was met, which the layers hold in 32.
  void widen();

 private:
  struct Missing {
    std::string why, node;
    int count = 0;
  };
  void step(const OnnxNode& node);
  bool by_rule();
  void as_op();
  std::string free_name();
  void drop_unread();
  void read_as_batch(int64_t number);
  std::vector<Tensor> computed(bool again) const;

  const OnnxModel& onnx_;
  ModelSpec model_;
  std::map<std::string, Tensor> weights_;         ///< "conv1.weight"
  std::unordered_set<std::string> names_;         ///< of the layers
  std::unordered_map<std::string, int> numbers_;  ///< the last one behind a name that several layers would have
  // What the rule at work did, to be taken back: weights it gave, numbers it took.
  std::vector<std::string> given_;
  std::vector<std::pair<std::string, int>> numbered_;
  std::vector<std::string> notes_;
  std::unordered_map<std::string, Value> values_, in_one_row_;
  std::unordered_map<std::string, const OnnxNode*> makers_;
  std::unordered_map<std::string, int> readers_;
  std::map<std::string, Missing> missing_;  ///< by operator
  const OnnxNode* node_ = nullptr;
  AtTwoBatches<int64_t> batch_{};
  std::optional<int64_t> said_;              ///< the batch, where the input has one size of it
  std::optional<int64_t> written_for_;       ///< the batch that the file holds as a number
  std::vector<const OnnxNode*> written_in_;  ///< nodes in whose sizes it was read
  bool widened_ = false;
};

/// How the nodes of an operator become layers: false, or an Error, where this one does not fit.
struct ImportRule {
  std::string name;  ///< of the operator
  std::function<bool(Importer&)> make;
};
bool register_import(const std::string& op_type, std::function<bool(Importer&)> make, Place place = Place::current());
const Registry<ImportRule>& import_rules();

}  // namespace tenon::formats
