#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/aten/conversion.h"
#include "engine/formats/aten/schema.h"
#include "engine/formats/jit/value.h"

namespace tenon::formats {

// Note [Sizes of a TorchScript program]
// A program of torch.jit does not say what sizes its values have, and rules ask. So each operator is turned into ONNX
// as soon as it is read, and its nodes are run on tensors without memory, for several sizes of the inputs: a size that
// is the same for all of them is a number, another is known at a run. Two of those are the same size where they are so
// for all.

/// The graph of a TorchScript program while it is made.
class JitGraph {
 public:
  /// `tried`: what the inputs' sizes may be, each time of all inputs; at least once.
  JitGraph(const std::map<std::string, Tensor>& weights, const std::vector<DType>& types,
           const std::vector<std::vector<Shape>>& tried);

  JitValue input(size_t i) const { return JitValue::tensor(program_.inputs.at(i)); }
  /// By its name among the weights; none where there is none such.
  JitValue weight(const std::string& name) const;
  /// Throws OnnxUnsupported for what is no tensor.
  const AtenTensor& meta(const std::string& tensor) const;
  /// A size: a number, or one that is known at a run.
  JitValue size(const std::string& tensor, int64_t axis, const std::string& scope);
  /// Whether two whole numbers are the same in every run. Throws OnnxUnsupported where that differs from run to run.
  bool same(const AtenInt& a, const AtenInt& b) const;
  /// "add", "sub", "mul", "floordiv" of whole numbers.
  JitValue count(const std::string& op, const AtenInt& a, const AtenInt& b);

  /// Whether there is a rule for an operator, "relu" or "relu_".
  static bool has_rule(const std::string& op);
  /// torch.OP(...). Throws OnnxUnsupported where there is no rule for it, or none for what it is given.
  JitValue call(const std::string& op, const std::vector<JitValue>& args,
                const std::vector<std::pair<std::string, JitValue>>& named, const std::string& scope);
  size_t nodes() const { return program_.nodes.size(); }
  /// The program, whose outputs are these tensors.
  const AtenProgram& finish(const std::vector<std::string>& outputs);

 private:
  AtenProgram begun(const std::map<std::string, Tensor>& weights, const std::vector<DType>& types,
                    const std::vector<std::vector<Shape>>& tried);
  struct Chosen {
    const AtenSchema* schema = nullptr;
    std::vector<std::pair<std::string, AtenArgument>> inputs;
  };
  Chosen choose(const std::string& op, const std::vector<JitValue>& args,
                const std::vector<std::pair<std::string, JitValue>>& named) const;
  size_t results(const AtenSchema& schema, const AtenNode& node) const;
  std::string add(AtenNode node, size_t results, bool whole);
  void follow();
  const std::vector<Tensor>& tried(const std::string& value) const;
  AtenTensor meta_of(const std::vector<Tensor>& tried);

  size_t tries_;
  std::map<std::vector<int64_t>, std::string> names_;  ///< of sizes that are known at a run, by what they were
  AtenProgram program_;
  AtenConversion conversion_;
  size_t held_ = 0;                                    ///< constants of the ONNX graph that are known
  size_t followed_ = 0;                                ///< nodes of the ONNX graph that were run
  std::map<std::string, std::vector<Tensor>> values_;  ///< of the ONNX graph: a tensor each time
};

}  // namespace tenon::formats
