#pragma once
#include "engine/nn/module.h"
#include "engine/spec/model_spec.h"

namespace tenon {

/// The module tree of a ModelSpec: one child a layer, run in topological order. Made on the meta device first, so that
/// every layer knows the size of what arrives; a layer that does not fit throws Error with its name in front.
class GraphModule : public nn::Module {
 public:
  explicit GraphModule(const ModelSpec& spec, Device device = {});
  std::string describe() const override { return name_; }
  /// dtype and shape of one sample, without the batch axis: the "Input" layer's.
  const Meta& input() const { return input_; }
  const Meta& output() const { return output_; }

 protected:
  using nn::Module::forward;
  Tensor forward(const Tensor& x) override;

 private:
  struct Step {
    nn::Module* module;       ///< null for the "Input" and "Output" layers
    std::vector<int> inputs;  ///< steps whose result arrives, by port; -1: nothing does
    std::vector<int> last;    ///< steps whose result is not needed afterwards
  };
  std::string name_;
  Meta input_, output_;
  std::vector<Step> steps_;
};

}  // namespace tenon
