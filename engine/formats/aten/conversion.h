#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/formats/aten/program.h"
#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// A program of torch.export on its way to an ONNX graph, node by node. Its values keep their names; weights have those
/// of the state_dict.
class AtenConversion {
 public:
  /// Every operator that rules write is known in it, with its axes as inputs.
  static constexpr int64_t kOpset = 21;
  /// `weights` by their names in the state_dict. Both must outlive the conversion; the program's `tensors` may be
  /// filled on the way. Throws Error where a weight is missing.
  AtenConversion(const AtenProgram& program, const std::map<std::string, Tensor>& weights);

  /// Throws OnnxUnsupported where there is no rule for the node or its rule refuses it.
  void step(const AtenNode& node);
  /// The model, of what its outputs are made of. Throws OnnxUnsupported where one of them is not there.
  OnnxModel finish();

  const OnnxGraph& graph() const { return model_.graph; }
  /// The ONNX value of a tensor or number of the program. Throws OnnxUnsupported where it has none.
  const std::string& value(const std::string& name) const;
  bool has(const std::string& name) const { return values_.contains(name); }
  const AtenTensor& meta(const std::string& name) const;

  // For rules.
  std::vector<std::string> add(const AtenNode& node, const std::string& type, std::vector<std::string> inputs,
                               std::vector<OnnxAttribute> attributes, size_t outputs);
  std::string constant(const Tensor& t);
  Tensor constant_value(const std::string& value) const;
  /// The number that a tensor is known to hold everywhere, whatever its size.
  std::optional<double> filled(const std::string& tensor) const;
  void result(const AtenNode& node, const std::string& value, size_t k);
  const std::string& expression(const std::string& number) const;

 private:
  void number_step(const AtenNode& node);
  void written_in_place(const AtenNode& node, const std::string& name);
  Tensor places_of(const std::string& view, const std::string& whole) const;
  std::string free_name(const std::string& wish);

  const AtenProgram& program_;
  OnnxModel model_;
  std::unordered_map<std::string, std::string> values_;  ///< of the program's tensors and numbers
  std::unordered_map<std::string, size_t> initializers_;
  std::set<std::string> taken_;
  std::unordered_map<std::string, size_t> last_read_;    ///< the node, by tensor
  std::unordered_map<std::string, std::string> shares_;  ///< whose memory a tensor may be a view of
  std::unordered_map<std::string, size_t> view_made_;    ///< the node that made a view
  size_t at_ = 0, first_new_ = 0;                        ///< the node at work, and its first ONNX node
};

}  // namespace tenon::formats
