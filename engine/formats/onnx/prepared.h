#pragma once
#include <optional>
#include <vector>

#include "engine/formats/onnx/integer_plan.h"
#include "engine/formats/onnx/run.h"

// Note [Nodes fused]
// A model that is run for its results alone is prepared for it: what follows from its weights and from the sizes that
// it declares is computed once (fold_constants), norms go into the convolutions before them, integers are multiplied
// where it says so (integer_plan), and products by weights become one node with the pointwise nodes behind them
// (fuse_nodes): their weights are packed once, what follows is computed on each piece while it lies in the cache, and
// images keep their channels innermost from one node to the next. Pointwise nodes give the bits that they give one by
// one; sums run in another order, so results agree to about 1e-6 of the largest. A value within fused nodes is never
// there: whoever looks at values node by node (activations, calibration, differences, certificates) runs the model as
// it is.
namespace tenon::formats {

/// How a quantized model runs: as integer_plan() has it, or in f32.
enum class Arithmetic : uint8_t { integers, floats };

class PreparedModel {
 public:
  explicit PreparedModel(const OnnxModel& model, Arithmetic how = Arithmetic::integers);
  /// What is run, where the inputs are as the model declares them.
  const OnnxModel& model() const { return plan_.model; }
  const IntegerPlan& integers() const { return plan_; }
  OnnxResult run(const std::vector<OnnxItem>& inputs, const OnnxLimits& limits = {}) const;
  /// Of models of tensors alone.
  std::vector<Tensor> run_tensors(const std::vector<Tensor>& inputs) const;

 private:
  OnnxModel given_;
  IntegerPlan plan_;
};

}  // namespace tenon::formats
