#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/state.h"
#include "engine/nn/init.h"
#include "engine/nn/layers.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

Dims spread(const Dims& d, int axes) { return d.n == 1 ? Dims::filled(axes, d[0]) : d; }

}  // namespace

Conv::Conv(int64_t in, int64_t out, const Dims& kernel, const Options& options, Device device, DType dtype)
    : options_(options) {
  int axes = kernel.n;
  if (options.groups < 1 || in % options.groups || out % options.groups)
    throw Error(fmt::format("{} groups do not divide {} input and {} output channels", options.groups, in, out));
  for (Dims* d : {&options_.stride, &options_.padding, &options_.dilation, &options_.output_padding})
    *d = spread(*d, axes);
  if (options_.auto_padding == "valid") {
    options_.padding = Dims::filled(axes, 0);
  } else if (options_.auto_padding == "same") {
    // Where an odd number of elements is missing, the end gets the one more.
    for (int i = axes - 1; i >= 0; --i) {
      if (options_.stride[i] != 1) throw Error("auto_padding = same needs stride 1", "set the padding itself");
      int64_t missing = options_.dilation[i] * (kernel[i] - 1);
      around_.push_back(missing / 2);
      around_.push_back(missing - missing / 2);
      options_.padding[i] = 0;
    }
  } else if (!options_.auto_padding.empty()) {
    throw Error("auto_padding is \"" + options_.auto_padding + "\"; it must be same, valid or empty");
  } else if (options_.padding_mode != PadMode::constant) {
    for (int i = axes - 1; i >= 0; --i) {
      around_.push_back(options_.padding[i]);
      around_.push_back(options_.padding[i]);
      options_.padding[i] = 0;
    }
  }
  if (options_.transposed && (!around_.empty() || options_.padding_mode != PadMode::constant))
    throw Error("a transposed convolution is padded with zeros alone");
  bool symmetric = options_.padding_mode == PadMode::constant && !around_.empty();
  for (size_t i = 0; i < around_.size(); i += 2) symmetric &= around_[i] == around_[i + 1];
  if (symmetric) {  // the convolution pads by itself
    for (int i = 0; i < axes; ++i) options_.padding[i] = around_[static_cast<size_t>(2 * (axes - 1 - i))];
    around_.clear();
  }
  CategoryScope parameters(Category::parameter);
  Shape size = options.transposed ? Shape{in, out / options.groups} : Shape{out, in / options.groups};
  for (int64_t k : kernel) size.push_back(k);
  weight_ = empty(size, dtype, device);
  add_parameter("weight", weight_);
  if (!options.bias) return;
  bias_ = empty({out}, dtype, device);
  add_parameter("bias", bias_);
}

Tensor Conv::forward(const Tensor& x) {
  Tensor in = around_.empty() ? x : pad(x, around_, options_.padding_mode);
  return options_.transposed ? conv_transpose_nd(in, weight_, bias_, options_) : conv_nd(in, weight_, bias_, options_);
}

void Conv::reset(uint64_t seed) {
  int64_t fan_in = weight_.size(1);  // of a transposed convolution too, as in PyTorch
  for (int i = 2; i < weight_.ndim(); ++i) fan_in *= weight_.size(i);
  init_default(weight_, fan_in, seed, path() + ".weight");
  if (bias_) init_default(bias_, fan_in, seed, path() + ".bias");
}

std::string Conv::describe() const {
  std::string kernel;
  for (int i = 2; i < weight_.ndim(); ++i) kernel += (i > 2 ? " x " : "") + std::to_string(weight_.size(i));
  int64_t a = weight_.size(0), b = weight_.size(1) * options_.groups;
  return fmt::format("Conv{}{}d({} -> {}, {})", options_.transposed ? "Transpose" : "", weight_.ndim() - 2,
                     options_.transposed ? a : b, options_.transposed ? b : a, kernel);
}

