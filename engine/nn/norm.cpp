#include "engine/nn/norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/checkpoint.h"
#include "engine/nn/init.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/norm.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

/// As the kernels of batch normalisation take it: [n, c] or 4 axes.
Tensor four_axes(const Tensor& x) {
  if (x.ndim() == 3) return unsqueeze(x, 3);
  if (x.ndim() == 5) return reshape(x, {x.size(0), x.size(1), x.size(2), x.size(3) * x.size(4)});
  return x;
}

void check_axes(const Tensor& x, int axes, bool no_axes_too, int64_t channels) {
  if ((x.ndim() != axes + 2 && !(no_axes_too && x.ndim() == 2)) || x.size(1) != channels)
    throw Error(fmt::format("its input has size {}; it must be [batch, {}{}]", to_string(x.size()), channels,
                            axes == 1   ? ", length"
                            : axes == 2 ? ", height, width"
                                        : ", depth, height, width"));
}

}  // namespace

ChannelNorm::ChannelNorm(int axes, int64_t channels, const Options& options, Device device, DType dtype)
    : axes_(axes), channels_(channels), options_(options) {
  if (options.affine) {
    CategoryScope parameters(Category::parameter);
    weight_ = empty({channels}, dtype, device);
    bias_ = empty({channels}, dtype, device);
    add_parameter("weight", weight_);
    add_parameter("bias", bias_);
  }
  if (!options.track) return;
  CategoryScope buffers(Category::buffer);
  running_mean_ = empty({channels}, dtype, device);
  running_var_ = empty({channels}, dtype, device);
  add_buffer("running_mean", running_mean_);
  add_buffer("running_var", running_var_);
}

void ChannelNorm::reset(uint64_t) {
  if (weight_) {
    nn::fill(weight_, 1);
    nn::fill(bias_, 0);
  }
  if (!options_.track) return;
  nn::fill(running_mean_, 0);
  nn::fill(running_var_, 1);
}

void ChannelNorm::track(const Tensor& mean, const Tensor& var, int64_t values) {
  if (values < 2 && !mean.is_meta())
    throw Error(fmt::format("{} cannot be trained on a single value a channel: it has no variance", describe()),
                "use a batch of two samples or more");
  if (recomputing()) return;
  NoGrad no_grad;
  const double n = static_cast<double>(values);
  update_running(running_mean_, mean, options_.momentum);
  update_running(running_var_, var, options_.momentum, n / (n - 1));
}

BatchNorm::BatchNorm(int axes, int64_t channels, const Options& options, Device device, DType dtype)
    : ChannelNorm(axes, channels, options, device, dtype) {}

Tensor BatchNorm::forward(const Tensor& given) {
  check_axes(given, axes_, axes_ < 3, channels_);
  Tensor x = four_axes(given);
  if (!training() && options_.track)
    return reshape(batch_norm_inference(x, weight_, bias_, running_mean_, running_var_, options_.eps), given.size());
  BatchNormResult r = batch_norm(x, weight_, bias_, options_.eps);
  if (training() && options_.track) track(detach(r.mean), detach(r.var), x.numel() / std::max<int64_t>(1, channels_));
  return given.ndim() == x.ndim() ? r.y : reshape(r.y, given.size());
}

std::string BatchNorm::describe() const { return fmt::format("BatchNorm{}d({})", axes_, channels_); }

InstanceNorm::InstanceNorm(int axes, int64_t channels, const Options& options, Device device, DType dtype)
    : ChannelNorm(axes, channels, options, device, dtype) {}

Tensor InstanceNorm::forward(const Tensor& x) {
  check_axes(x, axes_, false, channels_);
  if (!training() && options_.track)
    return reshape(batch_norm_inference(four_axes(x), weight_, bias_, running_mean_, running_var_, options_.eps),
                   x.size());
  Tensor y = group_norm(x, channels_, weight_, bias_, options_.eps);
  if (training() && options_.track) {
    NoGrad no_grad;
    Dims spatial;
    for (int i = 2; i < x.ndim(); ++i) spatial.push_back(i);
    Tensor d = detach(x), m = mean(d, spatial, true), var = mean(mean(square(sub(d, m)), spatial), {0});
    track(reshape(mean(m, {0}), {channels_}), var, x.numel() / std::max<int64_t>(1, x.size(0) * channels_));
  }
  return y;
}

std::string InstanceNorm::describe() const { return fmt::format("InstanceNorm{}d({})", axes_, channels_); }

LayerNorm::LayerNorm(const Shape& shape, double eps, bool affine, bool rms, Device device, DType dtype)
    : shape_(shape), eps_(eps), rms_(rms) {
  if (!affine) return;
  CategoryScope parameters(Category::parameter);
  weight_ = empty(shape, dtype, device);
  add_parameter("weight", weight_);
  if (rms) return;
  bias_ = empty(shape, dtype, device);
  add_parameter("bias", bias_);
}
Tensor LayerNorm::forward(const Tensor& x) {
  return rms_ ? rms_norm(x, shape_, weight_, eps_) : layer_norm(x, shape_, weight_, bias_, eps_);
}
void LayerNorm::reset(uint64_t) {
  if (weight_) nn::fill(weight_, 1);
  if (bias_) nn::fill(bias_, 0);
}
std::string LayerNorm::describe() const { return fmt::format("{}Norm({})", rms_ ? "RMS" : "Layer", to_string(shape_)); }

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool affine, Device device, DType dtype)
    : groups_(groups), channels_(channels), eps_(eps) {
  if (groups < 1 || channels % groups)
    throw Error(fmt::format("{} groups do not divide {} channels", groups, channels));
  if (!affine) return;
  CategoryScope parameters(Category::parameter);
  weight_ = empty({channels}, dtype, device);
  bias_ = empty({channels}, dtype, device);
  add_parameter("weight", weight_);
  add_parameter("bias", bias_);
}
Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, groups_, weight_, bias_, eps_); }
void GroupNorm::reset(uint64_t) {
  if (!weight_) return;
  nn::fill(weight_, 1);
  nn::fill(bias_, 0);
}
std::string GroupNorm::describe() const { return fmt::format("GroupNorm({} groups of {})", groups_, channels_); }

