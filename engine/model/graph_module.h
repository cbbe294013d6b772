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
  /// In training, cuts the layers into so many stretches, one after the other and of about as many layers each, whose
  /// insides are computed again in backward instead of kept (nn::checkpoint()). The last one is kept: backward begins
  /// there. 0: all is kept.
  void recompute(int64_t stretches);

 protected:
  using nn::Module::forward;
  Tensor forward(const Tensor& x) override;

 private:
  struct Step {
    nn::Module* module;       ///< null for the "Input" and "Output" layers
    std::vector<int> inputs;  ///< steps whose result arrives, by port; -1: nothing does
    std::vector<int> last;    ///< steps whose result is not needed afterwards
  };
  /// Steps begin..end-1: what they take from before, and what those behind take from them, by step.
  struct Stretch {
    int begin, end;
    std::vector<int> takes, gives;
  };
  Stretch stretch(int begin, int end) const;
  void run(int begin, int end, const Tensor& x, std::vector<Tensor>& values) const;
  std::vector<Tensor> run(const Stretch& s, const Tensor& x, const std::vector<Tensor>& taken) const;

  std::string name_;
  Meta input_, output_;
  std::vector<Step> steps_;
  int result_ = -1;                 ///< the "Output" layer's step
  std::vector<Stretch> stretches_;  ///< empty: all is kept
};

}  // namespace tenon
