#include <fmt/format.h>

#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/model/layer_registry.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"
#include "engine/ops/norm.h"

namespace tenon::nn {

BatchNorm2d::BatchNorm2d(int64_t channels, double eps, double momentum, bool affine, Device device, DType dtype)
    : channels_(channels), eps_(eps), momentum_(momentum) {
  if (affine) {
    CategoryScope parameters(Category::parameter);
    weight_ = empty({channels}, dtype, device);
    bias_ = empty({channels}, dtype, device);
    add_parameter("weight", weight_);
    add_parameter("bias", bias_);
  }
  CategoryScope buffers(Category::buffer);
  running_mean_ = empty({channels}, dtype, device);
  running_var_ = empty({channels}, dtype, device);
  add_buffer("running_mean", running_mean_);
  add_buffer("running_var", running_var_);
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  if (!training()) return batch_norm_inference(x, weight_, bias_, running_mean_, running_var_, eps_);
  BatchNormResult r = batch_norm(x, weight_, bias_, eps_);
  NoGrad no_grad;
  // The running variance is the unbiased one, as in PyTorch.
  double n = static_cast<double>(x.numel()) / static_cast<double>(channels_);
  update_running(running_mean_, detach(r.mean), momentum_);
  update_running(running_var_, detach(r.var), momentum_, n / (n - 1));
  return r.y;
}

void BatchNorm2d::reset(uint64_t) {
  if (weight_) {
    fill(weight_, 1);
    fill(bias_, 0);
  }
  fill(running_mean_, 0);
  fill(running_var_, 1);
}

std::string BatchNorm2d::describe() const { return fmt::format("BatchNorm2d({})", channels_); }

namespace {

const bool layer = register_layer({{.type = "BatchNorm2d",
                                    .group = "Image",
                                    .help = "Brings every channel to mean 0 and variance 1 over the batch, then scales and shifts it.",
                                    .attrs = {{"num_features", int64_t{0}, 0, 1e6, "channels; 0: whatever arrives"},
                                              {"eps", 1e-5, 0, 1, "added to the variance"},
                                              {"momentum", 0.1, 0, 1, "share of the new batch in the running statistics"},
                                              {"affine", true, 0, 0, "train a scale and a shift for every channel"}}},
                                   [](const LayerArgs& a) -> std::shared_ptr<Module> {
                                     return std::make_shared<BatchNorm2d>(a.features("num_features", 1), a.number("eps"),
                                                                          a.number("momentum"), a.flag("affine"), a.device);
                                   }});

}  // namespace
}  // namespace tenon::nn
