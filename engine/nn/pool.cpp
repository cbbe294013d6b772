#include "engine/ops/pool_nd.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "engine/nn/functional.h"
#include "engine/nn/layers.h"
#include "engine/nn/random_state.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {

Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }
std::string MaxPool2d::describe() const {
  return fmt::format("MaxPool2d({} x {})", options_.kernel[0], options_.kernel[1]);
}

namespace {

using Ints = std::vector<int64_t>;
using Made = std::shared_ptr<Module>;

constexpr const char* kGroups[] = {"", "Sequence", "Image", "Volume"};
std::vector<LayerExample> example(int axes) {
  if (axes == 1) return {{{2, 3, 8}}};
  if (axes == 3) return {{{2, 3, 4, 4, 4}}};
  return {};
}
std::string text(const char* kind, int axes, const Dims& size) {
  return fmt::format("{}{}d({})", kind, axes, to_string(size));
}

template <int Axes>
std::vector<AttrDef> pool_attrs() {
  auto each = [](int64_t v) { return Ints(Axes, v); };
  return {{"kernel_size", each(2), 1, 1024, Axes == 2 ? "height and width of the window" : "size of the window"},
          {"stride", each(0), 0, 1024, "steps between windows; 0: the window's own size"},
          {"padding", each(0), 0, 512, "elements at both ends that never win"},
          {"dilation", each(1), 1, 1024, "spacing of the window's taps"},
          {"ceil_mode", false, 0, 0, "a last window may reach over the end"}};
}
template <int Axes>
PoolOptions pool_options(const LayerArgs& a, bool dilation) {
  PoolOptions o{a.sizes("kernel_size", Axes), a.sizes("stride", Axes), a.sizes("padding", Axes)};
  if (dilation) o.dilation = a.sizes("dilation", Axes);
  o.ceil_mode = a.flag("ceil_mode");
  return o;
}

template <int Axes>
bool max_layer(const char* type) {
  return register_layer({{.type = type,
                          .group = kGroups[Axes],
                          .help = "Keeps the largest value of each window.",
                          .attrs = pool_attrs<Axes>(),
                          .examples = example(Axes)},
                         [](const LayerArgs& a) -> Made {
                           PoolOptions o = pool_options<Axes>(a, true);
                           if (Axes == 2 && !o.ceil_mode) {  // kernels of their own, which keep small indices
                             Pool2dOptions p{o.kernel, o.stride, o.padding, o.dilation};
                             for (int i = 0; i < 2; ++i)
                               if (p.stride[i] == 0) p.stride[i] = p.kernel[i];
                             return std::make_shared<MaxPool2d>(p);
                           }
                           return unary(text("MaxPool", Axes, o.kernel),
                                        [o](const Tensor& x) { return max_pool(x, o).y; });
                         }});
}
template <int Axes>
bool avg_layer(const char* type) {
  std::vector<AttrDef> attrs = pool_attrs<Axes>();
  attrs[2].help = "zeros at both ends";
  attrs.erase(attrs.begin() + 3);
  attrs.push_back({"count_include_pad", true, 0, 0, "zeros at the ends count as elements"});
  attrs.push_back({"divisor_override", int64_t{0}, 0, 1e9, "divide by this; 0: by the size of the window"});
  return register_layer({{.type = type,
                          .group = kGroups[Axes],
                          .help = "The mean of each window.",
                          .attrs = std::move(attrs),
                          .examples = example(Axes)},
                         [](const LayerArgs& a) -> Made {
                           PoolOptions o = pool_options<Axes>(a, false);
                           o.count_include_pad = a.flag("count_include_pad");
                           o.divisor_override = a.integer("divisor_override");
                           return unary(text("AvgPool", Axes, o.kernel),
                                        [o](const Tensor& x) { return avg_pool(x, o); });
                         }});
}
template <int Axes>
bool lp_layer(const char* type) {
  std::vector<AttrDef> attrs = pool_attrs<Axes>();
  attrs.erase(attrs.begin() + 2, attrs.begin() + 4);
  attrs.insert(attrs.begin(), {"norm_type", 2.0, 1e-3, 1e3, "the power"});
  return register_layer({{.type = type,
                          .group = kGroups[Axes],
                          .help = "The p-norm of each window.",
                          .attrs = std::move(attrs),
                          .examples = example(Axes)},
                         [](const LayerArgs& a) -> Made {
                           PoolOptions o{a.sizes("kernel_size", Axes), a.sizes("stride", Axes)};
                           o.ceil_mode = a.flag("ceil_mode");
                           double p = a.number("norm_type");
                           return unary(text("LPPool", Axes, o.kernel),
                                        [=](const Tensor& x) { return lp_pool(x, p, o); });
                         }});
}
template <int Axes, bool Max>
bool adaptive_layer(const char* type) {
  return register_layer(
      {{.type = type,
        .group = kGroups[Axes],
        .help = Max ? "The largest value of each of so many parts." : "The mean of each of so many parts.",
        .attrs = {{"output_size", Ints(Axes, 1), -1, 1e6, "parts an axis; -1: as many as there are elements"}},
        .examples = example(Axes)},
       [](const LayerArgs& a) -> Made {
         Dims size = a.sizes("output_size", Axes);
         return unary(text(Max ? "AdaptiveMaxPool" : "AdaptiveAvgPool", Axes, size), [size](const Tensor& x) {
           return Max ? adaptive_max_pool(x, size).y : adaptive_avg_pool(x, size);
         });
       }});
}

/// Where max pooling of `like` took its values from: what a MaxUnpool layer of a model is given instead of a second
/// output.
template <int Axes>
bool unpool_layer(const char* type) {
  std::vector<AttrDef> attrs = pool_attrs<Axes>();
  attrs.resize(3);
  std::vector<LayerExample> examples = example(Axes);
  if (examples.empty()) examples = {{{2, 3, 8, 8}}};
  LayerExample small = examples[0];
  for (size_t i = 2; i < small.shape.size(); ++i) small.shape[i] /= 2;
  return register_layer(
      {{.type = type,
        .group = kGroups[Axes],
        .help =
            "Puts values where the maxima of each window were, zeros elsewhere. Inputs: values, and what was pooled.",
        .inputs = 2,
        .attrs = std::move(attrs),
        .examples = {small, examples[0]}},
       [](const LayerArgs& a) -> Made {
         PoolOptions o{a.sizes("kernel_size", Axes), a.sizes("stride", Axes), a.sizes("padding", Axes)};
         return nary(text("MaxUnpool", Axes, o.kernel), 2, [o](std::span<const Tensor> in) {
           Dims size;
           for (int i = 2; i < in[1].ndim(); ++i) size.push_back(in[1].size(i));
           return max_unpool(in[0], max_pool(in[1], o).index, size);
         });
       }});
}

const bool registered_pool[] = {
    max_layer<1>("MaxPool1d"),
    max_layer<2>("MaxPool2d"),
    max_layer<3>("MaxPool3d"),
    avg_layer<1>("AvgPool1d"),
    avg_layer<2>("AvgPool2d"),
    avg_layer<3>("AvgPool3d"),
    lp_layer<1>("LPPool1d"),
    lp_layer<2>("LPPool2d"),
    adaptive_layer<1, false>("AdaptiveAvgPool1d"),
    adaptive_layer<2, false>("AdaptiveAvgPool2d"),
    adaptive_layer<3, false>("AdaptiveAvgPool3d"),
    adaptive_layer<1, true>("AdaptiveMaxPool1d"),
    adaptive_layer<2, true>("AdaptiveMaxPool2d"),
    adaptive_layer<3, true>("AdaptiveMaxPool3d"),
    unpool_layer<1>("MaxUnpool1d"),
    unpool_layer<2>("MaxUnpool2d"),
    unpool_layer<3>("MaxUnpool3d"),
};

/// Windows at random distances, drawn anew in training and evaluation alike, as in PyTorch.
class FractionalMaxPool2d : public Module {
 public:
  FractionalMaxPool2d(const Dims& kernel, const Dims& output) : kernel_(kernel), output_(output) {}
  std::string describe() const override {
    return fmt::format("FractionalMaxPool2d({} to {})", to_string(kernel_), to_string(output_));
  }