namespace {

using Made = std::shared_ptr<Module>;
using Ints = std::vector<int64_t>;

std::vector<AttrDef> statistics_attrs(bool batch) {
  return {{"num_features", int64_t{0}, 0, 1e6, "channels; 0: whatever arrives"},
          {"eps", 1e-5, 0, 1, "added to the variance"},
          {"momentum", 0.1, 0, 1, "share of the new batch in the running statistics"},
          {"affine", batch, 0, 0, "train a scale and a shift for every channel"},
          {"track_running_stats", batch, 0, 0, "keep running statistics for evaluation"}};
}
template <class Norm, int Axes>
Made norm_of(const LayerArgs& a) {
  return std::make_shared<Norm>(
      Axes, a.features("num_features", 1),
      BatchNorm::Options{a.number("eps"), a.number("momentum"), a.flag("affine"), a.flag("track_running_stats")},
      a.device);
}
constexpr const char* kBatch =
    "Brings every channel to mean 0 and variance 1 over the batch, then scales and shifts it.";
constexpr const char* kInstance = "Brings every channel of every sample to mean 0 and variance 1.";
const bool registered_norm[] = {
    register_layer({{.type = "BatchNorm1d",
                     .group = "Normalisation",
                     .help = kBatch,
                     .attrs = statistics_attrs(true),
                     .examples = {{{4, 3, 8}}}},
                    norm_of<BatchNorm, 1>}),
    register_layer({{.type = "BatchNorm2d", .group = "Image", .help = kBatch, .attrs = statistics_attrs(true)},
                    norm_of<BatchNorm, 2>}),
    register_layer({{.type = "BatchNorm3d",
                     .group = "Normalisation",
                     .help = kBatch,
                     .attrs = statistics_attrs(true),
                     .examples = {{{2, 3, 2, 4, 4}}}},
                    norm_of<BatchNorm, 3>}),
    register_layer({{.type = "InstanceNorm1d",
                     .group = "Normalisation",
                     .help = kInstance,
                     .attrs = statistics_attrs(false),
                     .examples = {{{4, 3, 8}}}},
                    norm_of<InstanceNorm, 1>}),
    register_layer(
        {{.type = "InstanceNorm2d", .group = "Normalisation", .help = kInstance, .attrs = statistics_attrs(false)},
         norm_of<InstanceNorm, 2>}),
    register_layer({{.type = "InstanceNorm3d",
                     .group = "Normalisation",
                     .help = kInstance,
                     .attrs = statistics_attrs(false),
                     .examples = {{{2, 3, 2, 4, 4}}}},
                    norm_of<InstanceNorm, 3>}),
};

/// The sizes an attribute names; 0 stands for the input's.
Shape normalized_shape(const LayerArgs& a) {
  Ints v = a.ints("normalized_shape");
  const Shape& in = a.inputs[0].shape;
  if (v.empty() || static_cast<int>(v.size()) > in.n)
    throw Error(
        fmt::format("normalized_shape has {} sizes, its input of size {} has {} axes", v.size(), to_string(in), in.n));
  for (size_t i = 0; i < v.size(); ++i)
    if (v[i] == 0) v[i] = in[in.n - static_cast<int>(v.size()) + static_cast<int>(i)];
  a.note("normalized_shape", v);
  return Shape(v);
}
template <bool Rms>
Made layer_norm_of(const LayerArgs& a) {
  return std::make_shared<LayerNorm>(normalized_shape(a), a.number("eps"), a.flag("elementwise_affine"), Rms, a.device);
}
std::vector<AttrDef> layer_norm_attrs() {
  return {{"normalized_shape", Ints{0}, 0, 1e9, "sizes of the last axes, over which it normalises; 0: as it arrives"},
          {"eps", 1e-5, 0, 1, "added to the variance"},
          {"elementwise_affine", true, 0, 0, "train a scale (and a shift) for every element"}};
}
const bool layer_norms[] = {
    register_layer(
        {{.type = "LayerNorm",
          .group = "Normalisation",
          .help = "Brings the last axes of every sample to mean 0 and variance 1, then scales and shifts them.",
          .attrs = layer_norm_attrs()},
         layer_norm_of<false>}),
    register_layer({{.type = "RMSNorm",
                     .group = "Normalisation",
                     .help = "Divides the last axes of every sample by their root mean square, then scales them.",
                     .attrs = layer_norm_attrs()},
                    layer_norm_of<true>}),
    register_layer({{.type = "GroupNorm",
                     .group = "Normalisation",
                     .help = "Brings every group of channels of every sample to mean 0 and variance 1, then scales and "
                             "shifts the channels.",
                     .attrs = {{"num_groups", int64_t{1}, 1, 1e6, "groups of channels"},
                               {"num_channels", int64_t{0}, 0, 1e6, "channels; 0: whatever arrives"},
                               {"eps", 1e-5, 0, 1, "added to the variance"},
                               {"affine", true, 0, 0, "train a scale and a shift for every channel"}}},
                    [](const LayerArgs& a) -> Made {
                      return std::make_shared<GroupNorm>(a.integer("num_groups"), a.features("num_channels", 1),
                                                         a.number("eps"), a.flag("affine"), a.device);
                    }}),
};

}  // namespace
}  // namespace tenon::nn
