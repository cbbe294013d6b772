#include "engine/ops/resample.h"

#include <fmt/format.h>

#include "core/error.h"
#include "engine/nn/functional.h"
#include "engine/ops/fold.h"
#include "engine/ops/pad.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

using Ints = std::vector<int64_t>;
using Made = std::shared_ptr<Module>;

Resample resample_mode(const std::string& name) {
  if (name == "nearest") return Resample::nearest;
  if (name == "linear" || name == "bilinear" || name == "trilinear") return Resample::linear;
  if (name == "bicubic") return Resample::cubic;
  if (name == "area") return Resample::area;
  throw Error(fmt::format("mode is \"{}\"; it must be nearest, linear, bilinear, trilinear, bicubic or area", name));
}

const bool upsample = register_layer(
    {{.type = "Upsample",
      .group = "Image",
      .help = "The image (sequence, volume) in another size.",
      .attrs = {{"size", Ints{0}, 0, 1e6, "sizes of the axes behind the channels; 0: by scale_factor"},
                {"scale_factor", 2.0, 1e-3, 1e3, "times larger"},
                {"mode",
                 std::string("nearest"),
                 0,
                 0,
                 "how values between are found",
                 {"nearest", "linear", "bilinear", "trilinear", "bicubic", "area"}},
                {"align_corners", false, 0, 0, "the centres of the corners stay where they are"}}},
     [](const LayerArgs& a) -> Made {
       InterpolateOptions o;
       Ints size = a.ints("size");
       if (size != Ints{0}) o.size = Dims(size);
       o.scale = {a.number("scale_factor")};
       o.mode = resample_mode(a.text("mode"));
       o.align_corners = a.flag("align_corners");
       return unary(fmt::format("Upsample({})", a.text("mode")), [o](const Tensor& x) { return interpolate(x, o); });
     }});

template <Tensor (*F)(const Tensor&, int64_t)>
bool by_factor(const char* type, const char* help, const char* attr, int64_t fallback,
               std::vector<LayerExample> examples) {
  return register_layer({{.type = type,
                          .group = "Image",
                          .help = help,
                          .attrs = {{attr, fallback, 1, 1e6, "the factor"}},
                          .examples = std::move(examples)},
                         [](const LayerArgs& a) -> Made {
                           int64_t factor = a.integer(a.info.attrs[0].name);
                           return unary(fmt::format("{}({})", a.spec.type, factor),
                                        [factor](const Tensor& x) { return F(x, factor); });
                         }});
}
const bool shuffles[] = {
    by_factor<pixel_shuffle>("PixelShuffle", "Makes a larger image of groups of channels.", "upscale_factor", 2,
                             {{{2, 4, 8, 8}}}),
    by_factor<pixel_unshuffle>("PixelUnshuffle", "Makes channels of blocks of pixels.", "downscale_factor", 2, {}),
    by_factor<channel_shuffle>("ChannelShuffle", "Deals the channels of the groups out in turn.", "groups", 1, {}),
};

WindowOptions windows(const LayerArgs& a) {
  return {a.pair("kernel_size"), a.pair("dilation"), a.pair("padding"), a.pair("stride")};
}
std::vector<AttrDef> fold_attrs(Ints kernel) {
  return {{"kernel_size", std::move(kernel), 1, 1024, "height and width of the window"},
          {"dilation", Ints{1, 1}, 1, 1024, "spacing of the window's taps"},
          {"padding", Ints{0, 0}, 0, 512, "zeros round the image"},
          {"stride", Ints{1, 1}, 1, 1024, "steps between windows"}};
}
const bool unfold_layer = register_layer({{.type = "Unfold",
                                           .group = "Image",
                                           .help = "The elements of every window as a column.",
                                           .attrs = fold_attrs({3, 3})},
                                          [](const LayerArgs& a) -> Made {
                                            WindowOptions o = windows(a);
                                            return unary(fmt::format("Unfold({})", to_string(o.kernel)),
                                                         [o](const Tensor& x) { return im2col(x, o); });
                                          }});
const bool fold_layer = [] {
  std::vector<AttrDef> attrs = fold_attrs({2, 2});
  attrs.insert(attrs.begin(), {"output_size", Ints{4, 4}, 1, 1e6, "height and width of the image"});
  return register_layer({{.type = "Fold",
                          .group = "Image",
                          .help = "Sums columns of windows back into an image.",
                          .attrs = std::move(attrs),
                          .examples = {{{2, 8, 9}}}},
                         [](const LayerArgs& a) -> Made {
                           WindowOptions o = windows(a);
                           Dims size = a.pair("output_size");
                           return unary(fmt::format("Fold({})", to_string(size)),
                                        [=](const Tensor& x) { return col2im(x, size, o); });
                         }});
}();