 protected:
  Tensor forward(const Tensor& x) override {
    auto draws = static_cast<uint64_t>(x.ndim() == 4 ? x.size(0) * x.size(1) * 2 : 0);
    return fractional_max_pool2d(x, kernel_, output_, t_random.seed, stream_of(path().c_str()), draw(draws));
  }

 private:
  Dims kernel_, output_;
};
const bool fractional = register_layer(
    {{.type = "FractionalMaxPool2d",
      .group = "Image",
      .help = "The largest value of windows at random distances.",
      .attrs = {{"kernel_size", Ints{2, 2}, 1, 1024, "height and width of the window"},
                {"output_size", Ints{4, 4}, 1, 1e6, "height and width of the output"}}},
     [](const LayerArgs& a) -> Made {
       return std::make_shared<FractionalMaxPool2d>(a.sizes("kernel_size", 2), a.sizes("output_size", 2));
     }});

const bool response = register_layer({{.type = "LocalResponseNorm",
                                       .group = "Normalisation",
                                       .help = "Divides by the strength of neighbouring channels.",
                                       .attrs = {{"size", int64_t{5}, 1, 1e6, "neighbouring channels"},
                                                 {"alpha", 1e-4, 0, 1e3, "weight of their squares"},
                                                 {"beta", 0.75, -1e3, 1e3, "the power"},
                                                 {"k", 1.0, 0, 1e6, "added to the sum"}}},
                                      [](const LayerArgs& a) -> Made {
                                        int64_t size = a.integer("size");
                                        double alpha = a.number("alpha"), beta = a.number("beta"), k = a.number("k");
                                        return unary(fmt::format("LocalResponseNorm({})", size), [=](const Tensor& x) {
                                          return local_response_norm(x, size, alpha, beta, k);
                                        });
                                      }});

}  // namespace
}  // namespace tenon::nn
