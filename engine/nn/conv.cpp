#include <fmt/format.h>

#include "core/error.h"
#include "core/state.h"
#include "engine/model/layer_registry.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"

namespace tenon::nn {

Conv2d::Conv2d(int64_t in, int64_t out, const Dims& kernel, const Conv2dOptions& options, bool bias, Device device, DType dtype)
    : options_(options) {
  if (options.groups < 1 || in % options.groups || out % options.groups)
    throw Error(fmt::format("{} groups do not divide {} input and {} output channels", options.groups, in, out));
  CategoryScope parameters(Category::parameter);
  weight_ = empty({out, in / options.groups, kernel[0], kernel[1]}, dtype, device);
  add_parameter("weight", weight_);
  if (!bias) return;
  bias_ = empty({out}, dtype, device);
  add_parameter("bias", bias_);
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight_, bias_, options_); }

void Conv2d::reset(uint64_t seed) {
  int64_t fan_in = weight_.size(1) * weight_.size(2) * weight_.size(3);
  init_default(weight_, fan_in, seed, path() + ".weight");
  if (bias_) init_default(bias_, fan_in, seed, path() + ".bias");
}

std::string Conv2d::describe() const {
  return fmt::format("Conv2d({} -> {}, {} x {})", weight_.size(1) * options_.groups, weight_.size(0), weight_.size(2), weight_.size(3));
}

Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }
std::string MaxPool2d::describe() const { return fmt::format("MaxPool2d({} x {})", options_.kernel[0], options_.kernel[1]); }

namespace {

using Ints = std::vector<int64_t>;

int64_t channels(const LayerArgs& a, const char* attr) {
  const Shape& s = a.inputs[0].shape;
  if (s.n != 4) throw Error(fmt::format("its input has shape {}; it must be [batch, channels, height, width]", to_string(s)));
  return a.features(attr, 1);
}

const bool conv_layer = register_layer({{.type = "Conv2d",
                                         .group = "Image",
                                         .help = "Slides a window of weights over the image.",
                                         .attrs = {{"in_channels", int64_t{0}, 0, 1e6, "channels of the input; 0: whatever arrives"},
                                                   {"out_channels", int64_t{32}, 1, 1e6, "channels of the output"},
                                                   {"kernel_size", Ints{3, 3}, 1, 1024, "height and width of the window"},
                                                   {"stride", Ints{1, 1}, 1, 1024, "steps between windows"},
                                                   {"padding", Ints{0, 0}, 0, 1024, "rows and columns of zeros round the image"},
                                                   {"dilation", Ints{1, 1}, 1, 1024, "spacing of the window's taps"},
                                                   {"groups", int64_t{1}, 1, 1e6, "independent groups of channels"},
                                                   {"bias", true, 0, 0, "add a trained constant to every channel"}}},
                                        [](const LayerArgs& a) -> std::shared_ptr<Module> {
                                          Conv2dOptions o{a.pair("stride"), a.pair("padding"), a.pair("dilation"), a.integer("groups")};
                                          return std::make_shared<Conv2d>(channels(a, "in_channels"), a.integer("out_channels"),
                                                                          a.pair("kernel_size"), o, a.flag("bias"), a.device);
                                        }});

const bool pool_layer = register_layer({{.type = "MaxPool2d",
                                         .group = "Image",
                                         .help = "Keeps the largest value of each window.",
                                         .attrs = {{"kernel_size", Ints{2, 2}, 1, 1024, "height and width of the window"},
                                                   {"stride", Ints{0, 0}, 0, 1024, "steps between windows; 0: the window's own size"},
                                                   {"padding", Ints{0, 0}, 0, 512, "rows and columns round the image that never win"},
                                                   {"dilation", Ints{1, 1}, 1, 1024, "spacing of the window's taps"}}},
                                        [](const LayerArgs& a) -> std::shared_ptr<Module> {
                                          Pool2dOptions o{a.pair("kernel_size"), a.pair("stride"), a.pair("padding"), a.pair("dilation")};
                                          for (int i = 0; i < 2; ++i)
                                            if (o.stride[i] == 0) o.stride[i] = o.kernel[i];
                                          return std::make_shared<MaxPool2d>(o);
                                        }});

}  // namespace
}  // namespace tenon::nn