const bool grid_layer = register_layer(
    {{.type = "GridSample",
      .group = "Image",
      .help =
          "Reads the image at given places. Inputs: the image, and the places [batch, height, width, 2] from -1 to 1.",
      .inputs = 2,
      .attrs =
          {{"mode", std::string("bilinear"), 0, 0, "how values between are found", {"nearest", "bilinear", "bicubic"}},
           {"padding_mode",
            std::string("zeros"),
            0,
            0,
            "what lies outside: zeros, border or reflection",
            {"zeros", "border", "reflection"}},
           {"align_corners", false, 0, 0, "-1 and 1 are the centres of the corners, not the edges"}},
      .examples = {{{2, 3, 8, 8}}, {{2, 4, 4, 2}}}},
     [](const LayerArgs& a) -> Made {
       Resample mode = resample_mode(a.text("mode"));
       std::string padding = a.text("padding_mode");
       GridPadding p = padding == "zeros"    ? GridPadding::zeros
                       : padding == "border" ? GridPadding::border
                                             : GridPadding::reflection;
       bool align = a.flag("align_corners");
       return nary("GridSample", 2,
                   [=](std::span<const Tensor> in) { return grid_sample(in[0], in[1], mode, p, align); });
     }});
const bool affine_layer = register_layer(
    {{.type = "AffineGrid",
      .group = "Image",
      .help = "The places an affine map [batch, 2, 3] reads an image of the second input's size at.",
      .inputs = 2,
      .attrs = {{"align_corners", false, 0, 0, "-1 and 1 are the centres of the corners, not the edges"}},
      .examples = {{{2, 2, 3}}, {{2, 3, 4, 4}}}},
     [](const LayerArgs& a) -> Made {
       bool align = a.flag("align_corners");
       return nary("AffineGrid", 2,
                   [align](std::span<const Tensor> in) { return affine_grid(in[0], in[1].size(), align); });
     }});

template <int Axes, PadMode Mode, bool Value>
bool pad_layer(const char* type, const char* help) {
  std::vector<AttrDef> attrs{{"padding", Ints(2 * Axes, 1), -1e6, 1e6,
                              "elements at the beginning and end of the last axis, then of the one before it, ..."}};
  if (Value) attrs.push_back({"value", 0.0, -1e30, 1e30, "what is added"});
  std::vector<LayerExample> examples;
  if (Axes == 1) examples = {{{2, 3, 8}}};
  if (Axes == 3) examples = {{{2, 3, 4, 4, 4}}};
  return register_layer(
      {{.type = type, .group = "Shape", .help = help, .attrs = std::move(attrs), .examples = std::move(examples)},
       [](const LayerArgs& a) -> Made {
         Dims around = a.sizes("padding", 2 * Axes);
         Ints amounts(around.begin(), around.end());
         double value = Value ? a.number("value") : 0;
         return unary(fmt::format("{}({})", a.spec.type, to_string(around)), [=](const Tensor& x) {
           if (x.ndim() != Axes + 2)
             throw Error(fmt::format("its input has size {}; it must have {} axes", to_string(x.size()), Axes + 2));
           return pad(x, amounts, Mode, value);
         });
       }});
}
constexpr const char *kZero = "Adds zeros at the ends.", *kConstant = "Adds a constant at the ends.",
                     *kReflect = "Adds a mirror image at the ends.", *kReplicate = "Repeats the border at the ends.",
                     *kCircular = "Goes on at the other end.";
const bool pads[] = {
    pad_layer<1, PadMode::constant, false>("ZeroPad1d", kZero),
    pad_layer<2, PadMode::constant, false>("ZeroPad2d", kZero),
    pad_layer<3, PadMode::constant, false>("ZeroPad3d", kZero),
    pad_layer<1, PadMode::constant, true>("ConstantPad1d", kConstant),
    pad_layer<2, PadMode::constant, true>("ConstantPad2d", kConstant),
    pad_layer<3, PadMode::constant, true>("ConstantPad3d", kConstant),
    pad_layer<1, PadMode::reflect, false>("ReflectionPad1d", kReflect),
    pad_layer<2, PadMode::reflect, false>("ReflectionPad2d", kReflect),
    pad_layer<3, PadMode::reflect, false>("ReflectionPad3d", kReflect),
    pad_layer<1, PadMode::replicate, false>("ReplicationPad1d", kReplicate),
    pad_layer<2, PadMode::replicate, false>("ReplicationPad2d", kReplicate),
    pad_layer<3, PadMode::replicate, false>("ReplicationPad3d", kReplicate),
    pad_layer<1, PadMode::circular, false>("CircularPad1d", kCircular),
    pad_layer<2, PadMode::circular, false>("CircularPad2d", kCircular),
    pad_layer<3, PadMode::circular, false>("CircularPad3d", kCircular),
};

}  // namespace
}  // namespace tenon::nn