namespace {

Conv::Options conv_options(const Conv2dOptions& o, bool bias) {
  Conv::Options c;
  c.stride = o.stride;
  c.padding = o.padding;
  c.dilation = o.dilation;
  c.groups = o.groups;
  c.bias = bias;
  return c;
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, const Dims& kernel, const Conv2dOptions& options, bool bias, Device device,
               DType dtype)
    : Conv(in, out, kernel, conv_options(options, bias), device, dtype) {}

namespace {

using Ints = std::vector<int64_t>;
using Made = std::shared_ptr<Module>;

constexpr const char* kAxes[] = {"", "[batch, channels, length]", "[batch, channels, height, width]",
                                 "[batch, channels, depth, height, width]"};

template <int Axes, bool Transposed>
Made made(const LayerArgs& a) {
  const Shape& s = a.inputs[0].shape;
  if (s.n != Axes + 2) throw Error(fmt::format("its input has shape {}; it must be {}", to_string(s), kAxes[Axes]));
  Conv::Options o;
  o.stride = a.sizes("stride", Axes);
  o.padding = a.sizes("padding", Axes);
  o.dilation = a.sizes("dilation", Axes);
  o.groups = a.integer("groups");
  o.bias = a.flag("bias");
  o.transposed = Transposed;
  if constexpr (Transposed) {
    o.output_padding = a.sizes("output_padding", Axes);
  } else {
    o.padding_mode = pad_mode(a.text("padding_mode"));
    o.auto_padding = a.text("auto_padding");
  }
  return std::make_shared<Conv>(a.features("in_channels", 1), a.integer("out_channels"), a.sizes("kernel_size", Axes),
                                o, a.device);
}

template <int Axes, bool Transposed>
bool conv_layer(const char* type, const char* group, const char* help, std::vector<LayerExample> examples) {
  auto each = [](int64_t v) { return Ints(Axes, v); };
  std::vector<AttrDef> attrs{
      {"in_channels", int64_t{0}, 0, 1e6, "channels of the input; 0: whatever arrives"},
      {"out_channels", int64_t{32}, 1, 1e6, "channels of the output"},
      {"kernel_size", each(3), 1, 1024, Axes == 2 ? "height and width of the window" : "size of the window"},
      {"stride", each(1), 1, 1024, Transposed ? "elements between the windows of neighbours" : "steps between windows"},
      {"padding", each(0), 0, 1024, Transposed ? "elements taken off both ends" : "elements added at both ends"},
      {"dilation", each(1), 1, 1024, "spacing of the window's taps"},
      {"groups", int64_t{1}, 1, 1e6, "independent groups of channels"},
      {"bias", true, 0, 0, "add a trained constant to every channel"}};
  if (Transposed) {
    attrs.push_back({"output_padding", each(0), 0, 1024, "elements added to one end of the output"});
  } else {
    attrs.push_back({"padding_mode",
                     std::string("zeros"),
                     0,
                     0,
                     "what is added: zeros, reflect, replicate or circular",
                     {"zeros", "reflect", "replicate", "circular"}});
    attrs.push_back(
        {"auto_padding", std::string(), 0, 0, "same: pad so that the size stays; valid: do not pad; empty: as given"});
  }
  return register_layer(
      {{.type = type, .group = group, .help = help, .attrs = std::move(attrs), .examples = std::move(examples)},
       made<Axes, Transposed>});
}
const bool registered_conv[] = {
    conv_layer<1, false>("Conv1d", "Sequence", "Slides a window of weights over the sequence.", {{{2, 3, 8}}}),
    conv_layer<2, false>("Conv2d", "Image", "Slides a window of weights over the image.", {}),
    conv_layer<3, false>("Conv3d", "Volume", "Slides a window of weights over the volume.", {{{2, 3, 4, 4, 4}}}),
    conv_layer<1, true>("ConvTranspose1d", "Sequence",
                        "Spreads every element over a window of weights: a longer sequence.", {{{2, 3, 8}}}),
    conv_layer<2, true>("ConvTranspose2d", "Image", "Spreads every pixel over a window of weights: a larger image.",
                        {}),
    conv_layer<3, true>("ConvTranspose3d", "Volume", "Spreads every element over a window of weights: a larger volume.",
                        {{{2, 3, 4, 4, 4}}}),
};

}  // namespace
}  // namespace tenon::nn
